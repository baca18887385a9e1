//! `ShortRule`: one line of `match`, in the words of the short form.

use crate::annotations::{CostUnit, FlowBy, HeaderMatch, HeaderValues, Rate};

/// A match: which requests it is about, and where they go. What it does not say fits every request.
///
/// ```
/// use evenkeel_api::short::{Per, ShortRule};
///
/// let health = ShortRule::default().path("/healthz").exempt();
/// let reports = ShortRule::default().method("POST").path("/reports/*").level("batch").per(Per::User);
/// let gold = ShortRule::default().header("X-Plan", "gold").level("interactive").weight(4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct ShortRule {
    pub(super) users: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) methods: Vec<String>,
    pub(super) paths: Vec<String>,
    pub(super) models: Vec<String>,
    pub(super) headers: HeaderMatch,
    /// The fault of the headers that the builder was given.
    pub(super) header_problems: Vec<String>,
    pub(super) level: Option<String>,
    pub(super) exempt: bool,
    pub(super) weight: Option<i64>,
    pub(super) per: Option<Per>,
    pub(super) seats: Option<RuleSeats>,
    pub(super) rate: Option<Rate>,
    pub(super) cost: Option<CostUnit>,
    /// A number as it is written: it need not be whole.
    pub(super) cost_per_seat: Option<String>,
    pub(super) seats_max: Option<i64>,
    /// The fault of the rate or the cost that the builder was given.
    pub(super) cost_problems: Vec<(&'static str, String)>,
}

/// How many seats each request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleSeats {
    Number(i64),
    /// By what requests of its kind have cost.
    Learnt,
}

/// What tells clients apart, so that each waits in a queue of its own.
///
/// Not `#[non_exhaustive]`: code that tells clients apart has to know every way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Per {
    /// The user.
    #[default]
    User,
    /// The client's address.
    Address,
    /// The path.
    Path,
    /// The value of a header.
    Header(String),
    /// Nothing: all requests of the match take turns as one client.
    Nobody,
}

// === impl ShortRule ===

impl ShortRule {
    /// The keys of a match.
    pub const KEYS: [&'static str; 15] = [
        "user",
        "group",
        "method",
        "path",
        "model",
        "header",
        "level",
        "exempt",
        "weight",
        "per",
        "seats",
        "rate",
        "cost",
        "costPerSeat",
        "seatsMax",
    ];

    /// Requests of this user, or of one more.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.users.push(name.into());
        self
    }

    /// Requests of users in this group, or in one more.
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.groups.push(name.into());
        self
    }

    /// Requests with this method, or with one more. `GET` stands for `HEAD` too.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.methods.push(method.into());
        self
    }

    /// Requests for this path, or for one more: exactly this one, or with `/*` at its end everything below it.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Requests to this language model, or to one more, behind a gateway that counts tokens.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.models.push(name.into());
        self
    }

    /// Requests with this header. `*` stands for every value. Of several headers, a request needs all.
    pub fn header(self, name: &str, value: impl Into<String>) -> Self {
        self.header_one_of(name, [value.into()])
    }

    /// Requests with one of these values of a header.
    pub fn header_one_of<T: Into<String>>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        if let Err(problem) = self.headers.add(name, HeaderValues::of(values)) {
            self.header_problems.push(problem);
        }
        self
    }

    /// They go to this level.
    pub fn level(mut self, name: impl Into<String>) -> Self {
        self.level = Some(name.into());
        self
    }

    /// They are not limited.
    pub fn exempt(mut self) -> Self {
        self.exempt = true;
        self
    }

    /// How many seats each of their clients gets for each one of a client of weight 1, while both wait.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight.into());
        self
    }

    /// What tells their clients apart; the user if it does not say.
    pub fn per(mut self, per: Per) -> Self {
        self.per = Some(per);
        self
    }

    /// How many seats each of them takes.
    pub fn seats(mut self, seats: u32) -> Self {
        self.seats = Some(RuleSeats::Number(seats.into()));
        self
    }

    /// Each of them takes the seats that requests of its kind have cost: one for each `cost_per_seat`, in the unit of
    /// [`cost`](Self::cost).
    pub fn learnt_seats(mut self, cost_per_seat: f64) -> Self {
        (self.seats, self.cost_per_seat) = (Some(RuleSeats::Learnt), Some(cost_per_seat.to_string()));
        self
    }

    /// The most seats that one of them takes by its cost.
    pub fn seats_max(mut self, seats: u32) -> Self {
        self.seats_max = Some(seats.into());
        self
    }

    /// What their cost is counted in: `time`, `bytes`, `header:NAME` or `tokens`.
    pub fn cost(mut self, unit: &str) -> Self {
        match unit.parse() {
            Ok(unit) => self.cost = Some(unit),
            Err(problem) => self.cost_problems.push(("cost", format!("{unit:?}: {problem}"))),
        }
        self
    }

    /// How much each of their clients may take, as `100/s` or `100/m;burst=20`.
    pub fn rate(mut self, rate: &str) -> Self {
        match rate.parse() {
            Ok(rate) => self.rate = Some(rate),
            Err(problem) => self.cost_problems.push(("rate", format!("{rate:?}: {problem}"))),
        }
        self
    }

    /// Whether it names this path, or everything below one that this is below.
    pub fn names_path(&self, path: &str) -> bool {
        let fits = |named: &String| match named.strip_suffix("/*") {
            Some(above) => path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/')),
            None => named == path,
        };
        self.paths.iter().any(fits)
    }

    /// Whether every request fits.
    pub fn fits_everything(&self) -> bool {
        let Self { users, groups, methods, paths, models, headers, .. } = self;
        models.is_empty()
            && users.is_empty()
            && groups.is_empty()
            && methods.is_empty()
            && paths.is_empty()
            && headers.is_empty()
    }
}

// === impl Per ===

impl Per {
    /// The words for it.
    pub(super) const WORDS: &'static str = "`user`, `address`, `path`, `header:NAME` or `nobody`";

    pub(super) fn flow_by(&self) -> Option<FlowBy> {
        match self {
            Self::User | Self::Nobody => None,
            Self::Address => Some(FlowBy::Address),
            Self::Path => Some(FlowBy::Path),
            Self::Header(name) => Some(FlowBy::Header(name.clone())),
        }
    }
}

impl From<FlowBy> for Per {
    fn from(by: FlowBy) -> Self {
        match by {
            FlowBy::Address => Self::Address,
            FlowBy::Path => Self::Path,
            FlowBy::Header(name) => Self::Header(name),
        }
    }
}

impl std::fmt::Display for Per {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self, self.flow_by()) {
            (_, Some(by)) => by.fmt(f),
            (Self::Nobody, _) => f.write_str("nobody"),
            _ => f.write_str("user"),
        }
    }
}
