//! Reads YAML into trees, one for each document of the text.
//!
//! Events come from `saphyr-parser`; anchors, merge keys and the types of plain scalars are resolved here, as
//! Kubernetes resolves them, so that a manifest means the same to both.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::tree::{Budget, MapBuilder};
use super::yaml_scalar::{plain_key, plain_value};
use super::{Document, Duplicate, Format, Member, Node, Position, SyntaxError, Value};
use crate::path::Path;

/// Reads all documents of a YAML text. A document without content is left out.
pub fn parse_yaml(text: &[u8]) -> Result<Vec<Document>, SyntaxError> {
    let text = super::utf8(text)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    documents(text).map_err(|error| if error.message == SyntaxError::TABS { at_tab(text, error) } else { error })
}

fn documents(text: &str) -> Result<Vec<Document>, SyntaxError> {
    let mut reader = YamlReader {
        events: Parser::new_from_str(text),
        anchors: HashMap::new(),
        budget: Budget::default(),
        duplicates: Vec::new(),
    };
    let mut documents = Vec::new();
    loop {
        let (event, at) = reader.next()?;
        match event {
            Event::DocumentStart(_) => {
                reader.anchors.clear();
                let root = reader.node(&Path::Root, 0)?;
                let duplicates = std::mem::take(&mut reader.duplicates);
                if root.value != Value::Null {
                    documents.push(Document { root, duplicates, format: Format::Yaml });
                }
            }
            Event::StreamEnd => return Ok(documents),
            Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
            _ => return Err(SyntaxError { at, message: "expected the start of a document".to_owned() }),
        }
    }
}

/// The same error at the tab: the parser names the start of what the tab is in.
fn at_tab(text: &str, error: SyntaxError) -> SyntaxError {
    for (line, content) in (1..).zip(text.lines()).skip_while(|(line, _)| *line < error.at.line) {
        let indentation = &content[..content.len() - content.trim_start().len()];
        if let Some(column) = indentation.find('\t').and_then(|column| u32::try_from(column + 1).ok()) {
            return SyntaxError { at: Position { line, column }, ..error };
        }
    }
    error
}

struct YamlReader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    budget: Budget,
    duplicates: Vec<Duplicate>,
}

/// The members of a map as they are read; those of merge keys come in at the end, where no other has their name.
#[derive(Default)]
struct MapMembers {
    own: MapBuilder,
    merged: Vec<Node>,
}

// === impl YamlReader ===

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Position), SyntaxError> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, position(&span.start))),
            Some(Err(error)) => Err(error.into()),
            None => Ok((Event::StreamEnd, Position::default())),
        }
    }

    fn node(&mut self, path: &Path<'_>, depth: usize) -> Result<Node, SyntaxError> {
        let (event, at) = self.next()?;
        self.node_from(event, at, path, depth)
    }

    fn node_from(
        &mut self,
        event: Event<'a>,
        at: Position,
        path: &Path<'_>,
        depth: usize,
    ) -> Result<Node, SyntaxError> {
        self.budget.spend(1, depth, at)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (scalar(&text, style, tag.as_deref(), at)?, anchor),
            Event::SequenceStart(anchor, _) => (Value::List(self.list(path, depth)?), anchor),
            Event::MappingStart(anchor, _) => (Value::Map(self.map(path, depth)?), anchor),
            Event::Alias(anchor) => return self.alias(anchor, depth, at),
            _ => return Err(SyntaxError { at, message: "expected a value".to_owned() }),
        };
        let node = Node { value, at };
        if anchor > 0 {
            // A copy of its own: an alias is counted when it is repeated, and this one as well.
            self.budget.spend_copy(&node, depth, at)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: usize, depth: usize, at: Position) -> Result<Node, SyntaxError> {
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(SyntaxError { at, message: "an alias inside the value that it stands for".to_owned() });
        };
        self.budget.spend_copy(node, depth + node.depth(), at)?;
        Ok(Node { at, ..node.clone() })
    }

    fn list(&mut self, path: &Path<'_>, depth: usize) -> Result<Vec<Node>, SyntaxError> {
        let mut items = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(items);
            }
            items.push(self.node_from(event, at, &path.index(items.len()), depth + 1)?);
        }
    }

    fn map(&mut self, path: &Path<'_>, depth: usize) -> Result<Vec<Member>, SyntaxError> {
        let mut members = MapMembers::default();
        loop {
            let (event, key_at) = self.next()?;
            let (key, is_merge_key) = match event {
                Event::MappingEnd => return members.finish(),
                Event::Scalar(text, style, anchor, tag) => {
                    if anchor > 0 {
                        let value = scalar(&text, style, tag.as_deref(), key_at)?;
                        self.anchors.insert(anchor, Node { value, at: key_at });
                    }
                    let is_plain = style == ScalarStyle::Plain && tag.is_none();
                    if is_plain { (plain_key(&text), text == "<<") } else { (text.into_owned(), false) }
                }
                _ => return Err(SyntaxError { at: key_at, message: "the name of a member must be a text".to_owned() }),
            };
            let value = self.node(&path.child(&key), depth + 1)?;
            if is_merge_key {
                members.merged.push(value);
            } else {
                members.own.insert(Member { key, key_at, value }, path, &mut self.duplicates);
            }
        }
    }
}

// === impl MapMembers ===

impl MapMembers {
    fn finish(mut self) -> Result<Vec<Member>, SyntaxError> {
        for node in &self.merged {
            let maps = match &node.value {
                Value::List(items) => items.as_slice(),
                _ => std::slice::from_ref(node),
            };
            for map in maps {
                let Value::Map(members) = &map.value else {
                    let message = "the value of the merge key '<<' must be a map or a list of maps".to_owned();
                    return Err(SyntaxError { at: map.at, message });
                };
                for member in members {
                    self.own.insert_if_absent(member);
                }
            }
        }
        Ok(self.own.finish())
    }
}

// === impl SyntaxError ===

impl From<ScanError> for SyntaxError {
    fn from(error: ScanError) -> Self {
        let is_about_tabs =
            error.info().split(|letter: char| !letter.is_alphabetic()).any(|word| matches!(word, "tab" | "tabs"));
        let message = if is_about_tabs { Self::TABS } else { error.info() };
        Self { at: position(error.marker()), message: message.to_owned() }
    }
}

fn position(marker: &Marker) -> Position {
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Position { line: narrow(marker.line()), column: narrow(marker.col()).saturating_add(1) }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Result<Value, SyntaxError> {
    let core_tag = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    match (core_tag, style) {
        (Some("int" | "float" | "bool" | "null"), _) | (None, ScalarStyle::Plain)
            if tag.is_none() || core_tag.is_some() =>
        {
            plain_value(text).map_err(|message| SyntaxError { at, message })
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Document {
        let mut documents = parse_yaml(text.as_bytes()).unwrap();
        assert_eq!(documents.len(), 1, "{documents:?}");
        documents.remove(0)
    }

    fn error(text: &str) -> String {
        let error = parse_yaml(text.as_bytes()).unwrap_err();
        format!("{}: {}", error.at, error.message)
    }

    #[test]
    fn places_are_lines_and_columns_counted_from_one() {
        let root = one("metadata:\n  name: é\n  labels: {a: b}\n").root;
        assert_eq!(root.position_of("metadata.labels.a").to_string(), "3:12");
        assert_eq!(root.get("metadata").and_then(|node| node.get("name")).unwrap().at.to_string(), "2:9");
        assert_eq!(root.position_of("metadata.annotations.x").to_string(), "1:1");
    }

    #[test]
    fn documents_without_content_are_left_out() {
        let documents = parse_yaml(b"---\n# nothing\n---\na: 1\n---\nb: 2\n...\n").unwrap();
        assert_eq!(documents.len(), 2);
        assert!(parse_yaml(b"").unwrap().is_empty());
    }

    #[test]
    fn api_82_a_name_that_occurs_twice_is_reported_at_its_second_place() {
        let document = one("labels:\n  a: b\n  a: c\n");
        assert_eq!(document.root.get("labels").unwrap().get("a").unwrap().as_str(), Some("c"));
        let duplicate = &document.duplicates[0];
        assert_eq!((duplicate.path.as_str(), duplicate.key.as_str(), duplicate.at.line), ("labels.a", "a", 3));
    }

    #[test]
    fn aliases_and_merge_keys_repeat_what_they_stand_for() {
        let root = one("base: &base {verbs: [get], m: 1}\nrule:\n  <<: *base\n  m: 2\nagain: *base\n").root;
        assert_eq!(root.get("rule").unwrap().get("m").unwrap().value, Value::Number("2".into()));
        assert!(root.get("rule").unwrap().get("verbs").is_some());
        assert_eq!(root.get("again").unwrap().get("m").unwrap().value, Value::Number("1".into()));
    }

    #[test]
    fn a_text_that_grows_by_aliases_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..20 {
            let previous = format!("*a{}, ", level - 1).repeat(9);
            text += &format!("a{level}: &a{level} [{}]\n", previous.trim_end_matches(", "));
        }
        assert!(error(&text).ends_with("holds more than 1048576 values"), "{}", error(&text));
    }

    #[test]
    fn a_long_text_that_is_repeated_often_is_refused() {
        let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), "*a, ".repeat(5000));
        assert!(error(&text).ends_with("repeats more than 16777216 bytes by aliases"), "{}", error(&text));
    }

    #[test]
    fn an_alias_may_stand_for_a_name() {
        let root = one("&key name: *key\n").root;
        assert_eq!(root.get("name").unwrap().as_str(), Some("name"));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(error(&nested(200)).contains("nested more than 128 levels deep"));
        // The parser below has a limit of its own.
        assert!(error(&nested(10_000)).contains("recursion limit exceeded"));
        assert!(error(&"- ".repeat(10_000)).contains("nested more than 128 levels deep"));
        let mut chained = "a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n".to_owned();
        for level in 1..20 {
            chained += &format!("a{level}: &a{level} [[[[[[[[[[*a{}]]]]]]]]]]\n", level - 1);
        }
        assert!(error(&chained).contains("nested more than 128 levels deep"), "{}", error(&chained));
    }

    #[test]
    fn errors_of_syntax_have_a_place() {
        assert!(error("a: b: c").starts_with("1:"), "{}", error("a: b: c"));
        for (text, place) in [
            ("metadata:\n\tname: x\n", "2:1"),
            ("a:\n  b: 1\n\tc: 2\n", "3:1"),
            ("a:\n- b\n\t- c\n", "3:1"),
            ("a: 1\n\tb: 2\n", "2:1"),
        ] {
            assert_eq!(error(text), format!("{place}: {}", SyntaxError::TABS), "{text:?}");
        }
        assert_eq!(error("? [a]\n: b\n"), "1:3: the name of a member must be a text");
        assert_eq!(error("a: &a [*a]\n"), "1:8: an alias inside the value that it stands for");
        assert!(error("<<: 5\n").starts_with("1:5: the value of the merge key"));
    }
}
