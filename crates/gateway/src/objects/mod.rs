//! Sources of objects: flow schemas and priority levels.
//!
//! Where objects are given, those that the preset suggests are not added to them; the mandatory ones always are. To have some of
//! the suggested objects, put them into a manifest.

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
    /// The objects to follow from now on. The first call returns at once with what there is; every later one waits until there is
    /// something new. Called again after an error, it waits for the next change, and the earlier objects stay in effect.
    ///
    /// Dropping the future loses nothing.
    fn next(&mut self) -> NextObjects<'_>;

    /// Whether the objects are those of the levels and matches in the settings, and change with them.
    fn follows_settings(&self) -> bool {
        false
    }

    /// The status of the source while the gateway follows it; `None` if it has none.
    fn status(&self) -> Option<Arc<dyn SourceStatus>> {
        None
    }
}

/// The status of a source of objects, for the admin endpoint. Its methods never wait.
pub trait SourceStatus: fmt::Debug + Send + Sync + 'static {
    /// Why the objects in effect may be out of date, if they may.
    fn stale(&self) -> Option<String>;

    /// Why the store that the objects come from cannot be written or reached, if so.
    fn store_problem(&self) -> Option<String>;

    /// Writes the metrics of the source, which no other page of metrics of the gateway has.
    fn encode_metrics(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result;
}

/// The future of [`ObjectSource::next`].
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
