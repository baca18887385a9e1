//! Where the objects come from that govern the traffic.

use std::future::Future;
use std::pin::Pin;

use evenkeel_engine::controller::Objects;

/// Where the objects come from: a folder of manifests, or an API server.
pub trait ObjectSource: Send + 'static {
    /// The objects to follow from now on. The first call answers at once with what there is; every later one waits until
    /// there is something new. Called again after an error, it waits for the next change: what was there before is kept.
    ///
    /// Dropping the future loses nothing.
    fn next(&mut self) -> NextObjects<'_>;
}

/// What [`ObjectSource::next`] gives.
pub type NextObjects<'a> = Pin<Box<dyn Future<Output = Result<Objects, ObjectsError>> + Send + 'a>>;

/// The objects could not be read. They stay what they were.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ObjectsError(
    /// What is wrong, with file, line and column, a problem a line.
    pub String,
);
