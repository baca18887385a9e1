//! Reads values out of a tree, and notes what is wrong with them and where.

use evenkeel_api::decode::{Member, Node, Position, Problem, Value};
use evenkeel_engine::digest::parse_duration;
use evenkeel_engine::time::{Nanos, SECOND};

/// Collects the problems of a file.
pub(super) struct Fields {
    file: String,
    problems: Vec<Problem>,
}

/// A value and the name of its field: `spec.flows[0].seats`.
#[derive(Debug, Clone)]
pub(super) struct Field<'n> {
    pub(super) node: &'n Node,
    pub(super) name: String,
    /// Where its name is, or the value itself if it has none.
    at: Position,
}

/// A map whose members all have known names.
#[derive(Debug, Clone)]
pub(super) struct Map<'n> {
    members: &'n [Member],
    name: String,
    at: Position,
}

/// The longest span of time that can be written.
const SPAN_MAX: f64 = 366.0 * 86_400.0;

// === impl Fields ===

impl Fields {
    pub(super) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), problems: Vec::new() }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    pub(super) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    pub(super) fn problem(&mut self, field: &Field<'_>, message: &str) {
        self.problems.push(Problem::new(&self.file, field.at, format!("{}: {message}", field.name)));
    }

    pub(super) fn missing(&mut self, map: &Map<'_>, name: &str, message: &str) {
        self.problems.push(Problem::new(&self.file, map.at, format!("{}: {message}", join(&map.name, name))));
    }

    /// A map; members of other names are problems.
    pub(super) fn map<'n>(&mut self, field: &Field<'n>, known: &[&str]) -> Option<Map<'n>> {
        let Value::Map(members) = &field.node.value else {
            self.problem(
                field,
                &format!("{}, but must be a map with {}", field.node.value.describe("a map"), known.join(", ")),
            );
            return None;
        };
        for member in members.iter().filter(|member| !known.contains(&&*member.key)) {
            let message = format!("{}: unknown field; use {}", join(&field.name, &member.key), known.join(", "));
            self.problems.push(Problem::new(&self.file, member.key_at, message));
        }
        Some(Map { members, name: field.name.clone(), at: field.at })
    }

    /// A map with members of any name.
    pub(super) fn entries<'n>(&mut self, field: &Field<'n>) -> Option<Vec<(String, Field<'n>)>> {
        let Value::Map(members) = &field.node.value else {
            self.problem(field, &format!("{}, but must be a map", field.node.value.describe("a map")));
            return None;
        };
        let entry = |member: &'n Member| {
            let name = join(&field.name, &member.key);
            (member.key.clone(), Field { node: &member.value, name, at: member.key_at })
        };
        Some(members.iter().map(entry).collect())
    }

    pub(super) fn list<'n>(&mut self, field: &Field<'n>) -> Option<Vec<Field<'n>>> {
        let Value::List(items) = &field.node.value else {
            self.problem(field, &format!("{}, but must be a list", field.node.value.describe("a map")));
            return None;
        };
        let item = |(index, node): (usize, &'n Node)| {
            let name = format!("{}[{index}]", field.name);
            Field { node, name, at: node.at }
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn text(&mut self, field: &Field<'_>) -> Option<String> {
        let text = field.node.as_str().filter(|text| !text.is_empty());
        self.wanted(field, text.map(str::to_owned), "a text")
    }

    pub(super) fn texts(&mut self, field: &Field<'_>) -> Option<Vec<String>> {
        let items = self.list(field)?;
        items.iter().map(|item| self.text(item)).collect()
    }

    pub(super) fn whole(&mut self, field: &Field<'_>, least: u32, most: u32) -> Option<u32> {
        let number = literal(field.node).and_then(|text| text.parse().ok());
        let number = number.filter(|number| (least..=most).contains(number));
        self.wanted(field, number, &format!("a whole number from {least} to {most}"))
    }

    pub(super) fn number(&mut self, field: &Field<'_>, least: f64, most: f64) -> Option<f64> {
        let number = literal(field.node).and_then(|text| text.parse().ok());
        let number = number.filter(|number| (least..=most).contains(number));
        self.wanted(field, number, &format!("a number from {least} to {most}"))
    }

    /// A span of time: a text such as `250ms`, or 0.
    pub(super) fn duration(&mut self, field: &Field<'_>) -> Option<Nanos> {
        let text = field.node.as_str().filter(|text| !text.starts_with('-'));
        let span = text.and_then(|text| parse_duration(text).ok()).and_then(|span| seconds(span.as_secs_f64()));
        let span = span.or_else(|| (literal(field.node) == Some("0")).then_some(0));
        self.wanted(field, span, "a duration, as 250ms, 10s or 1m30s")
    }

    /// A number of seconds, or a span of time with its unit.
    pub(super) fn seconds(&mut self, field: &Field<'_>) -> Option<Nanos> {
        match literal(field.node) {
            Some(text) => {
                let span = text.parse().ok().filter(|number: &f64| *number >= 0.0).and_then(seconds);
                self.wanted(field, span, "a number of seconds")
            }
            None => self.duration(field),
        }
    }

    /// Notes a problem unless the value has the expected form.
    pub(super) fn wanted<T>(&mut self, field: &Field<'_>, value: Option<T>, what: &str) -> Option<T> {
        if value.is_none() {
            self.problem(field, &format!("{}, but must be {what}", field.node.value.describe("a map")));
        }
        value
    }

    /// The one member of a map that says what it is, as in `{poisson: {rate: 5}}`.
    pub(super) fn choice<'n>(&mut self, field: &Field<'n>, known: &[&str]) -> Option<(&'n str, Field<'n>)> {
        self.choice_beside(field, known, &[])
    }

    /// The same where there may be other members beside it.
    pub(super) fn choice_beside<'n>(
        &mut self,
        field: &Field<'n>,
        known: &[&str],
        beside: &[&str],
    ) -> Option<(&'n str, Field<'n>)> {
        let map = self.map(field, &[known, beside].concat())?;
        let mut members = map.members.iter().filter(|member| !beside.contains(&&*member.key));
        let (Some(member), None) = (members.next(), members.next()) else {
            self.problem(field, &format!("must be exactly one of {}", known.join(", ")));
            return None;
        };
        let name = join(&field.name, &member.key);
        known.contains(&&*member.key).then(|| (&*member.key, Field { node: &member.value, name, at: member.key_at }))
    }
}

// === impl Field ===

impl<'n> Field<'n> {
    pub(super) fn root(node: &'n Node) -> Self {
        Self { node, name: String::new(), at: node.at }
    }

    /// A member, if it is a map that has it.
    pub(super) fn member(&self, name: &str) -> Option<Self> {
        let Value::Map(members) = &self.node.value else { return None };
        Map { members, name: self.name.clone(), at: self.at }.get(name)
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }
}

// === impl Map ===

impl<'n> Map<'n> {
    /// The member of that name, unless it is absent or null.
    pub(super) fn get(&self, name: &str) -> Option<Field<'n>> {
        let member = self.members.iter().find(|member| member.key == name)?;
        let field = Field { node: &member.value, name: join(&self.name, name), at: member.key_at };
        (member.value.value != Value::Null).then_some(field)
    }
}

fn join(map: &str, name: &str) -> String {
    if map.is_empty() { name.to_owned() } else { format!("{map}.{name}") }
}

fn literal(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Number(text) => Some(text),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "at most a year")]
fn seconds(number: f64) -> Option<Nanos> {
    (0.0..=SPAN_MAX).contains(&number).then(|| (number * SECOND as f64).round() as Nanos)
}
