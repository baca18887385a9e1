//! Where the objects come from: flow schemas and priority levels.
//!
//! Where objects are given, those that the preset suggests are not added to them; the mandatory ones always are. Whoever wants
//! some of the suggested objects puts them into a manifest.

mod directory;
mod fixed;
mod manifests;
mod settings;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use evenkeel_engine::controller::Objects;
use prometheus_client::encoding::DescriptorEncoder;

use crate::config::Config;

pub use directory::DirectorySource;
pub use fixed::Fixed;
pub use settings::FromSettings;

/// Where the objects come from: a folder of manifests, or an API server.
pub trait ObjectSource: Send + 'static {
    /// The objects to follow from now on. The first call returns at once with what there is; every later one waits until
    /// there is something new. Called again after an error, it waits for the next change: what was there before is kept.
    ///
    /// Dropping the future loses nothing.
    fn next(&mut self) -> NextObjects<'_>;

    /// Whether the objects are those of the levels and matches in the settings, and change with them.
    fn follows_settings(&self) -> bool {
        false
    }

    /// What is known of the source while the gateway follows it; none if there is nothing to know.
    fn status(&self) -> Option<Arc<dyn SourceStatus>> {
        None
    }
}

/// What is known of a source of objects at any time, for the admin endpoint. It does not wait for anything.
pub trait SourceStatus: fmt::Debug + Send + Sync + 'static {
    /// Why the objects in effect may be out of date, if they may.
    fn stale(&self) -> Option<String>;

    /// Why the store that the objects come from cannot be written or reached, if so.
    fn store_problem(&self) -> Option<String>;

    /// Writes the metrics of the source, which no other page of metrics of the gateway has.
    fn encode_metrics(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result;
}

/// What [`ObjectSource::next`] gives.
pub type NextObjects<'a> = Pin<Box<dyn Future<Output = Result<Objects, ObjectsError>> + Send + 'a>>;

/// The objects could not be read. They stay what they were.
///
/// Not `#[non_exhaustive]`: sources of your own make it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObjectsError(
    /// What is wrong, with file, line and column, a problem a line.
    pub String,
);

/// The source that the settings name: manifests, levels and matches, or the objects of the preset.
pub fn source(config: &Config) -> Box<dyn ObjectSource> {
    match (&config.objects, config.short_objects()) {
        (Some(path), _) => Box::new(DirectorySource::new(path).preset(config.preset)),
        (None, Some(objects)) => Box::new(FromSettings::new(objects)),
        (None, None) => Box::new(Fixed::new(config.preset.into())),
    }
}
