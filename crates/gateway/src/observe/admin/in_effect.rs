//! The settings in effect, as the admin endpoint shows them.

use std::fmt;
use std::sync::Arc;

use evenkeel_engine::digest::normal_path;
use evenkeel_identity::{Identification, RequestRules};

use crate::config::{Config, DEFAULT_SERVICE};
use crate::observe::ServiceFlow;

/// The settings at one moment. They name files with secrets, but hold none.
///
/// Not `#[non_exhaustive]`: code that runs the admin endpoint makes it.
#[derive(Debug, Clone)]
pub struct InEffect {
    /// The settings.
    pub config: Arc<Config>,
    /// How requests are interpreted under them.
    pub rules: RequestRules,
    /// How senders and their addresses are identified under them.
    pub identification: Arc<Identification>,
    /// The flow controls that requests go through. Without services there is one, without a name.
    pub services: Vec<ServiceFlow>,
}

/// A function that returns the settings in effect.
#[derive(Clone)]
pub struct SettingsInEffect(Arc<dyn Fn() -> InEffect + Send + Sync>);

// === impl InEffect ===

impl InEffect {
    /// Whether requests go to several services.
    pub(super) fn has_services(&self) -> bool {
        self.services.iter().any(|one| one.service.is_some())
    }

    /// The service that a request with this host and this path belongs to; none if it belongs to none, or if there are no services.
    pub(super) fn service_of(&self, host: Option<&str>, path: &str) -> Option<&ServiceFlow> {
        let path = normal_path(path).ok();
        let path = path.as_ref().map_or("/", |path| &*path.path);
        self.service(self.config.service_of(host, path).unwrap_or(DEFAULT_SERVICE))
    }

    /// The service of this name.
    pub(super) fn service(&self, name: &str) -> Option<&ServiceFlow> {
        self.services.iter().find(|one| one.service.as_deref() == Some(name))
    }
}

// === impl SettingsInEffect ===

impl SettingsInEffect {
    /// Settings that this function returns.
    pub fn new(settings: impl Fn() -> InEffect + Send + Sync + 'static) -> Self {
        Self(Arc::new(settings))
    }

    pub(super) fn get(&self) -> InEffect {
        (self.0)()
    }
}

impl fmt::Debug for SettingsInEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SettingsInEffect").finish_non_exhaustive()
    }
}
