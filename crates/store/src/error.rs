//! The errors of a store.

use std::path::PathBuf;
use std::sync::Arc;

use evenkeel_api::Kind;

use crate::Object;

/// Why a store could not do what it was asked to.
///
/// What a caller acts on has a variant of its own; what only a person can act on has a text that says what to do.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such object.
    #[error("{kind} {name:?} does not exist")]
    NotFound {
        /// The kind that was asked for.
        kind: Kind,
        /// The name that was asked for.
        name: String,
    },
    /// There is such an object already.
    #[error("{} {:?} exists already, at revision {}", .current.kind, .current.name, .current.revision)]
    AlreadyExists {
        /// The object that has the name.
        current: Arc<Object>,
    },
    /// The object is not at the revision that the write was conditional on.
    #[error("{} {:?} is at revision {}, not at {expected}: read it again", .current.kind, .current.name, .current.revision)]
    Conflict {
        /// The revision that the write was conditional on.
        expected: u64,
        /// The object as it is.
        current: Arc<Object>,
    },
    /// The history does not reach back to the revision that was asked for.
    #[error("revision {asked} is too old: the history starts at {oldest}; list again and continue from there")]
    TooOld {
        /// The revision that was asked for.
        asked: u64,
        /// The oldest revision that can be asked for.
        oldest: u64,
    },
    /// The revision that was asked for has not been reached yet.
    #[error("revision {asked} is in the future: the store is at {current}")]
    FutureRevision {
        /// The revision that was asked for.
        asked: u64,
        /// The newest revision.
        current: u64,
    },
    /// A name or a payload that no store accepts.
    #[error("{0}")]
    Invalid(String),
    /// The store cannot be reached or cannot write now. Nothing was written; asking again later may help.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A write was sent, and its outcome could not be found out. Read the object to see what became of it.
    #[error("it is unknown whether the write took place: {0}")]
    Unknown(String),
    /// The store refuses to talk to us.
    #[error("the store denies access: {0}")]
    Denied(String),
    /// The file is one of ours, but what is in it is not whole. It was not changed.
    #[error("{path} is damaged: {problem}. It was not changed; restore a backup", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault in the content.
        problem: String,
    },
    /// The file ends before a write that was acknowledged: the disk has lost or damaged it, or an older copy was put in its
    /// place. It was not changed.
    #[error(
        "{path} has lost writes: it ends with revision {found}, but revision {acknowledged} was acknowledged. It was left \
         as it is; put a backup in its place, or, to go on without the lost writes, delete {record}",
        path = .path.display(), record = .record.display()
    )]
    LostWrites {
        /// The file.
        path: PathBuf,
        /// The revision of the last write in it.
        found: u64,
        /// The revision of the last write that was acknowledged.
        acknowledged: u64,
        /// The file that says so.
        record: PathBuf,
    },
    /// The file is not one of ours. It was not changed.
    #[error("{path} is not a store of Evenkeel: {problem}. It was not changed; name another file", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The evidence.
        problem: String,
    },
    /// The file was written by a newer Evenkeel. It was not changed.
    #[error("{path} has file format {found}, but this version of Evenkeel supports formats up to {known}; use a newer version", path = .path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format that it has.
        found: u32,
        /// The newest format that is known.
        known: u32,
    },
    /// Another process, or another store of this process, has the file open.
    #[error("{path} is in use: stop the process that has it open, or name another file", path = .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file system refuses.
    #[error("cannot {action} {path}: {problem}", path = .path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file that the action was for.
        path: PathBuf,
        /// The error of the system.
        problem: String,
    },
    /// The text that says where the store is makes no sense.
    #[error("{0}")]
    Location(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
