//! The kinds of logs, and how a line of each becomes a [`Record`].

mod access;
mod audit;
mod cloud_audit;
mod detect;
mod exchange;
mod export;
mod field;
mod fields;
mod http_log;
mod quoted;
mod template;

pub use template::{Template, TemplateError};

use std::fmt;

use crate::json::JsonError;
use crate::record::Record;
use crate::users::Users;

/// A kind of log.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Format {
    /// A Kubernetes audit log: an event of `audit.k8s.io` a line.
    Audit,
    /// The same, but the events are in an `EventList`.
    EventList,
    /// A Kubernetes audit log as a cloud or a tool hands it out: events inside entries of a log service, or behind a prefix.
    Export,
    /// The request log of a kube-apiserver.
    HttpLog,
    /// The access log of Evenkeel.
    Access,
    /// An access log of nginx or Envoy with an object a line, whose members are named after what they are.
    Fields,
    /// An access log whose lines follow a format string of nginx or Envoy.
    Template(Template),
}

/// Why a line could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// It is not JSON, or not that of such a log.
    #[error("{problem} at byte {at}")]
    Json {
        /// What is wrong.
        problem: &'static str,
        /// Where in the line.
        at: usize,
    },
    /// A field is absent.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field is invalid.
    #[error("{0} is invalid")]
    Invalid(&'static str),
    /// It is not a line of such a log.
    #[error("the line does not follow the format")]
    Form,
    /// It is longer than any line should be.
    #[error("it is longer than {0} bytes")]
    TooLong(usize),
    /// The log ends, or cannot be read on.
    #[error("cannot read the rest of the log: {0}")]
    Unreadable(String),
}

// === impl Format ===

impl Format {
    /// Reads a line. `Ok(None)`: it is not about a request.
    pub fn read<'a>(&self, line: &'a [u8], users: &mut Users) -> Result<Option<Record<'a>>, Damage> {
        match self {
            Self::Audit | Self::EventList => audit::read(line, users).map(Some),
            Self::Export => export::read(line, users),
            Self::HttpLog => http_log::read(line),
            Self::Access => access::read(line, users).map(Some),
            Self::Fields => fields::read(line, users).map(Some),
            Self::Template(template) => template.read(line, users).map(Some),
        }
    }

    /// Whether its requests are those of a Kubernetes API.
    pub fn is_kubernetes(&self) -> bool {
        matches!(self, Self::Audit | Self::EventList | Self::Export | Self::HttpLog)
    }

    /// Whether each part of it is an object of JSON.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self, Self::Audit | Self::Export | Self::Access | Self::Fields)
    }

    /// Finds out the kind of a log by its first lines; `None` if it is unknown.
    pub fn detect(head: &[u8]) -> Option<Self> {
        detect::detect(head)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Audit => "Kubernetes audit log",
            Self::EventList => "Kubernetes audit log (EventList)",
            Self::Export => "Kubernetes audit log (exported)",
            Self::HttpLog => "kube-apiserver request log",
            Self::Access => "Evenkeel access log",
            Self::Fields => "access log in JSON",
            Self::Template(_) => "access log",
        })
    }
}

// === impl Damage ===

impl From<JsonError> for Damage {
    fn from(error: JsonError) -> Self {
        let JsonError { problem, at } = error;
        Self::Json { problem, at }
    }
}
