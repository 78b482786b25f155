//! Snapshots: the state in one file, opened by mapping it into memory.
//!
//! What is expensive to find is in the file: texts of terms, templates, records, rows, join
//! programs, the compiled ontology. What is quick to make again is not: tables of hashes, whose keys
//! are another process's secret, posting lists. Vectors of integers are written as they are,
//! little-endian, so reading them is copying; single numbers take as many bytes as they need.
//!
//! A file begins with a header: [`MAGIC`], the format's version, a checksum (CRC-32) of the rest, and
//! how long that is. Nothing else is looked at before these are right. Then whatever is read is checked to be
//! within bounds: a file that somebody else wrote may hold wrong subscriptions, and breaks nothing.
//!
//! A file is written beside its place, brought to the disk, and renamed: whoever opens it finds the
//! old one or the new one, whole. It is never written to again, as mapping it wants.

use crc32fast::Hasher;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hash};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// What a file begins with: no text, and not what a text mode would leave alone.
pub const MAGIC: [u8; 8] = *b"\x89GMSNAP\n";
/// To be raised with each change of what is written.
pub const VERSION: u32 = 9;
/// Magic, version, checksum, length.
const HEADER: usize = 24;
/// So many bytes are made of integers at once.
const PIECE: usize = 1 << 16;
/// So many bytes are written to a file at once.
const BUFFER: usize = 1 << 20;

/// What is wrong with a file.
#[derive(Debug)]
pub enum SnapshotError {
    /// It cannot be read or written.
    Io(io::Error),
    /// It is no snapshot.
    Foreign,
    /// Its format has this version.
    Version(u32),
    /// What of it is not as it was written.
    Damaged(&'static str),
}

impl From<io::Error> for SnapshotError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// That something is not as it was written.
pub(crate) const fn damaged<T>(what: &'static str) -> Result<T, SnapshotError> {
    Err(SnapshotError::Damaged(what))
}

/// Fails where something does not hold that holds of what is written.
pub(crate) fn check(holds: bool, what: &'static str) -> Result<(), SnapshotError> {
    if holds { Ok(()) } else { damaged(what) }
}

/// Takes what is saved: in memory, or for a file.
#[derive(Default)]
pub struct Saver {
    buffer: Vec<u8>,
    out: Option<File>,
    checksum: Hasher,
    length: u64,
    /// The first error: what comes after it is not written.
    failed: Option<io::Error>,
}

impl Saver {
    /// Writes bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.out.is_some() && self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    /// Brings what is in memory to the file.
    fn flush(&mut self) {
        let Some(out) = &mut self.out else { return };
        self.checksum.update(&self.buffer);
        self.length += self.buffer.len() as u64;
        if self.failed.is_none() {
            self.failed = out.write_all(&self.buffer).err();
        }
        self.buffer.clear();
    }
}

/// What is saved of something.
pub(crate) fn to_bytes(one: &impl Stored) -> Vec<u8> {
    let mut to = Saver::default();
    one.save(&mut to);
    to.buffer
}

/// Reads what [`to_bytes`] made.
pub(crate) fn from_bytes<T: Stored>(bytes: &[u8]) -> Result<T, SnapshotError> {
    T::load(&mut Loader::new(bytes))
}

/// Gives what was saved.
pub struct Loader<'a> {
    rest: &'a [u8],
}

impl<'a> Loader<'a> {
    /// Reads from bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], SnapshotError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            return damaged("it ends too early");
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// How many things come, each of which takes a byte at least.
    fn count(&mut self) -> Result<usize, SnapshotError> {
        let count = usize::load(self)?;
        check(count <= self.rest.len(), "it ends too early")?;
        Ok(count)
    }

    /// A vector with room for what comes, as far as the rest of the file can hold it.
    fn room<T>(&self, count: usize) -> Vec<T> {
        Vec::with_capacity(count.min(self.rest.len() / size_of::<T>().max(1)))
    }
}

/// What can be saved.
pub trait Stored: Sized {
    /// Writes this.
    fn save(&self, to: &mut Saver);

    /// Reads what was written.
    fn load(from: &mut Loader) -> Result<Self, SnapshotError>;

    /// Writes several, without their number.
    fn save_all(all: &[Self], to: &mut Saver) {
        all.iter().for_each(|one| one.save(to));
    }

    /// Reads several.
    fn load_all(count: usize, from: &mut Loader) -> Result<Vec<Self>, SnapshotError> {
        let mut all = from.room(count);
        for _ in 0..count {
            all.push(Self::load(from)?);
        }
        Ok(all)
    }
}

/// Implements [`Stored`]: for a structure by its fields, in their order, with those that are made
/// anew and how; for an enumeration without fields by its variants.
macro_rules! stored {
    (enum $type:ty { $($variant:ident),* $(,)? }) => {
        impl crate::snapshot::Stored for $type {
            fn save(&self, to: &mut crate::snapshot::Saver) {
                let number = match self { $(Self::$variant => Self::$variant as u8,)* };
                number.save(to);
            }

            fn load(
                from: &mut crate::snapshot::Loader,
            ) -> Result<Self, crate::snapshot::SnapshotError> {
                let number = u8::load(from)?;
                $(if number == Self::$variant as u8 {
                    return Ok(Self::$variant);
                })*
                crate::snapshot::damaged("a variant that there is not")
            }
        }
    };
    ($type:ty { $($field:ident),* $(,)? } $(anew { $($other:ident: $value:expr),* $(,)? })?) => {
        impl crate::snapshot::Stored for $type {
            fn save(&self, to: &mut crate::snapshot::Saver) {
                $(crate::snapshot::Stored::save(&self.$field, to);)*
            }

            fn load(
                from: &mut crate::snapshot::Loader,
            ) -> Result<Self, crate::snapshot::SnapshotError> {
                $(let $field = crate::snapshot::Stored::load(from)?;)*
                Ok(Self { $($field,)* $($($other: $value,)*)? })
            }
        }
    };
}
pub(crate) use stored;

macro_rules! stored_numbers {
    ($($type:ty),*) => {$(
        impl Stored for $type {
            fn save(&self, to: &mut Saver) {
                to.bytes(&self.to_le_bytes());
            }

            fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
                let mut bytes = [0; size_of::<Self>()];
                bytes.copy_from_slice(from.bytes(size_of::<Self>())?);
                Ok(Self::from_le_bytes(bytes))
            }

            fn save_all(all: &[Self], to: &mut Saver) {
                let mut piece = [0; PIECE];
                for all in all.chunks(PIECE / size_of::<Self>()) {
                    let piece = &mut piece[..size_of_val(all)];
                    for (bytes, one) in piece.chunks_exact_mut(size_of::<Self>()).zip(all) {
                        bytes.copy_from_slice(&one.to_le_bytes());
                    }
                    to.bytes(piece);
                }
            }

            fn load_all(count: usize, from: &mut Loader) -> Result<Vec<Self>, SnapshotError> {
                let length = count.checked_mul(size_of::<Self>()).unwrap_or(usize::MAX);
                let one = |bytes: &[u8]| {
                    let mut own = [0; size_of::<Self>()];
                    own.copy_from_slice(bytes);
                    Self::from_le_bytes(own)
                };
                Ok(from.bytes(length)?.chunks_exact(size_of::<Self>()).map(one).collect())
            }
        }
    )*};
}
stored_numbers!(u8, u16, u32, u64, i32, f64);

/// Seven bits in a byte, the lowest first; the eighth says that more follow.
impl Stored for usize {
    fn save(&self, to: &mut Saver) {
        let mut rest = *self;
        while rest >= 1 << 7 {
            (rest as u8 | 1 << 7).save(to);
            rest >>= 7;
        }
        (rest as u8).save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let mut number = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let byte = u8::load(from)?;
            let bits = Self::from(byte & 0x7f);
            check(bits << shift >> shift == bits, "a number is too large")?;
            number |= bits << shift;
            if byte < 1 << 7 {
                return Ok(number);
            }
        }
        damaged("a number is too large")
    }
}

impl Stored for bool {
    fn save(&self, to: &mut Saver) {
        u8::from(*self).save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let byte = u8::load(from)?;
        check(byte < 2, "neither true nor false")?;
        Ok(byte == 1)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn save(&self, to: &mut Saver) {
        self.len().save(to);
        T::save_all(self, to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let count = from.count()?;
        T::load_all(count, from)
    }
}

impl<T: Stored> Stored for Box<[T]> {
    fn save(&self, to: &mut Saver) {
        self.len().save(to);
        T::save_all(self, to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        Ok(Vec::load(from)?.into())
    }
}

impl<T: Stored + Copy + Default, const N: usize> Stored for [T; N] {
    fn save(&self, to: &mut Saver) {
        T::save_all(self, to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let all = T::load_all(N, from)?;
        Self::try_from(all).or(damaged("it ends too early"))
    }

    fn save_all(all: &[Self], to: &mut Saver) {
        T::save_all(all.as_flattened(), to);
    }

    fn load_all(count: usize, from: &mut Loader) -> Result<Vec<Self>, SnapshotError> {
        let all = T::load_all(count.saturating_mul(N), from)?;
        let one = |some: &[T]| {
            let mut own = [T::default(); N];
            own.copy_from_slice(some);
            own
        };
        Ok(all.chunks_exact(N).map(one).collect())
    }
}

macro_rules! stored_texts {
    ($($type:ty),*) => {$(
        impl Stored for $type {
            fn save(&self, to: &mut Saver) {
                self.len().save(to);
                to.bytes(self.as_bytes());
            }

            fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
                let count = from.count()?;
                let text = std::str::from_utf8(from.bytes(count)?);
                Ok(Self::from(text.or(damaged("a text is no Unicode"))?.to_owned()))
            }
        }
    )*};
}
stored_texts!(Box<str>, Cow<'static, str>);

impl<T: Stored> Stored for Option<T> {
    fn save(&self, to: &mut Saver) {
        self.is_some().save(to);
        if let Some(one) = self {
            one.save(to);
        }
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        Ok(if bool::load(from)? { Some(T::load(from)?) } else { None })
    }
}

impl<T: Stored> Stored for Box<T> {
    fn save(&self, to: &mut Saver) {
        self.as_ref().save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        T::load(from).map(Self::new)
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn save(&self, to: &mut Saver) {
        self.0.save(to);
        self.1.save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        Ok((A::load(from)?, B::load(from)?))
    }
}

impl<A: Stored, B: Stored, C: Stored> Stored for (A, B, C) {
    fn save(&self, to: &mut Saver) {
        self.0.save(to);
        self.1.save(to);
        self.2.save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        Ok((A::load(from)?, B::load(from)?, C::load(from)?))
    }
}

/// Hashed anew: other processes have other keys.
impl<K: Stored + Hash + Eq, V: Stored, S: BuildHasher + Default> Stored for HashMap<K, V, S> {
    fn save(&self, to: &mut Saver) {
        self.len().save(to);
        for (key, value) in self {
            key.save(to);
            value.save(to);
        }
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let count = from.count()?;
        let room = count.min(from.rest.len() / size_of::<(K, V)>().max(1));
        let mut map = Self::with_capacity_and_hasher(room, S::default());
        for _ in 0..count {
            map.insert(K::load(from)?, V::load(from)?);
        }
        Ok(map)
    }
}

/// Writes a file beside its place, and puts it there.
pub fn write(path: &Path, save: impl FnOnce(&mut Saver)) -> Result<(), SnapshotError> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    };
    if path.try_exists()? {
        match header(&File::open(path)?) {
            // It was saved there, however it looks now.
            Ok(_) | Err(SnapshotError::Version(_) | SnapshotError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    let random = RandomState::default().hash_one(std::process::id());
    beside.push(format!("-{random:016x}"));
    let beside = path.with_file_name(beside);
    let written = write_to(&beside, save).and_then(|()| Ok(std::fs::rename(&beside, path)?));
    if written.is_err() {
        // Whatever is wrong there is said already.
        let _ = std::fs::remove_file(&beside);
    } else if let Some(folder) = path.parent() {
        // That a folder cannot be opened, as on some systems, does the file no harm.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    written
}

fn write_to(path: &Path, save: impl FnOnce(&mut Saver)) -> Result<(), SnapshotError> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    (&file).write_all(&[0; HEADER])?;
    let mut to = Saver { out: Some(file.try_clone()?), ..Saver::default() };
    save(&mut to);
    to.flush();
    if let Some(error) = to.failed {
        return Err(error.into());
    }
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&to.checksum.finalize().to_le_bytes());
    header.extend_from_slice(&to.length.to_le_bytes());
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header)?;
    file.sync_all()?;
    Ok(())
}

/// The checksum and the length that a file's header says.
fn header(mut file: &File) -> Result<(u32, u64), SnapshotError> {
    let mut bytes = [0; HEADER];
    if file.metadata()?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    }
    let mut read = 0;
    while read < HEADER {
        match io::Read::read(&mut file, &mut bytes[read..])? {
            0 => break,
            more => read += more,
        }
    }
    if read < MAGIC.len() || bytes[..MAGIC.len()] != MAGIC {
        return Err(SnapshotError::Foreign);
    }
    check(read == HEADER, "it ends too early")?;
    let mut rest = Loader { rest: &bytes[MAGIC.len()..] };
    let version = u32::load(&mut rest)?;
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    <(u32, u64)>::load(&mut rest)
}

/// Reads a file that [`write`] wrote.
pub fn read<T>(
    path: &Path,
    load: impl FnOnce(&mut Loader) -> Result<T, SnapshotError>,
) -> Result<T, SnapshotError> {
    let file = File::open(path)?;
    let (checksum, length) = header(&file)?;
    let whole = file.metadata()?.len();
    check(length.checked_add(HEADER as u64) == Some(whole), "its length")?;
    #[expect(unsafe_code, reason = "the one map of a file into memory")]
    // SAFETY: files are put in place whole and never written to again, by us; whoever changes one
    // while it is open may be told wrong bytes, all of which are checked, or stop the process.
    let mapped = unsafe { memmap2::Mmap::map(&file)? };
    let content = mapped.get(HEADER..).unwrap_or_default();
    let is_whole = content.len() as u64 == length && crc32fast::hash(content) == checksum;
    check(is_whole, "its checksum")?;
    let mut from = Loader { rest: content };
    let loaded = load(&mut from)?;
    check(from.rest.is_empty(), "something follows its end")?;
    Ok(loaded)
}
