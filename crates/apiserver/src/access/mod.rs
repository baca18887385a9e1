//! Authorization and impersonation.

mod authorize;
mod impersonate;
mod rules;

pub(crate) use authorize::authorize;
pub(crate) use impersonate::effective_user;
pub(crate) use rules::{is_allowed, path_rules, resource_rules};

/// Members may do everything (API-191).
pub(crate) const MASTERS: &str = "system:masters";
/// Members may read and write the objects of the group, and nothing else: they can neither impersonate others nor read metrics.
pub(crate) const EDITORS: &str = "evenkeel:editors";
/// Members may read the objects of the group.
pub(crate) const VIEWERS: &str = "evenkeel:viewers";
/// The group of all authenticated users (API-190).
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
