//! `Edits`: changes to a text at places that its parser has told. Everything else stays byte for byte.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use evenkeel_api::decode::{Format, Member, Node, Position, Value};

/// Changes to a text that are collected first and carried out together.
#[derive(Debug)]
pub(super) struct Edits<'t> {
    text: &'t str,
    format: Format,
    /// Where each line begins.
    lines: Vec<usize>,
    /// The bytes at which every [`STRIDE`]th character of a line begins, for lines that are long and not ASCII.
    long_lines: HashMap<usize, Vec<usize>>,
    /// The new texts, by the bytes that they replace. The same change may be asked for twice: an anchor and its aliases share a place.
    changes: BTreeMap<(usize, usize), String>,
}

/// The text at a place is not what the parser says, because it is written with an anchor, an alias or a merge key, or over
/// several lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CannotEdit {
    pub(super) at: Position,
    pub(super) what: String,
}

/// Long lines have so many characters between two places that are remembered.
const STRIDE: usize = 1024;

type Edited = Result<(), CannotEdit>;

// === impl Edits ===

impl<'t> Edits<'t> {
    pub(super) fn new(text: &'t str, format: Format) -> Self {
        let bytes = text.as_bytes();
        // YAML counts a carriage return alone as the end of a line, JSON does not.
        let ends_line = |at: usize| match bytes[at] {
            b'\n' => true,
            b'\r' => format == Format::Yaml && bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let lines: Vec<usize> =
            std::iter::once(0).chain((0..bytes.len()).filter(|&at| ends_line(at)).map(|at| at + 1)).collect();
        let mut long_lines = HashMap::new();
        for (index, &start) in lines.iter().enumerate() {
            let line = &text[start..lines.get(index + 1).copied().unwrap_or(text.len())];
            if line.len() > STRIDE && !line.is_ascii() {
                let places = line.char_indices().step_by(STRIDE).map(|(at, _)| start + at).collect();
                long_lines.insert(index, places);
            }
        }
        Self { text, format, lines, long_lines, changes: BTreeMap::new() }
    }

    /// Replaces a text that stands at a place, in quotes or not.
    pub(super) fn replace(&mut self, at: Position, old: &str, new: &str) -> Edited {
        let rest = &self.text[self.offset(at)?..];
        let quote = usize::from(rest.starts_with(['"', '\'']));
        if !rest[quote..].starts_with(old) {
            return Err(cannot(at, format!("{old} is not written literally here")));
        }
        let from = self.offset(at)? + quote;
        self.change(from..from + old.len(), new.to_owned());
        Ok(())
    }

    /// Replaces a number.
    pub(super) fn replace_number(&mut self, at: Position, new: &str) -> Edited {
        let range = self.scalar(at)?;
        if !self.text[range.clone()].starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            return Err(cannot(at, "the number is not written literally here".to_owned()));
        }
        self.change(range, new.to_owned());
        Ok(())
    }

    /// Adds a member in front of those of a map. The name and the value are written as JSON, and for YAML as plain as it can be.
    pub(super) fn insert(&mut self, map: &Node, name: &str, value: &NewValue<'_>) -> Edited {
        let Value::Map(members) = &map.value else { return Err(cannot(map.at, "this is not a map".to_owned())) };
        let open = self.offset(map.at)?;
        let is_flow = self.text[open..].starts_with('{');
        let Some(first) = members.first() else {
            if !is_flow {
                return Err(cannot(map.at, "this map is not written literally here".to_owned()));
            }
            // There is no other member to take the quotes from, and JSON needs them.
            self.change(open + 1..open + 1, value.flow(name, self.format == Format::Json));
            return Ok(());
        };
        let key = self.offset(first.key_at)?;
        let before = &self.text[self.line_start(key)..key];
        let is_alone = before.chars().all(|c| c == ' ' || c == '\t');
        let is_quoted = self.text[key..].starts_with('"');
        let newline = self.newline();
        let new = match (is_flow, is_alone) {
            (true, true) => format!("{},{newline}{before}", value.flow(name, is_quoted)),
            (true, false) => format!("{}, ", value.flow(name, is_quoted)),
            (false, true) => format!("{}{newline}{before}", value.block(name, before, newline)),
            (false, false) => return Err(cannot(first.key_at, format!("there is no room for {name} here"))),
        };
        self.change(key..key, new);
        Ok(())
    }

    /// Removes a member from a map that is the value of `owner`, and `owner` too if nothing else is in the map.
    pub(super) fn remove(&mut self, owner: &Member, name: &str) -> Edited {
        let Value::Map(members) = &owner.value.value else { return Ok(()) };
        let Some(index) = members.iter().position(|member| member.key == name) else { return Ok(()) };
        let member = &members[index];
        let open = self.offset(owner.value.at)?;
        if self.text[open..].starts_with('{') {
            self.remove_flow(members, index)
        } else {
            self.remove_line(owner, member)
        }
    }

    fn remove_flow(&mut self, members: &[Member], index: usize) -> Edited {
        let member = &members[index];
        let key = self.offset(member.key_at)?;
        let range = match (members.get(index + 1), index.checked_sub(1)) {
            (Some(next), _) => key..self.offset(next.key_at)?,
            (None, Some(before)) => self.scalar(members[before].value.at)?.end..self.scalar(member.value.at)?.end,
            (None, None) => key..self.scalar(member.value.at)?.end,
        };
        // The map has only this member.
        if self.text[range.clone()].contains('#') {
            return Err(cannot(member.key_at, format!("a comment is next to {}", member.key)));
        }
        self.change(range, String::new());
        Ok(())
    }

    fn remove_line(&mut self, owner: &Member, member: &Member) -> Edited {
        let key = self.offset(member.key_at)?;
        let start = self.line_start(key);
        let is_alone = self.text[start..key].trim().is_empty();
        let is_one_line = match &member.value.value {
            Value::Null => true,
            Value::List(_) | Value::Map(_) => false,
            _ => member.value.at.line == member.key_at.line && self.ends_in_its_line(member.value.at)?,
        };
        if !is_alone || !is_one_line {
            return Err(cannot(member.key_at, format!("{} is not on a line of its own", member.key)));
        }
        let end = self.line_end(key);
        let is_last = matches!(&owner.value.value, Value::Map(members) if members.len() == 1);
        if !is_last {
            self.change(start..end, String::new());
            return Ok(());
        }
        let owner_key = self.offset(owner.key_at)?;
        let owner_start = self.line_start(owner_key);
        let owner_text = self.text[owner_key..start].trim_end();
        let owner_alone = self.text[owner_start..owner_key].trim().is_empty();
        if owner_alone && owner_text.trim_matches(['"', '\'', ':', ' ']) == owner.key {
            self.change(owner_start..end, String::new());
            return Ok(());
        }
        // Something else stands between the two, such as a comment.
        let Some(colon) = self.text[owner_key..start].find(':') else {
            return Err(cannot(owner.key_at, format!("{} is not written literally here", owner.key)));
        };
        self.change(owner_key + colon + 1..owner_key + colon + 1, " {}".to_owned());
        self.change(start..end, String::new());
        Ok(())
    }

    /// The text with all changes.
    pub(super) fn apply(&self) -> Result<String, CannotEdit> {
        let (mut result, mut done) = (String::with_capacity(self.text.len() + 64), 0);
        for ((from, to), new) in &self.changes {
            if *from < done {
                return Err(cannot(self.position(*from), "two changes meet here".to_owned()));
            }
            result.push_str(&self.text[done..*from]);
            result.push_str(new);
            done = *to;
        }
        result.push_str(&self.text[done..]);
        Ok(result)
    }

    fn change(&mut self, range: Range<usize>, new: String) {
        self.changes.insert((range.start, range.end), new);
    }

    /// The byte at a place.
    fn offset(&self, at: Position) -> Result<usize, CannotEdit> {
        let found = at.line.checked_sub(1).zip(at.column.checked_sub(1)).and_then(|(line, column)| {
            let (line, column) = (line as usize, column as usize);
            let start = *self.lines.get(line)?;
            let end = self.lines.get(line + 1).copied().unwrap_or(self.text.len());
            let (start, column) = match self.long_lines.get(&line) {
                Some(places) => (*places.get(column / STRIDE)?, column % STRIDE),
                // A line that is longer than this is ASCII.
                None if end - start > STRIDE => return (column <= end - start).then_some(start + column),
                None => (start, column),
            };
            let mut bytes = self.text[start..end].char_indices().map(|(at, _)| at).chain([end - start]);
            bytes.nth(column).map(|at| start + at)
        });
        found.ok_or_else(|| cannot(at, "this place is not in the text".to_owned()))
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|&start| start <= offset);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Position { line: narrow(line), column: narrow(self.text[start..offset].chars().count() + 1) }
    }

    fn line_start(&self, offset: usize) -> usize {
        let line = self.lines.partition_point(|&start| start <= offset);
        self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0)
    }

    /// Where the next line begins.
    fn line_end(&self, offset: usize) -> usize {
        let line = self.lines.partition_point(|&start| start <= offset);
        self.lines.get(line).copied().unwrap_or(self.text.len())
    }

    fn newline(&self) -> &'static str {
        let first = self.lines.get(1).map_or("", |&next| &self.text[..next]);
        if first.ends_with("\r\n") { "\r\n" } else { "\n" }
    }

    /// The bytes of a scalar, its quotes included.
    fn scalar(&self, at: Position) -> Result<Range<usize>, CannotEdit> {
        let start = self.offset(at)?;
        let rest = &self.text[start..];
        let length = match rest.as_bytes().first() {
            Some(b'"') => {
                let mut is_escaped = false;
                rest.bytes().skip(1).position(|byte| {
                    let ends = byte == b'"' && !is_escaped;
                    is_escaped = byte == b'\\' && !is_escaped;
                    ends
                })
            }
            // Two quotes in a row are one that belongs to the text; the second begins another part of it.
            Some(b'\'') => rest[1..].find('\''),
            _ => None,
        };
        let plain = || rest.find(['\n', '\r', ',', '}', ']', '#']).unwrap_or(rest.len());
        let length = length.map_or_else(|| rest[..plain()].trim_end().len(), |inner| inner + 2);
        Ok(start..start + length)
    }

    /// Whether nothing but white space and a comment follows a scalar in its line.
    fn ends_in_its_line(&self, at: Position) -> Result<bool, CannotEdit> {
        let scalar = self.scalar(at)?;
        let rest = self.text[scalar.end..self.line_end(scalar.start)].trim();
        let is_block = self.text[scalar].starts_with(['|', '>']);
        Ok(!is_block && (rest.is_empty() || rest.starts_with('#')))
    }
}

fn cannot(at: Position, what: String) -> CannotEdit {
    CannotEdit { at, what }
}

/// The value of a new member.
#[derive(Debug, Clone, Copy)]
pub(super) enum NewValue<'a> {
    Number(&'a str),
    /// An empty text.
    Empty,
    /// A map with one member, an empty text.
    MapOfEmpty(&'a str),
}

// === impl NewValue ===

impl NewValue<'_> {
    /// `name: value`, inside of braces.
    fn flow(&self, name: &str, is_quoted: bool) -> String {
        let quoted = |name: &str| if is_quoted { format!("\"{name}\"") } else { name.to_owned() };
        let name = quoted(name);
        let empty = if is_quoted { "\"\"" } else { "''" };
        match self {
            Self::Number(number) => format!("{name}: {number}"),
            Self::Empty => format!("{name}: {empty}"),
            Self::MapOfEmpty(inner) => format!("{name}: {{{}: {empty}}}", quoted(inner)),
        }
    }

    /// The member in lines of its own.
    fn block(&self, name: &str, indent: &str, newline: &str) -> String {
        match self {
            Self::Number(number) => format!("{name}: {number}"),
            Self::Empty => format!("{name}: ''"),
            Self::MapOfEmpty(inner) => format!("{name}:{newline}{indent}  {inner}: ''"),
        }
    }
}
