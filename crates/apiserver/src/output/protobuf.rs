//! Objects, lists, metadata and statuses in protobuf, in their envelopes (PB-1, PB-5, PB-7).

use evenkeel_api::meta::ObjectMeta;
use evenkeel_api::protobuf::{encode, sealed};
use evenkeel_api::schema::{self, TypeSchema};
use evenkeel_api::{HubSpec, Version, WrittenIn};
use serde::Serialize;

use super::partial::{PARTIAL, PARTIAL_LIST, PartialMetadata, PartialMetadataList};
use super::{Columns, ListMeta, Shown};
use crate::negotiate::MetaVersion;

/// A list of whole objects.
pub(super) fn list<S: Columns>(metadata: &ListMeta<'_>, items: &[Shown<'_, S>], version: Version) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(bound = "S: HubSpec")]
    struct List<'a, S: HubSpec> {
        metadata: &'a ListMeta<'a>,
        items: Vec<WrittenIn<'a, S>>,
    }

    let items = items.iter().map(|shown| shown.object.in_version(version)).collect();
    let schema = schema::list_type(version, S::KIND);
    message(&List { metadata, items }, schema, version.api_version(), S::KIND.list_name())
}

/// The metadata of one object.
pub(super) fn partial(metadata: &ObjectMeta, version: MetaVersion) -> Vec<u8> {
    let partial = PartialMetadata::new(metadata, version);
    message(&partial, &schema::PARTIAL_OBJECT_METADATA, version.api_version(), PARTIAL)
}

/// The metadata of a list of objects.
pub(super) fn partial_list(list: &PartialMetadataList<'_>, version: MetaVersion) -> Vec<u8> {
    let schema = match version {
        MetaVersion::V1 => &schema::PARTIAL_OBJECT_METADATA_LIST,
        MetaVersion::V1beta1 => &schema::PARTIAL_OBJECT_METADATA_LIST_V1BETA1,
    };
    message(list, schema, version.api_version(), PARTIAL_LIST)
}

/// A status of success or failure, which always is of version `v1`.
pub(super) fn status(status: &impl Serialize) -> Vec<u8> {
    message(status, &schema::STATUS, "v1", "Status")
}

fn message(value: &impl Serialize, schema: &'static TypeSchema, api_version: &str, kind: &str) -> Vec<u8> {
    let message = encode(value, schema).expect("what is written here fits its schema");
    sealed(api_version, kind, &message)
}
