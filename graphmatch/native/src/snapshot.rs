//! Snapshots: the engine's state in one file.
//!
//! The file holds what is expensive to compute: texts of terms, templates, subscriptions, rows, join
//! programs and the compiled ontology, encoded by `serde` and `postcard`. Hash tables and posting
//! lists are built again when the file is opened.
//!
//! A file begins with a header: [`MAGIC`], the format's version, a checksum (CRC-32) of the content,
//! and the content's length. Nothing is decoded before these are right. So a damaged file gives an
//! error. A file that was written on purpose with a valid checksum may panic or give wrong matches.
//!
//! A file is written under a temporary name, synchronised with the disk and renamed. A program that
//! opens it finds the old snapshot or the new one, whole.

use foldhash::fast::RandomState;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::path::Path;

/// The first bytes of a file, which are not text and which a text mode would change.
pub const MAGIC: [u8; 8] = *b"\x89GMSNAP\n";
/// Version of the format. Raise it with each change of a stored type.
pub const VERSION: u32 = 16;
/// Bytes of magic, version, checksum and length.
const HEADER: usize = 24;

/// Why a snapshot cannot be written or read.
#[derive(Debug)]
pub enum SnapshotError {
    /// The file cannot be read or written.
    Io(io::Error),
    /// The file is not a snapshot.
    Foreign,
    /// The file has another version of the format.
    Version(u32),
    /// A part of the file is damaged.
    Damaged(&'static str),
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Encodes a value.
pub(crate) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("a vector takes every value")
}

/// Decodes a value that [`to_bytes`] encoded.
pub(crate) fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// Encodes a snapshot with its header.
pub fn encode(value: &impl Serialize) -> Vec<u8> {
    let bytes = postcard::to_extend(value, vec![0; HEADER]);
    let mut bytes = bytes.expect("a vector takes every value");
    let (header, content) = bytes.split_at_mut(HEADER);
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&crc32fast::hash(content).to_le_bytes());
    header[16..].copy_from_slice(&(content.len() as u64).to_le_bytes());
    bytes
}

/// Writes an encoded snapshot to a file. A file that is not a snapshot is not replaced.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), SnapshotError> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    };
    if path.try_exists()? {
        match header(&mut File::open(path)?) {
            Ok(_) | Err(SnapshotError::Version(_) | SnapshotError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let random = RandomState::default().hash_one(std::process::id());
    let beside = path.with_file_name(format!(".{}-{random:016x}", name.display()));
    let written = write_new(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if let Err(error) = written {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&beside);
        return Err(error.into());
    }
    if let Some(folder) = path.parent() {
        // Some systems cannot open a folder. The file is whole nevertheless.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Reads the header of a file: the checksum and the length of the content.
fn header(file: &mut File) -> Result<(u32, u64), SnapshotError> {
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    }
    let mut bytes = Vec::with_capacity(HEADER);
    file.take(HEADER as u64).read_to_end(&mut bytes)?;
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| bytes[at + n]));
    if !bytes.starts_with(&MAGIC) {
        return Err(SnapshotError::Foreign);
    }
    if bytes.len() < HEADER {
        return Err(SnapshotError::Damaged("it ends too early"));
    }
    if number(8) != VERSION {
        return Err(SnapshotError::Version(number(8)));
    }
    Ok((number(12), u64::from(number(20)) << 32 | u64::from(number(16))))
}

/// Reads a snapshot that [`encode`] made.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T, SnapshotError> {
    let mut file = File::open(path)?;
    let (checksum, length) = header(&mut file)?;
    if length.checked_add(HEADER as u64) != Some(file.metadata()?.len()) {
        return Err(SnapshotError::Damaged("its length is wrong"));
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    if content.len() as u64 != length || crc32fast::hash(&content) != checksum {
        return Err(SnapshotError::Damaged("its checksum is wrong"));
    }
    from_bytes(&content).ok_or(SnapshotError::Damaged("its content is not valid"))
}
