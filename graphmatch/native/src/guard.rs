//! What is looked at before a parser sees a document, so that none can be made to take the machine
//! down: how much XML entities add, how deep XML, JSON and triple terms nest, how much short names
//! stand for.
//!
//! Everything is one pass over the bytes, without recursion. The parsers fetch nothing; entities
//! that lie outside a document are refused all the same, and so is XML that ends early, of which
//! the parser would say nothing.

use crate::limits::Limits;
use crate::reader::{Fault, grouped};
use hashbrown::{HashMap, HashSet};
use json_event_parser::{JsonEvent, SliceJsonParser};
use memchr::{memchr, memchr_iter, memchr2, memmem};
use quick_xml::events::{BytesStart, Event};
use std::borrow::Cow;

/// So many attributes all open XML elements may have together.
const ATTRIBUTES: usize = 1000;
/// How RDF's namespace ends.
const RDF: &[u8] = b"/1999/02/22-rdf-syntax-ns#";
/// So much of a document is looked at to tell its root.
const HEAD: usize = 8192;
/// A tag of fewer bytes is not taken apart.
const SHORT_TAG: usize = 1000;
/// So long the IRI of an XML namespace may be: each name in it stands for that much.
const NAMESPACE_BYTES: u64 = 1 << 16;
/// The keys of a term's definition whose values may name other terms.
const DEFINING: [&str; 4] = ["@id", "@reverse", "@type", "@index"];
/// So much the names of a JSON document may stand for, if each were the longest of its context.
const NAMES_BYTES: usize = 1 << 32;

/// The line and column of a place in a text, both counted from 1.
pub(crate) fn place(text: &[u8], at: usize) -> (u64, u64) {
    let before = &text[..at.min(text.len())];
    let line = memchr_iter(b'\n', before).count() as u64 + 1;
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() as u64 + 1)
}

fn fault_at(what: String, remedy: &str, text: &[u8], at: usize) -> Fault {
    let (line, column) = place(text, at);
    Fault::new(what, remedy).at(line, Some(column))
}

/// Whether a text in UTF-8 has more characters than a text may have; where it has escapes, as those
/// of JSON and N-Triples, each stands for one.
pub(crate) fn is_too_long(text: &[u8], has_escapes: bool, limits: &Limits) -> bool {
    let most = limits.text_characters;
    if text.len() <= most {
        return false;
    }
    let is_first = |b: &&u8| **b & 0xC0 != 0x80;
    let (mut count, mut at) = (text.iter().filter(is_first).count(), 0);
    while let Some(next) = memchr(b'\\', text.get(at..).filter(|_| has_escapes).unwrap_or_default())
    {
        let length = match text.get(at + next + 1) {
            Some(b'u') => 6,
            Some(b'U') => 10,
            _ => 2,
        };
        count = count.saturating_sub(length - 1);
        at += next + length;
    }
    count > most
}

/// The fault of such a text.
pub(crate) fn too_long(limits: &Limits) -> Fault {
    let what = format!("a text of more than {} characters", grouped(limits.text_characters as u64));
    Fault::new(what, "Raise the limit `text_characters`, or leave it out.")
}

// --- XML -------------------------------------------------------------------------------------

/// Whether a document is certainly RDF/XML in UTF-8: its root is `rdf:RDF`, and nothing else is
/// declared.
pub(crate) fn is_plain_rdf_xml(text: &[u8]) -> bool {
    let head = &text[..text.len().min(HEAD)];
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

/// Refuses XML that is cut off, nests too deep, or has entities that lie outside or add too much.
pub(crate) fn check_xml(text: &[u8], remedy: &str, limits: &Limits) -> Result<(), Fault> {
    let bad = |what: &str, at: usize| fault_at(format!("not valid XML: {what}"), remedy, text, at);
    let is_control = |b: &u8| *b < b' ' && !matches!(*b, b'\t' | b'\n' | b'\r');
    // To look at all takes less time than to stop at one.
    if text.iter().fold(false, |odd, b| odd | is_control(b)) {
        return Err(bad("a control character", text.iter().position(is_control).unwrap_or(0)));
    }
    let mut reader = quick_xml::Reader::from_reader(text);
    let mut entities = Entities { lengths: HashMap::new(), added: 0, text, limits };
    let mut open: Vec<usize> = Vec::new(); // how many attributes each open element has
    let (mut attributes, mut has_root) = (0, false);
    loop {
        let begin = reader.buffer_position() as usize;
        let event = reader
            .read_event()
            .map_err(|error| bad(&error.to_string(), reader.error_position() as usize))?;
        let is_empty = matches!(event, Event::Empty(_));
        match event {
            Event::Start(tag) | Event::Empty(tag) => {
                if open.is_empty() && has_root {
                    return Err(bad("junk after document element", begin));
                }
                has_root = true;
                let depth = limits.xml_depth;
                if open.len() >= depth {
                    let what = format!("its elements nest more than {depth} deep");
                    let remedy = "If you trust the document, raise the limit xml_depth.";
                    return Err(fault_at(what, remedy, text, begin));
                }
                let more = entities.tag(&tag, begin, &bad)?;
                if attributes + more > ATTRIBUTES {
                    let what = format!("more than {ATTRIBUTES} attributes of open elements");
                    return Err(fault_at(what, "Write properties as elements.", text, begin));
                }
                if !is_empty {
                    open.push(more);
                    attributes += more;
                }
            }
            Event::End(_) => attributes -= open.pop().unwrap_or(0),
            Event::Text(characters) => {
                if is_too_long(&characters, false, limits) {
                    let (line, column) = place(text, begin);
                    return Err(too_long(limits).at(line, Some(column)));
                }
                entities.count(&characters, begin)?;
            }
            Event::CData(characters) if is_too_long(&characters, false, limits) => {
                let (line, column) = place(text, begin);
                return Err(too_long(limits).at(line, Some(column)));
            }
            Event::DocType(declarations) => {
                let end = reader.buffer_position() as usize - 1;
                entities.declare(&declarations, end.saturating_sub(declarations.len()))?;
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !open.is_empty() || !has_root {
        return Err(bad("no element found", text.trim_ascii_end().len()));
    }
    Ok(())
}

/// What the entities of a document amount to, without expanding any.
struct Entities<'a> {
    lengths: HashMap<Vec<u8>, u64>,
    added: u64,
    text: &'a [u8],
    limits: &'a Limits,
}

impl Entities<'_> {
    fn refuse(&self, at: usize) -> Fault {
        let most = grouped(self.limits.xml_expansion);
        let what = format!("its entities would add more than {most} characters");
        let remedy = "If you trust the document, raise the limit xml_expansion.";
        fault_at(what, remedy, self.text, at)
    }

    /// How much the references in a text add to it.
    fn expansion(&self, text: &[u8]) -> u64 {
        if self.lengths.is_empty() {
            return 0;
        }
        let names = memchr_iter(b'&', text).filter_map(|at| {
            let name = &text[at + 1..];
            self.lengths.get(&name[..memchr2(b'&', b';', name)?])
        });
        names.fold(0, |sum: u64, length| sum.saturating_add(*length))
    }

    /// Counts what the references in a piece of the document add to it.
    fn count(&mut self, piece: &[u8], at: usize) -> Result<u64, Fault> {
        let length = self.expansion(piece);
        self.added = self.added.saturating_add(length);
        // The text itself may be references only: what is added to it is what counts.
        let most = self.limits.xml_expansion;
        if length > most || self.added > most.saturating_add(self.text.len() as u64) {
            return Err(self.refuse(at));
        }
        Ok(length)
    }

    /// Takes the declarations of a document type, as laxly as the parser takes them.
    fn declare(&mut self, declarations: &[u8], at: usize) -> Result<(), Fault> {
        for found in memmem::find_iter(declarations, b"<!ENTITY") {
            let rest = declarations[found + 8..].trim_ascii_start();
            let rest = rest.strip_prefix(b"%").unwrap_or(rest).trim_ascii_start();
            let Some(end) = rest.iter().position(u8::is_ascii_whitespace) else { break };
            let (name, value) = (&rest[..end], rest[end..].trim_ascii_start());
            let at = at + found;
            if value.starts_with(b"SYSTEM") || value.starts_with(b"PUBLIC") {
                let name = String::from_utf8_lossy(name);
                let what = format!("the entity '{name}' lies outside the document");
                let remedy = "Nothing is fetched: write its text into the document instead.";
                return Err(fault_at(what, remedy, self.text, at));
            }
            let Some((quote, value)) = value.split_first() else { break };
            let value = &value[..memchr(*quote, value).unwrap_or(value.len())];
            let length = self.expansion(value).saturating_add(value.len() as u64);
            if length > self.limits.xml_expansion {
                return Err(self.refuse(at));
            }
            self.lengths.insert(name.to_vec(), length);
        }
        Ok(())
    }

    /// How many attributes a tag has; what they refer to is counted. Where nothing can be referred
    /// to, a short tag has as many as it has signs of equality, or fewer.
    fn tag(
        &mut self,
        tag: &BytesStart<'_>,
        at: usize,
        bad: &impl Fn(&str, usize) -> Fault,
    ) -> Result<usize, Fault> {
        if self.lengths.is_empty() && tag.len() < SHORT_TAG {
            return Ok(memchr_iter(b'=', tag).count());
        }
        let mut attributes = 0;
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| bad(&error.to_string(), at))?;
            attributes += 1;
            let length =
                self.count(&attribute.value, at)?.saturating_add(attribute.value.len() as u64);
            if attribute.key.as_namespace_binding().is_some() && length > NAMESPACE_BYTES {
                let what = format!("a namespace of more than {} bytes", grouped(NAMESPACE_BYTES));
                return Err(fault_at(what, "Give the namespace a shorter name.", self.text, at));
            }
        }
        Ok(attributes)
    }
}

// --- JSON ------------------------------------------------------------------------------------

/// Refuses JSON whose objects and lists nest too deep, whose names stand for too much, or whose
/// contexts may define terms by each other in chains that are too long.
pub(crate) fn check_json(text: &[u8], limits: &Limits) -> Result<(), Fault> {
    let (mut depth, mut context) = (0usize, None::<(usize, usize)>);
    let (mut strings, mut longest) = (0usize, 0usize);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limits.nesting {
                    return Err(nesting("its objects and lists nest", limits.nesting));
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if let Some((_, begin)) = context.take_if(|(begun, _)| depth <= *begun) {
                    let mut json = SliceJsonParser::new(&text[begin..=at]);
                    let first = json.parse_next().unwrap_or(JsonEvent::Eof);
                    let most = limits.nesting;
                    if defining_terms(&mut json, first) > most {
                        let what = format!(
                            "more than {most} terms of its context occur in definitions of others"
                        );
                        let remedy = "If you trust the document, raise the limit `nesting`.";
                        return Err(fault_at(what, remedy, text, begin));
                    }
                }
            }
            b'"' => {
                let begin = at + 1;
                at = begin;
                loop {
                    match memchr2(b'"', b'\\', &text[at.min(text.len())..]) {
                        Some(next) if text[at + next] == b'"' => {
                            at += next;
                            break;
                        }
                        Some(next) => at += next + 2,
                        None => return Ok(()), // cut off: that is for the parser to say
                    }
                }
                let string = &text[begin..at];
                if is_too_long(string, true, limits) {
                    let (line, column) = place(text, begin);
                    return Err(too_long(limits).at(line, Some(column)));
                }
                strings += 1;
                if context.is_some() {
                    longest = longest.max(string.len());
                } else if string == b"@context" || string.contains(&b'\\') {
                    let value = text[at + 1..].trim_ascii_start().strip_prefix(b":");
                    let value = value.map(<[u8]>::trim_ascii_start).unwrap_or_default();
                    context = matches!(value.first(), Some(b'{' | b'['))
                        .then(|| (depth, text.len() - value.len()));
                }
            }
            _ => {}
        }
        at += 1;
    }
    if strings.saturating_mul(longest) > NAMES_BYTES {
        let what =
            format!("its names would stand for more than {} bytes", grouped(NAMES_BYTES as u64));
        return Err(Fault::new(what, "Give its context shorter IRIs."));
    }
    Ok(())
}

/// How many terms of a JSON-LD context, and of the contexts inside, occur in definitions: the parser
/// defines a term by calling itself for those that its definition names.
fn defining_terms<'a>(json: &mut SliceJsonParser<'a>, mut event: JsonEvent<'a>) -> usize {
    let (mut terms, mut named) = (HashSet::new(), HashSet::new());
    let (mut objects, mut arrays, mut inside) = (0usize, 0usize, 0);
    let mut key = Cow::Borrowed("");
    let prefix = |name: &str| name.split_once(':').map(|(prefix, _)| prefix.to_owned());
    loop {
        match event {
            JsonEvent::StartObject | JsonEvent::StartArray if objects == 2 && key == "@context" => {
                inside = inside.max(defining_terms(json, event));
            }
            JsonEvent::StartObject => objects += 1,
            JsonEvent::StartArray => arrays += 1,
            JsonEvent::EndObject => objects = objects.saturating_sub(1),
            JsonEvent::EndArray => arrays = arrays.saturating_sub(1),
            JsonEvent::ObjectKey(name) if objects == 1 => {
                named.extend(prefix(&name));
                terms.insert(name.into_owned());
                key = Cow::Borrowed("@id");
            }
            JsonEvent::ObjectKey(name) => key = name,
            JsonEvent::String(name) if DEFINING.contains(&&*key) => {
                named.extend(prefix(&name));
                named.insert(name.into_owned());
            }
            JsonEvent::Eof => break,
            _ => {}
        }
        if objects + arrays == 0 {
            break;
        }
        event = json.parse_next().unwrap_or(JsonEvent::Eof);
    }
    terms.intersection(&named).count() + inside
}

// --- Triple terms ----------------------------------------------------------------------------

/// The fault of something that nests too deep.
pub(crate) fn nesting(what: &str, most: usize) -> Fault {
    let remedy = "If you trust the document, raise the limit `nesting`.";
    Fault::new(format!("{what} more than {} deep", grouped(most as u64)), remedy)
}

/// How deep triple terms nest at most, and at the end, from a depth on. What looks like one in a
/// literal counts too.
pub(crate) fn deepest_terms(text: &[u8], mut depth: usize) -> (usize, usize) {
    if depth == 0 && memmem::find(text, b"<<(").is_none() {
        return (0, 0);
    }
    let (mut deepest, mut at) = (depth, 0);
    while let Some(next) = memchr2(b'<', b')', text.get(at..).unwrap_or_default()) {
        at += next;
        if text[at..].starts_with(b"<<(") {
            depth += 1;
            deepest = deepest.max(depth);
            at += 3;
        } else if text[at..].starts_with(b")>>") {
            depth = depth.saturating_sub(1);
            at += 3;
        } else {
            at += 1;
        }
    }
    (deepest, depth)
}

// --- Brackets --------------------------------------------------------------------------------

/// Where a piece of Turtle, TriG or N3 ends.
#[derive(Clone, Copy, Default)]
enum Lexed {
    #[default]
    Plain,
    /// Behind a backslash in a name.
    Escape,
    /// Behind a `<`: in an IRI, or before a second one.
    Less,
    Greater,
    Iri,
    Comment,
    /// Behind one quote, or two.
    Quote(u8),
    Quotes(u8),
    Text(u8),
    TextEscape(u8),
    /// In a long text, behind so many quotes.
    Long(u8, u8),
    LongEscape(u8),
}

/// Counts the brackets of Turtle, TriG and N3 that are open: their parser needs no recursion for
/// them, but some 200 bytes each. Those in texts, IRIs and comments do not count.
#[derive(Default)]
pub(crate) struct Brackets {
    at: Lexed,
    open: usize,
}

impl Brackets {
    /// Reads the next piece; says whether no more than so many brackets are open at once.
    pub(crate) fn read(&mut self, piece: &[u8], most: usize) -> bool {
        for &byte in piece {
            self.at = match (self.at, byte) {
                (Lexed::Plain, _) => self.plain(byte),
                (Lexed::Less, b'<') => {
                    self.open += 1;
                    Lexed::Plain
                }
                // N3's arrows, or an IRI that is relative: its brackets count.
                (Lexed::Less, b'=' | b'-') | (Lexed::Less | Lexed::Iri, b'>') => Lexed::Plain,
                (Lexed::Less | Lexed::Iri, _) => Lexed::Iri,
                (Lexed::Greater, b'>') => {
                    self.open = self.open.saturating_sub(1);
                    Lexed::Plain
                }
                (Lexed::Greater, _) => self.plain(byte),
                (Lexed::Comment, b'\n' | b'\r') | (Lexed::Escape, _) => Lexed::Plain,
                (Lexed::Comment, _) => Lexed::Comment,
                (Lexed::Quote(quote), _) if byte == quote => Lexed::Quotes(quote),
                (Lexed::Quotes(quote), _) if byte == quote => Lexed::Long(quote, 0),
                (Lexed::Quotes(_), _) => self.plain(byte),
                (Lexed::Text(quote), _) if byte == quote => Lexed::Plain,
                (Lexed::Quote(quote) | Lexed::Text(quote), b'\\') => Lexed::TextEscape(quote),
                (Lexed::Quote(quote) | Lexed::Text(quote) | Lexed::TextEscape(quote), _) => {
                    Lexed::Text(quote)
                }
                (Lexed::Long(quote, 2), _) if byte == quote => Lexed::Plain,
                (Lexed::Long(quote, count), _) if byte == quote => Lexed::Long(quote, count + 1),
                (Lexed::Long(quote, _), b'\\') => Lexed::LongEscape(quote),
                (Lexed::Long(quote, _) | Lexed::LongEscape(quote), _) => Lexed::Long(quote, 0),
            };
            if self.open > most {
                return false;
            }
        }
        true
    }

    /// Whether what was read ends inside a text, an IRI or a comment.
    pub(crate) fn is_inside(&self) -> bool {
        !matches!(self.at, Lexed::Plain | Lexed::Less | Lexed::Greater)
    }

    fn plain(&mut self, byte: u8) -> Lexed {
        match byte {
            b'(' | b'[' | b'{' => self.open += 1,
            b')' | b']' | b'}' => self.open = self.open.saturating_sub(1),
            b'<' => return Lexed::Less,
            b'>' => return Lexed::Greater,
            b'#' => return Lexed::Comment,
            b'\\' => return Lexed::Escape,
            b'"' | b'\'' => return Lexed::Quote(byte),
            _ => {}
        }
        Lexed::Plain
    }
}
