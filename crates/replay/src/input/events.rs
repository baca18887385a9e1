//! Splits lists of events, `{"kind":"EventList","items":[{…},{…}]}`, arrays and rows of objects into their objects, in bounded
//! memory and however they are laid out.

use std::io::{BufRead, BufReader, Read};

use super::{PART_MAX, Part};
use crate::formats::Damage;

/// The events of one list, or of many in a row.
pub(super) struct Events<R> {
    reader: BufReader<R>,
    event: Vec<u8>,
    number: u64,
    place: ListPosition,
    is_over: bool,
}

/// The position of the reader in the text.
#[derive(Debug, Clone, Copy, Default)]
struct ListPosition {
    depth: u32,
    text: StringPosition,
    in_event: bool,
    is_too_long: bool,
    layout: ObjectLayout,
}

/// Where the objects of a text are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ObjectLayout {
    /// In the `items` of a list: the list is the first brace, its `items` the first bracket, and events are what begins inside.
    #[default]
    Items,
    /// In the rows of a table, `{"results":[[{…},{…}],…]}`.
    Cells,
    /// In an array.
    Array,
    /// One after the other, each on any number of lines.
    Row,
}

/// Whether the next byte is part of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum StringPosition {
    #[default]
    Outside,
    Inside,
    AfterBackslash,
}

/// The unit that ends with a byte.
enum ByteEnds {
    Nothing,
    Event,
    /// A line ends inside a string: something before was cut off.
    Broken,
}

// === impl Events ===

impl<R: Read> Events<R> {
    pub(super) fn new(reader: R, layout: ObjectLayout) -> Self {
        let reader = BufReader::with_capacity(1 << 18, reader);
        let place = ListPosition { layout, ..ListPosition::default() };
        Self { reader, event: Vec::new(), number: 0, place, is_over: false }
    }

    /// The next event.
    pub(super) fn next_event(&mut self) -> Option<Part<'_>> {
        self.event.clear();
        if self.is_over {
            return None;
        }
        loop {
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) if !bytes.is_empty() => bytes,
                Ok(_) if self.place.in_event => {
                    return Some(self.last(Damage::Json { problem: "the list is cut off", at: 0 }));
                }
                Ok(_) => return None,
                Err(error) => {
                    let error = error.to_string();
                    return Some(self.last(Damage::Unreadable(error)));
                }
            };
            let mut taken = bytes.len();
            let mut ended = ByteEnds::Nothing;
            for (at, byte) in bytes.iter().enumerate() {
                ended = self.place.step(*byte, &mut self.event);
                if !matches!(ended, ByteEnds::Nothing) {
                    taken = at + 1;
                    break;
                }
            }
            self.reader.consume(taken);
            let text = match ended {
                ByteEnds::Nothing => continue,
                ByteEnds::Event if self.place.is_too_long => Err(Damage::TooLong(PART_MAX)),
                ByteEnds::Event => Ok(&*self.event),
                ByteEnds::Broken => Err(Damage::Json { problem: "a string does not end", at: self.event.len() }),
            };
            self.place.is_too_long = false;
            self.number += 1;
            return Some(Part { number: self.number, text });
        }
    }

    /// The last part, which is damaged.
    fn last(&mut self, damage: Damage) -> Part<'_> {
        self.is_over = true;
        self.number += 1;
        Part { number: self.number, text: Err(damage) }
    }
}

// === impl ObjectLayout ===

impl ObjectLayout {
    /// How many braces and brackets are open where an object begins.
    const fn depth(self) -> u32 {
        match self {
            Self::Cells => 3,
            Self::Items => 2,
            Self::Array => 1,
            Self::Row => 0,
        }
    }
}

// === impl ListPosition ===

impl ListPosition {
    #[inline]
    fn step(&mut self, byte: u8, event: &mut Vec<u8>) -> ByteEnds {
        if !self.in_event && byte == b'{' && self.text == StringPosition::Outside && self.depth == self.layout.depth() {
            self.in_event = true;
        }
        if self.in_event {
            if event.len() < PART_MAX {
                event.push(byte);
            } else {
                self.is_too_long = true;
            }
        }
        if self.text != StringPosition::Outside {
            return self.step_in_string(byte);
        }
        match byte {
            b'"' => self.text = StringPosition::Inside,
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.in_event && self.depth <= self.layout.depth() {
                    self.in_event = false;
                    return ByteEnds::Event;
                }
            }
            _ => {}
        }
        ByteEnds::Nothing
    }

    fn step_in_string(&mut self, byte: u8) -> ByteEnds {
        match byte {
            _ if self.text == StringPosition::AfterBackslash => self.text = StringPosition::Inside,
            b'\\' => self.text = StringPosition::AfterBackslash,
            b'"' => self.text = StringPosition::Outside,
            b'\n' => {
                // JSON strings have no line breaks, so that the reader resumes here: between two events.
                let was_in_event = self.in_event;
                *self = Self { depth: self.layout.depth(), layout: self.layout, ..Self::default() };
                if was_in_event {
                    return ByteEnds::Broken;
                }
            }
            _ => {}
        }
        ByteEnds::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<Result<String, Damage>> {
        objects(text, ObjectLayout::Items)
    }

    fn objects(text: &str, layout: ObjectLayout) -> Vec<Result<String, Damage>> {
        let mut events = Events::new(text.as_bytes(), layout);
        let mut all = Vec::new();
        while let Some(Part { number, text }) = events.next_event() {
            all.push(text.map(|text| String::from_utf8_lossy(text).into_owned()));
            assert_eq!(number, all.len() as u64);
        }
        all
    }

    #[test]
    fn lists_in_any_layout() {
        let expected = [Ok(r#"{"a":"]}\"{"}"#.to_owned()), Ok(r#"{"b":[{},{}]}"#.to_owned())];
        assert_eq!(events(r#"{"kind":"EventList","items":[{"a":"]}\"{"},{"b":[{},{}]}],"metadata":{}}"#), expected);
        let pretty =
            "{\n  \"items\": [\n    {\"a\":\"]}\\\"{\"},\n    {\"b\":[{},{}]}\n  ],\n  \"kind\": \"EventList\"\n}\n";
        assert_eq!(events(pretty), expected);
        let many = "{\"items\":[{\"a\":\"]}\\\"{\"}]}\n{\"items\":[]}\n{\"items\":[{\"b\":[{},{}]}]}\n";
        assert_eq!(events(many), expected);
    }

    #[test]
    fn arrays_and_rows_of_objects() {
        let expected = [Ok("{\n  \"a\": [1]\n}".to_owned()), Ok("{\"b\":{}}".to_owned())];
        assert_eq!(objects("[{\n  \"a\": [1]\n},\n{\"b\":{}}]\n", ObjectLayout::Array), expected);
        assert_eq!(objects("{\n  \"a\": [1]\n}\n{\"b\":{}}", ObjectLayout::Row), expected);
    }

    #[test]
    fn cells_of_a_table() {
        let table = "{\"results\":[[{\"field\":\"a\"},{\"field\":\"b\"}],\n[{\"field\":\"c\"}]],\"statistics\":{\"bytes\":1},\"status\":\"Complete\"}";
        let expected = ["a", "b", "c"].map(|name| Ok(format!("{{\"field\":\"{name}\"}}")));
        assert_eq!(objects(table, ObjectLayout::Cells), expected);
    }

    #[test]
    fn damage_does_not_end_the_list() {
        let broken = "{\"items\":[\n{\"a\":\"cut\n{\"b\":1},\n{\"c\":2}]}";
        let found = events(broken);
        assert!(matches!(found[0], Err(Damage::Json { .. })), "{found:?}");
        assert_eq!(found[1..], [Ok("{\"b\":1}".to_owned()), Ok("{\"c\":2}".to_owned())]);
        assert_eq!(events("{\"items\":[{\"a\":1").len(), 1);
        assert!(events("").is_empty());
    }

    #[test]
    fn long_events_are_damaged() {
        let text = format!("{{\"items\":[{{\"a\":\"{}\"}},{{}}]}}", "x".repeat(PART_MAX));
        assert_eq!(events(&text), [Err(Damage::TooLong(PART_MAX)), Ok("{}".to_owned())]);
    }
}
