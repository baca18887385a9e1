//! From a tree to a short form, with everything that is wrong in it.

use std::str::FromStr;

use super::level::Part;
use super::rule::RuleSeats;
use super::{KEYS, Per, ShortForm, ShortLevel, ShortLevels, ShortProblem, ShortRule};
use crate::annotations::{FlowBy, HeaderValues};
use crate::decode::{Document, Member, Node, Problem, Problems, Value, parse_text};
use crate::duration;
use crate::spelling::closest;

/// Reads one part of a form, and collects what is wrong with it.
struct Reader<'a> {
    problems: &'a mut Vec<ShortProblem>,
}

/// Whether a document is a short form, or settings with one: it has `levels` or `match`, and is no object.
pub fn is_short_form(root: &Node) -> bool {
    let has = |name: &str| root.get(name).is_some();
    KEYS.into_iter().any(has) && !has("apiVersion") && !has("kind")
}

// === impl ShortForm ===

impl ShortForm {
    /// Reads a text that holds `levels` and `match` and nothing else. `file` is what problems call it.
    pub fn parse(file: &str, text: &[u8]) -> Result<Self, Problems> {
        let documents = parse_text(text).map_err(|error| Problem::new(file, error.at, error.message))?;
        let [document] = &*documents else {
            let at = documents.get(1).map(|second| second.root.at).unwrap_or_default();
            return Err(Problem::new(file, at, "expected `levels` and `match`, once").into());
        };
        Self::from_document(file, document)
    }

    /// The same for a document that has been parsed.
    pub fn from_document(file: &str, document: &Document) -> Result<Self, Problems> {
        let root = &document.root;
        let mut others = Vec::new();
        if let Value::Map(members) = &root.value {
            for Member { key, key_at, .. } in members.iter().filter(|member| !KEYS.contains(&member.key.as_str())) {
                let message = match closest(key, &KEYS) {
                    Some(meant) => format!("unknown key `{key}`; did you mean `{meant}`?"),
                    None => format!(
                        "`{key}` is neither `levels` nor `match`; if this is a settings file, pass it with --config"
                    ),
                };
                others.push(Problem::new(file, *key_at, message));
            }
        } else {
            others.push(Problem::new(file, root.at, "expected `levels` and `match`"));
        }
        match Problems::new(others) {
            Some(others) => Err(others),
            None => Self::from_settings(file, document),
        }
    }

    /// The same for a document that may hold other settings too.
    pub fn from_settings(file: &str, document: &Document) -> Result<Self, Problems> {
        let (form, found) = Self::read(&document.root);
        let place =
            |problem: ShortProblem| Problem::new(file, document.root.position_of(&problem.field), problem.to_string());
        let twice =
            document.duplicates.iter().filter(|duplicate| KEYS.into_iter().any(|key| duplicate.path.starts_with(key)));
        let twice = twice.map(|duplicate| {
            Problem::new(file, duplicate.at, format!("{}: is there twice; keep one of them", duplicate.path))
        });
        let problems = found.into_iter().map(place).chain(twice).collect();
        Problems::new(problems).map_or(Ok(form), Err)
    }

    /// The form of a tree, and everything that is wrong with it.
    fn read(root: &Node) -> (Self, Vec<ShortProblem>) {
        let mut problems = Vec::new();
        let mut reader = Reader { problems: &mut problems };
        let levels = root.get("levels").map(|node| reader.levels(node)).unwrap_or_default();
        let rules = root.get("match").map(|node| reader.rules(node)).unwrap_or_default();
        let form = Self { levels, rules };
        // A part that could not be read leaves a hole, about which there are no further problems: `levels.a`, `match[0]`.
        let item = |field: &str| {
            let parts = if field.starts_with("match") { 1 } else { 2 };
            field.split('.').take(parts).map(str::to_owned).collect::<Vec<_>>()
        };
        let has_levels = !problems.iter().any(|known| known.field.starts_with("levels"));
        let is_about_hole = |problem: &ShortProblem| {
            let is_about_level = problem.field == "levels" || problem.field.rsplit('.').next() == Some("level");
            problems.iter().any(|known| item(&known.field) == item(&problem.field)) || !has_levels && is_about_level
        };
        let more: Vec<_> = form.problems().into_iter().filter(|problem| !is_about_hole(problem)).collect();
        problems.extend(more);
        (form, problems)
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn add(&mut self, field: &str, message: impl Into<String>) {
        self.problems.push(ShortProblem::new(field, message));
    }

    fn wrong(&mut self, field: &str, found: &Value, wanted: &str) {
        self.add(field, format!("{}, but {wanted}", found.describe("a group of keys")));
    }

    pub(super) fn levels(&mut self, node: &Node) -> ShortLevels {
        let mut levels = ShortLevels::default();
        match &node.value {
            Value::Map(members) => {
                for Member { key, value, .. } in members {
                    let level = self.level(&format!("levels.{key}"), value);
                    levels.0.push((key.clone(), level));
                }
            }
            Value::Null => self.add("levels", "is empty; name a level, as `interactive: {share: 70}`"),
            other => self.wrong("levels", other, "must be levels by name; write `interactive: {share: 70}` below it"),
        }
        levels
    }

    fn level(&mut self, field: &str, node: &Node) -> ShortLevel {
        let mut level = ShortLevel::default();
        let members = match &node.value {
            Value::Map(members) => members.as_slice(),
            Value::Null => &[],
            other => {
                self.wrong(field, other, "must be what the level has; write `{share: 70}`");
                &[]
            }
        };
        for Member { key, value, .. } in members {
            let field = format!("{field}.{key}");
            match key.as_str() {
                "share" => level.share = self.share(&field, value),
                "lend" => level.lend = self.part(&field, value),
                "borrow" => level.borrow = self.part(&field, value),
                "queue" => level.queue = self.number(&field, value),
                "perClient" => level.per_client = self.number(&field, value),
                "wait" => level.wait = self.duration(&field, value),
                "reject" => level.reject = self.yes(&field, value),
                "maxLongRunning" => level.max_long_running = self.number(&field, value),
                "revocable" => level.revocable = self.yes(&field, value),
                _ => self.unknown(&field, key, &ShortLevel::KEYS),
            }
        }
        level
    }

    pub(super) fn rules(&mut self, node: &Node) -> Vec<ShortRule> {
        match &node.value {
            Value::List(items) => {
                items.iter().enumerate().map(|(index, item)| self.rule(&format!("match[{index}]"), item)).collect()
            }
            Value::Null => Vec::new(),
            other => {
                self.wrong("match", other, "must be a list; begin each match with `- `, as `- {level: interactive}`");
                Vec::new()
            }
        }
    }

    fn rule(&mut self, field: &str, node: &Node) -> ShortRule {
        let mut rule = ShortRule::default();
        let Value::Map(members) = &node.value else {
            self.wrong(field, &node.value, "must be a match; write `- {group: paying, level: interactive}`");
            return rule;
        };
        for Member { key, value, .. } in members {
            let field = format!("{field}.{key}");
            match key.as_str() {
                "user" => rule.users = self.texts(&field, value),
                "group" => rule.groups = self.texts(&field, value),
                "method" => rule.methods = self.texts(&field, value),
                "path" => rule.paths = self.texts(&field, value),
                "model" => rule.models = self.texts(&field, value),
                "header" => self.headers(&field, value, &mut rule),
                "level" => rule.level = self.text(&field, value),
                "exempt" => rule.exempt = self.yes(&field, value),
                "weight" => rule.weight = self.number(&field, value),
                "per" => rule.per = self.per(&field, value),
                "seats" => rule.seats = self.seats(&field, value),
                "rate" => rule.rate = self.parsed(&field, value, "100/s"),
                "cost" => rule.cost = self.parsed(&field, value, "bytes"),
                "costPerSeat" => rule.cost_per_seat = self.decimal(&field, value),
                "seatsMax" => rule.seats_max = self.number(&field, value),
                _ => self.unknown(&field, key, &ShortRule::KEYS),
            }
        }
        rule
    }

    fn unknown(&mut self, field: &str, key: &str, known: &[&str]) {
        match closest(key, known) {
            Some(meant) => self.add(field, format!("unknown key `{key}`; did you mean `{meant}`?")),
            None => self.add(field, format!("unknown key `{key}`; known ones are {}", known.join(", "))),
        }
    }

    fn share(&mut self, field: &str, node: &Node) -> Option<i64> {
        if let Some(percent) = node.as_str().and_then(|text| text.strip_suffix('%')) {
            let message =
                format!("shares are relative to those of the other levels and have no `%`; write `{percent}`");
            self.add(field, message);
            return None;
        }
        self.number(field, node)
    }

    fn number(&mut self, field: &str, node: &Node) -> Option<i64> {
        let number = match &node.value {
            Value::Number(text) => text.parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.wrong(field, &node.value, "must be a whole number, as `40`");
        }
        number
    }

    fn seats(&mut self, field: &str, node: &Node) -> Option<RuleSeats> {
        match &node.value {
            Value::String(text) if text == "learnt" => Some(RuleSeats::Learnt),
            Value::String(text) => {
                let message = match closest(text, &["learnt"]) {
                    Some(meant) => format!("unknown word `{text}`; did you mean `{meant}`?"),
                    None => format!("unknown word `{text}`; write a whole number, or `learnt`"),
                };
                self.add(field, message);
                None
            }
            _ => self.number(field, node).map(RuleSeats::Number),
        }
    }

    /// A number that need not be whole, as it is written.
    fn decimal(&mut self, field: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Number(text) => Some(text.to_string()),
            other => {
                self.wrong(field, other, "must be a number, as `0.5`");
                None
            }
        }
    }

    /// A text that says something in words of its own.
    fn parsed<T: FromStr<Err: std::fmt::Display>>(&mut self, field: &str, node: &Node, example: &str) -> Option<T> {
        let text = match &node.value {
            Value::String(text) => text,
            other => {
                self.wrong(field, other, &format!("must be text, as `{example}`"));
                return None;
            }
        };
        text.parse().map_err(|problem| self.add(field, format!("{text:?}: {problem}"))).ok()
    }

    fn part(&mut self, field: &str, node: &Node) -> Option<Part> {
        let part = match &node.value {
            Value::Number(text) => text.parse().ok().map(Part::Percent),
            Value::String(text) if text == "all" => Some(Part::All),
            Value::String(text) => text.strip_suffix('%').and_then(|text| text.parse().ok()).map(Part::Percent),
            _ => None,
        };
        if part.is_none() {
            self.wrong(field, &node.value, "must be a percentage or `all`; write for example `50%`");
        }
        part
    }

    fn duration(&mut self, field: &str, node: &Node) -> Option<std::time::Duration> {
        let read = match &node.value {
            Value::String(text) => duration::parse(text),
            Value::Number(text) => Err(format!("{text} has no unit; write `{text}s` for seconds")),
            other => Err(format!("{}, but must be a duration, as `30s`", other.describe("a group of keys"))),
        };
        read.map_err(|message| self.add(field, message)).ok()
    }

    /// A word that can only be said or left out.
    fn yes(&mut self, field: &str, node: &Node) -> bool {
        match &node.value {
            Value::Bool(value) => *value,
            other => {
                self.wrong(field, other, "must be `true`, or left out");
                false
            }
        }
    }

    fn text(&mut self, field: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(text) => {
                self.add(field, format!("is the number {text}, but must be text; write it in quotes, as \"{text}\""));
                None
            }
            Value::Bool(value) => {
                self.add(field, format!("is {value}, but must be text; write it in quotes, as \"{value}\""));
                None
            }
            other => {
                self.wrong(field, other, "must be text");
                None
            }
        }
    }

    /// One text, or a list of texts.
    fn texts(&mut self, field: &str, node: &Node) -> Vec<String> {
        match &node.value {
            Value::List(items) if items.is_empty() => {
                self.add(field, "is an empty list, which nothing matches; leave it out to match everything");
                Vec::new()
            }
            Value::List(items) => {
                let text = |(index, item)| self.text(&format!("{field}[{index}]"), item);
                items.iter().enumerate().filter_map(text).collect()
            }
            _ => self.text(field, node).into_iter().collect(),
        }
    }

    fn per(&mut self, field: &str, node: &Node) -> Option<Per> {
        let text = self.text(field, node)?;
        let per = text.parse();
        if per.is_err() {
            let message = match closest(&text, &["user", "address", "path", "nobody"]) {
                Some(meant) => format!("unknown word `{text}`; did you mean `{meant}`?"),
                None => format!("unknown word `{text}`; use {}", Per::WORDS),
            };
            self.add(field, message);
        }
        per.ok()
    }

    fn headers(&mut self, field: &str, node: &Node, rule: &mut ShortRule) {
        let Value::Map(members) = &node.value else {
            return self.wrong(field, &node.value, "must be headers with their values; write `{X-Plan: gold}`");
        };
        if members.is_empty() {
            self.add(field, "names no header; write `{X-Plan: gold}`, or leave it out");
        }
        for Member { key, value, .. } in members {
            let field = format!("{field}.{key}");
            let values = self.texts(&field, value);
            if !values.is_empty()
                && let Err(message) = rule.headers.add(key, HeaderValues::of(values))
            {
                self.add(&field, message);
            }
        }
    }
}

// === impl Per ===

impl FromStr for Per {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "user" => Ok(Self::User),
            "nobody" => Ok(Self::Nobody),
            _ => FlowBy::from_str(text).map(Self::from).map_err(|_| format!("{text:?} is none of {}", Self::WORDS)),
        }
    }
}

// === impl serde ===

/// Levels of a tree without places.
pub(super) fn levels_of(node: &Node) -> Result<ShortLevels, ShortProblem> {
    let mut problems = Vec::new();
    let levels = Reader { problems: &mut problems }.levels(node);
    problems.into_iter().next().map_or(Ok(levels), Err)
}

/// A match of a tree without places.
pub(super) fn rule_of(node: &Node) -> Result<ShortRule, ShortProblem> {
    let mut problems = Vec::new();
    let rule = Reader { problems: &mut problems }.rule("match", node);
    problems.into_iter().next().map_or(Ok(rule), Err)
}
