//! `Record`: a line of a log about a request, whatever the kind of log.

use std::borrow::Cow;
use std::sync::Arc;

use evenkeel::events::CostKind;
use evenkeel_engine::User;
use evenkeel_engine::time::{Instant, Nanos};

use crate::logged_head::LoggedHead;

/// A request, or one stage of it, as a log has it. Times are nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The id of the request; the same in all its lines and logs.
    pub id: Option<Cow<'a, str>>,
    /// How far the request was.
    pub stage: Stage,
    /// When the request arrived.
    pub arrived: Instant,
    /// When the line was written.
    pub written: Instant,
    /// How long the request waited for seats, if the log tells.
    pub wait: Option<Nanos>,
    /// How long it held its seats, if the log tells. If it does not tell the wait, that is part of it.
    pub service: Option<Nanos>,
    /// Who sent it; `None` if the log does not name users.
    pub user: Option<Arc<User>>,
    /// The verb or the method.
    pub action: Action<'a>,
    /// Path and query, as they were received.
    pub target: Cow<'a, str>,
    /// The headers and the address of its client, as far as the log tells.
    pub head: LoggedHead<'a>,
    /// How it ended, as far as flow control is concerned.
    pub outcome: Outcome<'a>,
    /// The server's classification, if the log has it.
    pub placed: Option<Placed<'a>>,
    /// The seats that it took, if the log tells.
    pub seats: Option<u32>,
    /// The cost and its unit, if the log has them.
    pub cost: Option<(f64, CostKind)>,
    /// The bytes of the body of its response, if the log tells.
    pub bytes: Option<f64>,
}

/// How far a request was when a line was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// The request had arrived.
    Received,
    /// The headers of the response had been sent, and a long body follows.
    Started,
    /// The request had ended.
    Complete,
    /// The request had ended, and no other line is about it.
    Whole,
}

/// What a request does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action<'a> {
    /// The verb of Kubernetes: `list`, `create`, ….
    Verb(Cow<'a, str>),
    /// The method of HTTP.
    Method(Cow<'a, str>),
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The request ran.
    Served,
    /// Flow control rejected it, for this reason if the log tells.
    Rejected(Option<Cow<'a, str>>),
    /// The request was refused before flow control: the server did not accept its credentials.
    Unauthenticated,
    /// Flow control does not limit such requests.
    NotLimited,
}

/// The flow schema and the priority level of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Placed<'a> {
    /// The flow schema's name.
    pub schema: Cow<'a, str>,
    /// The priority level's name.
    pub level: Cow<'a, str>,
}

// === impl Record ===

impl Record<'_> {
    /// The same without a line that it is borrowed from.
    pub(crate) fn into_owned(self) -> Record<'static> {
        fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        Record {
            id: self.id.map(owned),
            action: match self.action {
                Action::Verb(verb) => Action::Verb(owned(verb)),
                Action::Method(method) => Action::Method(owned(method)),
            },
            target: owned(self.target),
            head: self.head.into_owned(),
            outcome: match self.outcome {
                Outcome::Rejected(reason) => Outcome::Rejected(reason.map(owned)),
                Outcome::Served => Outcome::Served,
                Outcome::Unauthenticated => Outcome::Unauthenticated,
                Outcome::NotLimited => Outcome::NotLimited,
            },
            placed: self.placed.map(|Placed { schema, level }| Placed { schema: owned(schema), level: owned(level) }),
            stage: self.stage,
            arrived: self.arrived,
            written: self.written,
            wait: self.wait,
            service: self.service,
            user: self.user,
            seats: self.seats,
            cost: self.cost,
            bytes: self.bytes,
        }
    }
}

// === impl Action ===

impl Action<'_> {
    /// The verb or the method.
    pub fn name(&self) -> &str {
        match self {
            Self::Verb(name) | Self::Method(name) => name,
        }
    }
}
