//! The tree that JSON and YAML are read into: plain values, each with its place in the text.

use std::collections::HashMap;
use std::fmt;

use super::SyntaxError;
use crate::path::Path;

/// How deep values may be nested. The objects of the group need less than twenty levels.
pub(super) const DEPTH_MAX: usize = 128;
/// How many values one text may hold, those that YAML repeats by an alias counted each time.
pub(super) const VALUES_MAX: usize = 1 << 20;
/// How many bytes of texts YAML may repeat by aliases.
pub(super) const COPIED_BYTES_MAX: usize = 1 << 24;
/// How many repeated names are remembered. Each comes with its path, which may be long.
const DUPLICATES_MAX: usize = 100;

/// A place in a text: both numbers count from 1, columns in characters.
///
/// Not `#[non_exhaustive]`: it is a line and a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it begins.
    pub at: Position,
}

/// A value as JSON knows them.
///
/// Not `#[non_exhaustive]`: JSON has no other values.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written: 5 and 5.0 are not the same here.
    Number(Box<str>),
    /// A text.
    String(String),
    /// A list.
    List(Vec<Node>),
    /// Members by name; no name occurs twice.
    Map(Vec<Member>),
}

/// A member of a map.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Member {
    /// The name.
    pub key: String,
    /// Where the name begins.
    pub key_at: Position,
    /// The value.
    pub value: Node,
}

/// A name that occurred twice in one map. The last value counts (API-17).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Duplicate {
    /// The path of the member.
    pub path: String,
    /// The name.
    pub key: String,
    /// Where the name occurred again.
    pub at: Position,
}

/// Collects the members of one map, and notes the names that occur twice.
#[derive(Default)]
pub(super) struct MapBuilder {
    members: Vec<Member>,
    /// Filled only once a map is too large to look through.
    index: HashMap<String, usize>,
}

/// Counts the values of a text, so that a small text cannot take much memory.
#[derive(Default)]
pub(super) struct Budget {
    values: usize,
    copied_bytes: usize,
}

const LINEAR_SEARCH_MAX: usize = 16;

// === impl Position ===

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

// === impl Node ===

impl Node {
    /// The member of that name, if the value is a map and has it.
    pub fn get(&self, name: &str) -> Option<&Node> {
        let Value::Map(members) = &self.value else { return None };
        members.iter().find(|member| member.key == name).map(|member| &member.value)
    }

    /// The text, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        let Value::String(text) = &self.value else { return None };
        Some(text)
    }

    /// Says of the whole tree that it is at this place.
    pub(super) fn move_to(&mut self, at: Position) {
        self.at = at;
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.move_to(at)),
            Value::Map(members) => {
                for member in members {
                    member.key_at = at;
                    member.value.move_to(at);
                }
            }
            _ => {}
        }
    }

    /// How many values the tree holds, this one included, and how many bytes their texts have.
    pub(super) fn size(&self) -> (usize, usize) {
        let sum = |(values, bytes), (more_values, more_bytes)| (values + more_values, bytes + more_bytes);
        match &self.value {
            Value::Null | Value::Bool(_) => (1, 0),
            Value::Number(literal) => (1, literal.len()),
            Value::String(text) => (1, text.len()),
            Value::List(items) => items.iter().map(Node::size).fold((1, 0), sum),
            Value::Map(members) => {
                let of_member = |member: &Member| sum((0, member.key.len()), member.value.size());
                members.iter().map(of_member).fold((1, 0), sum)
            }
        }
    }

    /// How many levels of values there are below this one.
    pub(super) fn depth(&self) -> usize {
        let below = |depth: Option<usize>| depth.map_or(0, |depth| depth + 1);
        match &self.value {
            Value::List(items) => below(items.iter().map(Node::depth).max()),
            Value::Map(members) => below(members.iter().map(|member| member.value.depth()).max()),
            _ => 0,
        }
    }

    /// Where the value at a path like `spec.rules[0].subjects` is, or the nearest one around it that is there.
    pub fn position_of(&self, path: &str) -> Position {
        let mut node = self;
        let mut position = self.at;
        for segment in path.split(['.', '[']) {
            let next = match (&node.value, segment.strip_suffix(']')) {
                (Value::List(items), Some(index)) => {
                    index.parse().ok().and_then(|index: usize| items.get(index)).map(|item| (item, item.at))
                }
                (Value::Map(members), None) => {
                    members.iter().find(|member| member.key == segment).map(|member| (&member.value, member.key_at))
                }
                _ => None,
            };
            let Some((found, at)) = next else { break };
            (node, position) = (found, at);
        }
        position
    }
}

impl From<&serde_json::Value> for Node {
    /// A tree without places, for what was computed and not read.
    fn from(value: &serde_json::Value) -> Self {
        let value = match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => Value::Number(number.to_string().into()),
            serde_json::Value::String(text) => Value::String(text.clone()),
            serde_json::Value::Array(items) => Value::List(items.iter().map(Node::from).collect()),
            serde_json::Value::Object(members) => Value::Map(
                members
                    .iter()
                    .map(|(key, value)| Member { key: key.clone(), key_at: Position::default(), value: value.into() })
                    .collect(),
            ),
        };
        Self { value, at: Position::default() }
    }
}

// === impl Value ===

impl Value {
    /// The kind of the value, for messages about a value of the wrong kind: `is 3`, `is a list`. A map is called as the caller
    /// says.
    pub fn describe(&self, map: &str) -> String {
        const LENGTH_MAX: usize = 40;
        match self {
            Self::Null => "is empty".to_owned(),
            Self::Bool(value) => format!("is {value}"),
            Self::Number(text) if text.len() <= LENGTH_MAX => format!("is {text}"),
            Self::String(text) if text.len() <= LENGTH_MAX => format!("is {text:?}"),
            Self::Number(_) | Self::String(_) => "is a text".to_owned(),
            Self::List(_) => "is a list".to_owned(),
            Self::Map(_) => format!("is {map}"),
        }
    }
}

// === impl MapBuilder ===

impl MapBuilder {
    /// Adds a member. A name that is there already gets the new value and is noted.
    pub(super) fn insert(&mut self, member: Member, path: &Path<'_>, duplicates: &mut Vec<Duplicate>) {
        if let Some(known) = self.find(&member.key) {
            if duplicates.len() < DUPLICATES_MAX {
                let path = path.child(&member.key).to_string();
                duplicates.push(Duplicate { path, key: member.key.clone(), at: member.key_at });
            }
            self.members[known].value = member.value;
        } else {
            self.push(member);
        }
    }

    /// Adds a member unless its name is there already.
    pub(super) fn insert_if_absent(&mut self, member: &Member) {
        if self.find(&member.key).is_none() {
            self.push(member.clone());
        }
    }

    /// The members, in the order in which their names first occurred.
    pub(super) fn finish(self) -> Vec<Member> {
        self.members
    }

    fn find(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() {
            self.members.iter().position(|member| member.key == key)
        } else {
            self.index.get(key).copied()
        }
    }

    fn push(&mut self, member: Member) {
        self.members.push(member);
        let unindexed = if self.index.is_empty() { 0 } else { self.members.len() - 1 };
        if self.members.len() > LINEAR_SEARCH_MAX {
            for (index, member) in self.members.iter().enumerate().skip(unindexed) {
                self.index.insert(member.key.clone(), index);
            }
        }
    }
}

// === impl Budget ===

impl Budget {
    /// Counts this many values at that depth.
    pub(super) fn spend(&mut self, values: usize, depth: usize, at: Position) -> Result<(), SyntaxError> {
        self.values = self.values.saturating_add(values);
        if depth > DEPTH_MAX {
            return Err(SyntaxError { at, message: format!("nested more than {DEPTH_MAX} levels deep") });
        }
        if self.values > VALUES_MAX {
            return Err(SyntaxError { at, message: format!("holds more than {VALUES_MAX} values") });
        }
        Ok(())
    }

    /// Counts a copy of a whole tree.
    pub(super) fn spend_copy(&mut self, node: &Node, depth: usize, at: Position) -> Result<(), SyntaxError> {
        let (values, bytes) = node.size();
        self.copied_bytes = self.copied_bytes.saturating_add(bytes);
        if self.copied_bytes > COPIED_BYTES_MAX {
            let message = format!("repeats more than {COPIED_BYTES_MAX} bytes by aliases");
            return Err(SyntaxError { at, message });
        }
        self.spend(values, depth, at)
    }
}
