//! Checks that a document cannot exhaust time, memory or the stack of its parser.
//!
//! They bound how deep XML, JSON and the brackets of Turtle nest, and how much XML entities and
//! short names stand for. Each is one pass over the bytes without recursion. The parsers fetch
//! nothing; external entities and remote contexts are refused.

use crate::fault::{Fault, REMEDY, fault_at, place, place_of, too_deep, too_long};
use crate::limits::{Limits, grouped};
use crate::publication::is_too_long;
use hashbrown::HashSet;
use json_event_parser::{JsonEvent, SliceJsonParser};
use memchr::{memchr, memchr_iter, memchr2, memmem};
use quick_xml::events::{BytesStart, Event};
use std::borrow::Cow;

/// Maximum total number of attributes of open XML elements.
const MAX_ATTRIBUTES: usize = 1000;
/// The end of RDF's namespace.
const RDF: &[u8] = b"/1999/02/22-rdf-syntax-ns#";
/// Number of bytes that are searched for a document's root.
const HEAD_BYTES: usize = 8192;
/// Maximum size of an XML namespace, which each name in it stands for.
const MAX_NAMESPACE_BYTES: usize = 1 << 16;
/// Maximum number of bytes that the names of a JSON document stand for, if each stands for the
/// longest text of its contexts.
const MAX_NAMES_BYTES: usize = 1 << 32;

// --- XML -------------------------------------------------------------------------------------

/// Whether a document is certainly RDF/XML in UTF-8: its root is `rdf:RDF`, and nothing else is
/// declared.
pub(crate) fn is_plain_rdf_xml(text: &[u8]) -> bool {
    let head = &text[..text.len().min(HEAD_BYTES)];
    let Some(root) = memmem::find(head, b"<rdf:RDF") else { return false };
    let prologue = &head[..root];
    let is_markup = |at| matches!(head[at + 1], b'?' | b'!');
    let is_utf8 = |at: usize| {
        let value = prologue[at + 8..].trim_ascii_start().strip_prefix(b"=").unwrap_or_default();
        let name = value.trim_ascii_start().get(1..6).unwrap_or_default();
        name.eq_ignore_ascii_case(b"utf-8")
    };
    text.starts_with(b"<")
        && memchr_iter(b'<', prologue).all(is_markup)
        && memmem::find(head, RDF).is_some()
        && memmem::find(prologue, b"html").is_none()
        && memmem::find(prologue, b"encoding").is_none_or(is_utf8)
        && std::str::from_utf8(text).is_ok()
}

/// Refuses XML that is cut off, nests too deep, or has entities that are external or too long.
pub(crate) fn check_xml(text: &[u8], limits: &Limits) -> Result<(), Fault> {
    let bad = |what: &str, at: usize| fault_at(format!("not valid XML: {what}"), REMEDY, text, at);
    let is_control = |b: &u8| *b < b' ' && !matches!(*b, b'\t' | b'\n' | b'\r');
    if let Some(at) = text.iter().position(is_control) {
        return Err(bad("a control character", at));
    }
    let mut reader = quick_xml::Reader::from_reader(text);
    let mut entities = Entities { longest: 0, added: 0, most: limits.xml_expansion as usize };
    let mut open: Vec<usize> = Vec::new(); // the number of attributes of each open element
    let (mut attributes, mut has_root) = (0, false);
    loop {
        let begin = reader.buffer_position() as usize;
        let here = |fault: Fault| fault.at(Some(place(text, begin)));
        let event = reader
            .read_event()
            .map_err(|error| bad(&error.to_string(), reader.error_position() as usize))?;
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                if open.is_empty() && has_root {
                    return Err(bad("junk after document element", begin));
                }
                has_root = true;
                if open.len() >= limits.xml_depth {
                    let what = "the elements are nested";
                    return Err(here(too_deep(what, limits.xml_depth, "xml_depth")));
                }
                entities.check_namespaces(tag).map_err(here)?;
                // An attribute has a sign of equality.
                open.push(memchr_iter(b'=', tag).count());
                attributes += open[open.len() - 1];
                if attributes > MAX_ATTRIBUTES {
                    let what = format!("more than {MAX_ATTRIBUTES} attributes of open elements");
                    return Err(here(Fault::new(what, "Write properties as elements.")));
                }
            }
            Event::Text(_) | Event::CData(_) if is_too_long(&event, limits) => {
                return Err(here(too_long(limits)));
            }
            Event::DocType(declarations) => {
                let start = reader.buffer_position() as usize - 1 - declarations.len();
                let placed = |(at, fault): (usize, Fault)| fault.at(Some(place(text, start + at)));
                entities.declare(declarations).map_err(placed)?;
                continue;
            }
            Event::Eof => break,
            _ => {}
        }
        if matches!(event, Event::End(_) | Event::Empty(_)) {
            attributes -= open.pop().unwrap_or(0);
        }
        entities.add(&event, text.len()).map_err(here)?;
    }
    if !open.is_empty() || !has_root {
        return Err(bad("no element found", text.trim_ascii_end().len()));
    }
    Ok(())
}

/// An upper bound on the size of expanded entities, as each reference may be to the longest one.
struct Entities {
    longest: usize,
    added: usize,
    most: usize,
}

impl Entities {
    fn expansion(&self, text: &[u8]) -> usize {
        match self.longest {
            0 => 0,
            longest => memchr_iter(b'&', text).count().saturating_mul(longest),
        }
    }

    fn too_long(&self) -> Fault {
        let most = grouped(self.most as u64);
        let what = format!("the entities expand to more than {most} characters");
        Fault::new(what, "If you trust the document, raise the limit xml_expansion.")
    }

    /// Counts what the references in a piece of the document add to it.
    fn add(&mut self, piece: &[u8], document: usize) -> Result<(), Fault> {
        self.added = self.added.saturating_add(self.expansion(piece));
        // The document itself may be references only: what they add to it counts.
        if self.added > self.most.saturating_add(document) { Err(self.too_long()) } else { Ok(()) }
    }

    /// Reads the declarations of a document type, as leniently as the parser does. A fault comes
    /// with its offset.
    fn declare(&mut self, declarations: &[u8]) -> Result<(), (usize, Fault)> {
        for found in memmem::find_iter(declarations, b"<!ENTITY") {
            let rest = declarations[found + 8..].trim_ascii_start();
            let rest = rest.strip_prefix(b"%").unwrap_or(rest).trim_ascii_start();
            let Some(end) = rest.iter().position(u8::is_ascii_whitespace) else { break };
            let (name, value) = (&rest[..end], rest[end..].trim_ascii_start());
            if value.starts_with(b"SYSTEM") || value.starts_with(b"PUBLIC") {
                let name = String::from_utf8_lossy(name);
                let what = format!("the entity '{name}' is outside the document");
                let remedy = "Entities are not fetched. Write the text into the document.";
                return Err((found, Fault::new(what, remedy)));
            }
            let Some((quote, value)) = value.split_first() else { break };
            let value = &value[..memchr(*quote, value).unwrap_or(value.len())];
            self.longest = self.longest.max(value.len().saturating_add(self.expansion(value)));
            if self.longest > self.most {
                return Err((found, self.too_long()));
            }
        }
        Ok(())
    }

    /// Refuses a tag with a namespace that is too long.
    fn check_namespaces(&self, tag: &BytesStart<'_>) -> Result<(), Fault> {
        let is_long = |text: &[u8]| text.len() + self.expansion(text) > MAX_NAMESPACE_BYTES;
        if is_long(tag) {
            for attribute in tag.attributes().with_checks(false).flatten() {
                if attribute.key.as_namespace_binding().is_some() && is_long(&attribute.value) {
                    let most = grouped(MAX_NAMESPACE_BYTES as u64);
                    let what = format!("a namespace of more than {most} bytes");
                    return Err(Fault::new(what, "Give the namespace a shorter name."));
                }
            }
        }
        Ok(())
    }
}

// --- JSON ------------------------------------------------------------------------------------

/// Refuses JSON that nests too deep, has remote contexts, or whose names stand for too much. The
/// parser defines a term of a context by calling itself for those that its definition names, so
/// terms that occur in definitions are limited, too.
pub(crate) fn check_json(text: &[u8], limits: &Limits) -> Result<(), Fault> {
    let at_context = |fault: Fault| fault.at(place_of(text, b"\"@context\""));
    let mut json = SliceJsonParser::new(text);
    let (mut depth, mut key, mut key_depth) = (0usize, Cow::Borrowed(""), 0);
    let mut context = None; // the depth of the key of the context that is read
    let (mut terms, mut named) = (Vec::new(), HashSet::new());
    let (mut strings, mut longest) = (0usize, 0usize);
    // The parser reports a fault of syntax with its place.
    while let Ok(event) = json.parse_next() {
        match event {
            JsonEvent::StartObject | JsonEvent::StartArray => {
                depth += 1;
                if depth > limits.nesting {
                    let what = "the objects and lists are nested";
                    return Err(too_deep(what, limits.nesting, "`nesting`"));
                }
            }
            JsonEvent::EndObject | JsonEvent::EndArray => depth = depth.saturating_sub(1),
            JsonEvent::ObjectKey(name) => {
                if context.is_some_and(|begin| depth <= begin) {
                    check_terms(&mut terms, &mut named, limits).map_err(at_context)?;
                    context = None;
                }
                if context.is_some() {
                    longest = longest.max(name.len());
                    terms.push(name.clone());
                } else if name == "@context" {
                    context = Some(depth);
                }
                strings += 1;
                (key, key_depth) = (name, depth);
            }
            JsonEvent::String(value) => {
                if is_too_long(value.as_bytes(), limits) {
                    return Err(too_long(limits));
                }
                strings += 1;
                let Some(begin) = context else { continue };
                let is_listed = depth == begin + 1 && key_depth != depth;
                if is_listed || key == "@context" || key == "@import" {
                    let remedy = "Put the context into the document. Contexts are not fetched.";
                    return Err(at_context(Fault::new("a remote JSON-LD context", remedy)));
                }
                longest = longest.max(value.len());
                named.extend(value.split_once(':').map(|name| Cow::Owned(name.0.to_owned())));
                named.insert(value);
            }
            JsonEvent::Eof => break,
            _ => {}
        }
    }
    check_terms(&mut terms, &mut named, limits).map_err(at_context)?;
    if strings.saturating_mul(longest) > MAX_NAMES_BYTES {
        let most = grouped(MAX_NAMES_BYTES as u64);
        let what = format!("its names would expand to more than {most} bytes");
        return Err(Fault::new(what, "Give its context shorter IRIs."));
    }
    Ok(())
}

/// Refuses a context, with the contexts inside it, if too many of its terms are named in it. Both
/// are removed.
fn check_terms(
    terms: &mut Vec<Cow<'_, str>>,
    named: &mut HashSet<Cow<'_, str>>,
    limits: &Limits,
) -> Result<(), Fault> {
    let is_named = |term: &Cow<'_, str>| !term.starts_with('@') && named.contains(term);
    let count = terms.drain(..).filter(is_named).count();
    named.clear();
    if count <= limits.nesting {
        return Ok(());
    }
    let most = limits.nesting;
    let what = format!("more than {most} terms of the context occur in definitions of other terms");
    Err(Fault::new(what, "If you trust the document, raise the limit `nesting`."))
}

// --- Turtle ----------------------------------------------------------------------------------

/// Refuses Turtle, TriG, N3 or a line of N-Quads whose brackets nest too deep. Those in texts, IRIs
/// and comments do not count.
pub(crate) fn check_nesting(text: &[u8], limits: &Limits) -> Result<(), Fault> {
    let (mut at, mut depth) = (0, 0usize);
    let is_special = |byte: &u8| b"<>()[]{}\"'#\\".contains(byte);
    while let Some(next) = text.get(at..).and_then(|rest| rest.iter().position(is_special)) {
        at += next;
        let rest = &text[at..];
        let (size, opens, closes) = match rest {
            [b'<', b'<', b'(', ..] => (3, true, false),
            [b')', b'>', b'>', ..] => (3, false, true),
            [b'<', b'<', ..] => (2, true, false),
            [b'>', b'>', ..] => (2, false, true),
            [b'(' | b'[' | b'{', ..] => (1, true, false),
            [b')' | b']' | b'}', ..] => (1, false, true),
            // These are arrows of N3, or an escape in a name.
            [b'<', b'=' | b'-', ..] | [b'\\', ..] => (2, false, false),
            [b'<', ..] => (memchr(b'>', rest).unwrap_or(rest.len()) + 1, false, false),
            [b'#', ..] => (memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()), false, false),
            [quote @ (b'"' | b'\''), ..] => (quoted_length(rest, *quote), false, false),
            _ => (1, false, false),
        };
        depth = (depth + usize::from(opens)).saturating_sub(usize::from(closes));
        if depth > limits.nesting {
            let fault = too_deep("the brackets are nested", limits.nesting, "`nesting`");
            return Err(fault.at(Some(place(text, at))));
        }
        at += size;
    }
    Ok(())
}

/// The length of the quoted text that a text begins with.
pub(crate) fn quoted_length(text: &[u8], quote: u8) -> usize {
    let quotes = [quote; 3];
    let end = if text.starts_with(&quotes) { &quotes[..] } else { &quotes[..1] };
    let mut at = end.len();
    while let Some(next) = memchr2(quote, b'\\', text.get(at..).unwrap_or_default()) {
        at += next;
        match text[at] {
            b'\\' => at += 2,
            _ if text[at..].starts_with(end) => return at + end.len(),
            _ => at += 1,
        }
    }
    text.len()
}
