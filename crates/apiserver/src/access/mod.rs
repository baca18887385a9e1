//! Who may do what.

mod authorize;
mod impersonate;

pub(crate) use authorize::authorize;
pub(crate) use impersonate::effective_user;

/// Members may do everything (API-191).
pub(crate) const MASTERS: &str = "system:masters";
/// Members may read the objects of the group.
pub(crate) const VIEWERS: &str = "evenkeel:viewers";
/// Everybody who is known is in it (API-190).
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
