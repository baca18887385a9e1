//! Whether a short form makes sense, and every problem if not.

use std::collections::HashSet;

use super::level::{Part, default_per_client};
use super::rule::RuleSeats;
use super::{Per, ShortForm, ShortLevel, ShortProblem, ShortRule};
use crate::annotations::{self, SEATS_MAX, WAIT_MAX, WEIGHT_MAX, check_header_name};
use crate::bootstrap::{CATCH_ALL, EXEMPT};
use crate::duration;
use crate::spelling::closest;

/// The methods of HTTP.
pub(super) const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];
/// How many matches there may be: each has a precedence of its own.
const RULES_MAX: usize = 900;
const SHARE_MAX: i64 = 10_000;
const BORROW_MAX: i64 = 10_000;
const QUEUE_MAX: i64 = 1_000_000;
/// The names of flow schemas begin with those of levels.
const NAME_BYTES_MAX: usize = 200;

/// Collects the problems of one level or match.
struct Finder<'a> {
    prefix: String,
    problems: &'a mut Vec<ShortProblem>,
}

// === impl ShortForm ===

impl ShortForm {
    /// Everything that is wrong with it.
    pub fn problems(&self) -> Vec<ShortProblem> {
        let mut problems = Vec::new();
        if self.levels.0.is_empty() && self.rules.iter().all(|rule| rule.level.is_none()) && !self.is_empty() {
            problems.push(ShortProblem::new(
                "levels",
                "there is no level; name one, as `levels: {everyone: {share: 100}}`",
            ));
        }
        if self.rules.is_empty() && !self.is_empty() {
            let first = self.levels.names().next().unwrap_or_default();
            problems.push(ShortProblem::new(
                "match",
                format!("there is no match; end with one for everybody, `- {{level: {first}}}`"),
            ));
        }
        if self.rules.len() > RULES_MAX {
            let message =
                format!("there are more than {RULES_MAX} matches; put some together with lists, as `user: [one, two]`");
            problems.push(ShortProblem::new("match", message));
        }
        let mut names = HashSet::new();
        for (name, level) in &self.levels.0 {
            let mut finder = Finder { prefix: format!("levels.{name}"), problems: &mut problems };
            if !names.insert(name) {
                finder.add("", "is there twice; keep one of them");
            }
            finder.name(name);
            finder.level(level);
        }
        let known: Vec<&str> = self.levels.names().collect();
        for (index, rule) in self.rules.iter().enumerate() {
            let mut finder = Finder { prefix: format!("match[{index}]"), problems: &mut problems };
            finder.rule(rule, &known);
        }
        problems
    }
}

// === impl Finder ===

impl Finder<'_> {
    /// `key` is empty for the level or match as a whole.
    fn add(&mut self, key: &str, message: impl Into<String>) {
        let dot = if key.is_empty() { "" } else { "." };
        self.problems.push(ShortProblem::new(format!("{}{dot}{key}", self.prefix), message));
    }

    fn range(&mut self, key: &str, value: Option<i64>, range: std::ops::RangeInclusive<i64>) {
        if let Some(value) = value.filter(|value| !range.contains(value)) {
            self.add(key, format!("is {value}, but must be a whole number from {} to {}", range.start(), range.end()));
        }
    }

    fn name(&mut self, name: &str) {
        let built_in = match name {
            EXEMPT => "is built in; write `exempt: true` in a match, and remove it here",
            CATCH_ALL => "is built in, for requests that nothing matches; give your level another name",
            _ => "",
        };
        if !built_in.is_empty() {
            return self.add("", built_in);
        }
        let is_sound = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !name.bytes().all(is_sound) || name.starts_with('-') || name.ends_with('-') || name.is_empty() {
            self.add(
                "",
                format!(
                    "{name:?} cannot be the name of a level; use lower-case letters, digits and `-`, as `interactive`"
                ),
            );
        } else if name.len() > NAME_BYTES_MAX {
            self.add("", format!("the name has more than {NAME_BYTES_MAX} characters; use a shorter one"));
        }
    }

    fn level(&mut self, level: &ShortLevel) {
        let ShortLevel { share, lend, borrow, queue, per_client, wait, reject, max_long_running, revocable } = level;
        self.range("share", *share, 0..=SHARE_MAX);
        if *share == Some(0) {
            let given = [
                ("lend", lend.is_some()),
                ("borrow", borrow.is_some()),
                ("queue", queue.is_some()),
                ("perClient", per_client.is_some()),
                ("wait", wait.is_some()),
                ("reject", *reject),
                ("maxLongRunning", max_long_running.is_some()),
                ("revocable", *revocable),
            ];
            for (key, _) in given.iter().filter(|(_, is_given)| *is_given) {
                self.add(
                    key,
                    "has no effect: a level with `share: 0` rejects everything; remove it, or raise the share",
                );
            }
            return;
        }
        self.part("lend", *lend, 100);
        self.part("borrow", *borrow, BORROW_MAX);
        self.range("maxLongRunning", *max_long_running, 0..=u32::MAX.into());
        if *reject {
            for (key, is_given) in
                [("queue", queue.is_some()), ("perClient", per_client.is_some()), ("wait", wait.is_some())]
            {
                if is_given {
                    self.add(key, "has no effect: nothing waits in a level with `reject: true`; remove one of the two");
                }
            }
            return;
        }
        self.waiting(level);
        if let Some(wait) = wait.filter(|wait| wait.is_zero() || *wait > WAIT_MAX) {
            self.add("wait", format!("is {}, but must be longer than zero and at most 1h", duration::text(wait)));
        }
    }

    fn waiting(&mut self, level: &ShortLevel) {
        if level.queue == Some(0) {
            return self.add("queue", "is 0, so nothing could wait; write `reject: true` instead");
        }
        let before = self.problems.len();
        self.range("queue", level.queue, 1..=QUEUE_MAX);
        self.range("perClient", level.per_client, 1..=QUEUE_MAX / 10);
        let (queue, per_client) = level.waiting();
        if self.problems.len() > before || queue % per_client == 0 {
            return;
        }
        if per_client > queue {
            return self.add(
                "perClient",
                format!("is more than the {queue} requests that may wait in all; lower it, or raise `queue`"),
            );
        }
        let below = queue - queue % per_client;
        let message = format!(
            "the queue of {queue} is not a multiple of {per_client}; write `queue: {below}` or `queue: {}`, or `perClient: {}`",
            below + per_client,
            default_per_client(queue)
        );
        self.add("perClient", message);
    }

    fn part(&mut self, key: &str, part: Option<Part>, most: i64) {
        if let Some(Part::Percent(percent)) = part
            && !(0..=most).contains(&percent)
        {
            self.add(key, format!("is {percent}%, but must be from 0% to {most}%, or `all`"));
        }
    }

    fn rule(&mut self, rule: &ShortRule, levels: &[&str]) {
        let ShortRule { users, groups, methods, paths, header_problems, level, exempt, weight, per, .. } = rule;
        match (level, exempt) {
            (None, false) => self.add("", "does not say where requests go; add `level: NAME` or `exempt: true`"),
            (Some(_), true) => self.add("exempt", "the match names a level too; keep one of `level` and `exempt`"),
            (Some(level), false) if level == EXEMPT => {
                self.add("level", "write `exempt: true` instead of `level: exempt`");
            }
            (Some(level), false) if !levels.contains(&level.as_str()) => {
                self.add("level", unknown_level(level, levels));
            }
            _ => {}
        }
        if *exempt {
            let given = [
                ("weight", weight.is_some()),
                ("per", per.is_some()),
                ("seats", rule.seats.is_some()),
                ("rate", rule.rate.is_some()),
                ("cost", rule.cost.is_some()),
                ("costPerSeat", rule.cost_per_seat.is_some()),
                ("seatsMax", rule.seats_max.is_some()),
            ];
            for (key, _) in given.iter().filter(|(_, is_given)| *is_given) {
                self.add(key, "has no effect: exempt requests never wait; remove it");
            }
        } else {
            self.costs(rule);
        }
        if !users.is_empty() && !groups.is_empty() {
            self.add("group", "a match names users or groups, not both; write a match for each");
        }
        for (key, names) in [("user", users), ("group", groups)] {
            self.names(key, names);
        }
        for (index, method) in methods.iter().enumerate() {
            self.method(&at("method", index, methods.len()), method);
        }
        for (index, path) in paths.iter().enumerate() {
            self.path(&at("path", index, paths.len()), path);
        }
        self.models(rule);
        for problem in header_problems {
            self.add("header", problem.as_str());
        }
        self.range("weight", *weight, 1..=WEIGHT_MAX.into());
        for (key, problem) in &rule.cost_problems {
            self.add(key, problem.as_str());
        }
        if let Some(Per::Header(name)) = per
            && let Err(problem) = check_header_name(name)
        {
            self.add("per", problem);
        }
    }

    /// What requests cost, and how much of it clients may take.
    fn costs(&mut self, rule: &ShortRule) {
        let ShortRule { seats, rate, cost, cost_per_seat, seats_max, .. } = rule;
        if let Some(RuleSeats::Number(seats)) = seats {
            self.range("seats", Some(*seats), 0..=SEATS_MAX.into());
        }
        self.range("seatsMax", *seats_max, 1..=SEATS_MAX.into());
        match (seats, cost_per_seat) {
            (Some(RuleSeats::Learnt), None) => {
                self.add(
                    "seats",
                    "learnt seats need the cost of one seat; add `costPerSeat: 1000`, in the unit of `cost`",
                );
            }
            (Some(RuleSeats::Learnt), Some(_)) => {}
            (_, Some(_)) => self.add("costPerSeat", "has no effect without `seats: learnt`; add that, or remove it"),
            (_, None) if seats_max.is_some() => {
                self.add("seatsMax", "has no effect without `seats: learnt`; add that, or remove it");
            }
            (_, None) => {}
        }
        if let Some(text) = cost_per_seat
            && annotations::check_cost_per_seat(text).is_err()
        {
            self.add("costPerSeat", format!("is {text}, but must be a number above 0, as `1000` or `0.5`"));
        }
        if let Some(rate) = rate
            && let (Some(unit), Some(cost)) = (rate.unit.cost_unit(), cost)
            && unit != *cost
        {
            let message =
                format!("is a rate of {unit}, but `cost` is {cost}; write `cost: {unit}`, or leave one of them out");
            self.add("rate", message);
        }
    }

    fn models(&mut self, rule: &ShortRule) {
        let ShortRule { models, methods, paths, .. } = rule;
        self.names("model", models);
        let is_about_paths = !methods.is_empty() || !paths.is_empty();
        if is_about_paths && !models.is_empty() {
            self.add("model", "requests to a model are known by it, and not by method and path; leave those out");
        }
    }

    fn names(&mut self, key: &str, names: &[String]) {
        for (index, name) in names.iter().enumerate() {
            let key_of = at(key, index, names.len());
            match name.as_str() {
                "" => self.add(&key_of, format!("is empty; name a {key}, or leave `{key}` out to match everybody")),
                "*" => self.add(&key_of, format!("leave `{key}` out to match everybody")),
                _ => {}
            }
        }
    }

    fn method(&mut self, key: &str, method: &str) {
        if METHODS.contains(&method) {
            return;
        }
        let message = match closest(method, &METHODS) {
            _ if method == "*" => "leave `method` out to match every method".to_owned(),
            Some(meant) => format!("unknown method {method:?}; did you mean `{meant}`?"),
            None => format!("unknown method {method:?}; use one of {}", METHODS.join(", ")),
        };
        self.add(key, message);
    }

    fn path(&mut self, key: &str, path: &str) {
        let stem = path.strip_suffix("/*").unwrap_or(path);
        let message = if path == "*" {
            "leave `path` out to match every path".to_owned()
        } else if !path.starts_with('/') {
            format!("{path:?} does not begin with a slash; write `/{path}`")
        } else if stem.contains('*') {
            let before = stem.split('*').next().unwrap_or_default();
            let folder = &before[..=before.rfind('/').unwrap_or(0)];
            format!("{path:?}: `*` stands only at the end, after a slash; write for example `{folder}*`")
        } else if path.contains('?') {
            format!(
                "{path:?} has a query, which is not matched; write `{}`",
                path.split('?').next().unwrap_or_default()
            )
        } else if path.contains([' ', '#', '%']) || path.bytes().any(|byte| byte.is_ascii_control()) {
            format!("{path:?}: write the path as the service reads it, decoded and without spaces and fragments")
        } else if path.contains("//") || stem.split('/').any(|segment| segment == "." || segment == "..") {
            format!(
                "{path:?} is never the path of a request: paths are matched without `//`, `/./` and `/../`; remove these"
            )
        } else {
            return;
        };
        self.add(key, message);
    }
}

/// The key of one value: that of a list has its number.
fn at(key: &str, index: usize, count: usize) -> String {
    if count > 1 { format!("{key}[{index}]") } else { key.to_owned() }
}

fn unknown_level(level: &str, known: &[&str]) -> String {
    match closest(level, known) {
        Some(meant) => format!("unknown level `{level}`; did you mean `{meant}`?"),
        None if known.is_empty() => {
            format!("unknown level `{level}`; define it, as `levels: {{{level}: {{share: 100}}}}`")
        }
        None => format!("unknown level `{level}`; add it to `levels`, or use one of {}", known.join(", ")),
    }
}
