//! The settings in effect, as the admin endpoint shows them.

use std::fmt;
use std::sync::Arc;

use evenkeel_identity::RequestRules;

use crate::config::Config;

/// The settings at one moment. They name files with secrets, but hold none.
///
/// Not `#[non_exhaustive]`: whoever runs the admin endpoint makes it.
#[derive(Debug, Clone)]
pub struct InEffect {
    /// The settings.
    pub config: Arc<Config>,
    /// How requests are interpreted under them.
    pub rules: RequestRules,
}

/// Tells the settings in effect, whenever it is asked.
#[derive(Clone)]
pub struct SettingsInEffect(Arc<dyn Fn() -> InEffect + Send + Sync>);

// === impl SettingsInEffect ===

impl SettingsInEffect {
    /// Asks this.
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
