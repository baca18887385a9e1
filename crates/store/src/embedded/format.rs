//! The content of the file: tables of redb, and the version of their format.
//!
//! | table | key | value |
//! |---|---|---|
//! | `evenkeel.meta` | `format`, `revision` | the format's version; the revision of the last write |
//! | `evenkeel.objects` | kind, name | revision, revision of the creation, payload |
//! | `evenkeel.history` | revision | kind, name, and the object as it was before the write, if it was |
//! | `evenkeel.probe` | 0 | bytes that mean nothing; only there while the store tries whether it can write again |
//!
//! The history has one row for each of the latest revisions, up to the last. What an object became is not in it: it is
//! in the next row of the same object, or in the table of objects.

use evenkeel_api::Kind;
use redb::TableDefinition;

/// The version of the format that is written.
pub(crate) const FORMAT: u32 = 1;

/// The revision of a store without any write, as in etcd. Zero has a meaning of its own to Kubernetes' clients.
pub(crate) const FIRST_REVISION: u64 = 1;

pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("evenkeel.meta");
pub(crate) const META_FORMAT: &str = "format";
pub(crate) const META_REVISION: &str = "revision";

pub(crate) const OBJECTS: TableDefinition<'_, (u8, &str), Row<'_>> = TableDefinition::new("evenkeel.objects");
pub(crate) const HISTORY: TableDefinition<'_, u64, (u8, &str, Option<Row<'_>>)> =
    TableDefinition::new("evenkeel.history");

pub(crate) const PROBE: TableDefinition<'_, u8, &[u8]> = TableDefinition::new("evenkeel.probe");

/// Revision, revision of the creation, payload.
pub(crate) type Row<'a> = (u64, u64, &'a [u8]);

/// The number of a kind in the file; never to be changed.
pub(crate) const fn kind_number(kind: Kind) -> u8 {
    match kind {
        Kind::FlowSchema => 1,
        Kind::PriorityLevelConfiguration => 2,
    }
}

pub(crate) fn kind_of(number: u8) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind_number(*kind) == number)
}
