//! `View`: in which version and shape a client wants to see objects.

use evenkeel_api::Version;
use evenkeel_api::meta::Time;

use crate::negotiate::Wanted;

/// In which version and shape a client wants to see objects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    /// The version in the URL.
    pub(crate) version: Version,
    /// The form that the header asks for.
    pub(crate) wanted: Wanted,
    /// The query parameter `includeObject`, which counts for tables only (API-177).
    pub(crate) include_object: Option<&'a str>,
    /// The time, for the column `Age`.
    pub(crate) now: Time,
}
