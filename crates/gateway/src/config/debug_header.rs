//! The setting that says which clients may ask the gateway what it has decided about a request.

use evenkeel_engine::User;
use serde::{Deserialize, Serialize};

/// The users whose requests with the header `X-Evenkeel-Debug` get a response with the same header, which names the flow schema,
/// the priority level, the flow and the wait.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DebugHeaderConfig {
    /// The names of users.
    pub users: Vec<String>,
    /// The members of these groups.
    pub groups: Vec<String>,
}

// === impl DebugHeaderConfig ===

impl DebugHeaderConfig {
    /// Whether the header is off for everybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }

    /// Whether this user may ask.
    pub(crate) fn allows(&self, user: &User) -> bool {
        self.users.iter().any(|name| **name == *user.name)
            || user.groups.iter().any(|group| self.groups.iter().any(|name| **name == **group))
    }
}
