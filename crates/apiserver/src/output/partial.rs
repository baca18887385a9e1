//! `PartialObjectMetadata`: objects without anything but their metadata (API-178).

use evenkeel_api::HubSpec;
use evenkeel_api::meta::ObjectMeta;
use serde::Serialize;

use super::{ListMeta, Shown};
use crate::negotiate::MetaVersion;

/// The kind of one object.
pub(super) const PARTIAL: &str = "PartialObjectMetadata";
/// The kind of a list.
pub(super) const PARTIAL_LIST: &str = "PartialObjectMetadataList";

/// One object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialMetadata<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: &'a ObjectMeta,
}

/// A list of objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialMetadataList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: &'a ListMeta<'a>,
    items: Vec<PartialMetadata<'a>>,
}

// === impl PartialMetadata ===

impl<'a> PartialMetadata<'a> {
    pub(super) fn new(metadata: &'a ObjectMeta, version: MetaVersion) -> Self {
        Self { kind: PARTIAL, api_version: version.api_version(), metadata }
    }
}

// === impl PartialMetadataList ===

impl<'a> PartialMetadataList<'a> {
    pub(super) fn new<S: HubSpec>(metadata: &'a ListMeta<'a>, items: &[Shown<'a, S>], version: MetaVersion) -> Self {
        let items = items.iter().map(|shown| PartialMetadata::new(&shown.object.metadata, version)).collect();
        Self { kind: PARTIAL_LIST, api_version: version.api_version(), metadata, items }
    }
}
