//! `Table`: objects as rows of cells, for people (API-173 to API-177).

use evenkeel_api::meta::Time;
use evenkeel_api::{HubSpec, Version, WrittenIn};
use serde::Serialize;

use super::columns::{Cell, Column};
use super::include_object::IncludeObject;
use super::partial::PartialMetadata;
use super::{Columns, ListMeta, Shown, View};
use crate::Failure;
use crate::negotiate::MetaVersion;

/// Objects as rows of cells.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", bound = "S: HubSpec")]
pub(super) struct Table<'a, S: HubSpec> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta<'a>,
    column_definitions: Option<&'static [Column]>,
    rows: Vec<TableRow<'a, S>>,
}

/// Whether a table says what its columns are. In a watch only the first one does (API-172).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// The table says what its columns are.
    Written,
    /// The client knows them already.
    Omitted,
}

/// How a table is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableStyle {
    /// The version of the table itself.
    version: MetaVersion,
    /// Whether it says what its columns are.
    pub(super) header: Header,
    /// The part of the objects that rows carry besides their cells.
    include_object: IncludeObject,
    /// The version of whole objects in the rows.
    object_version: Version,
}

#[derive(Serialize)]
#[serde(bound = "S: HubSpec")]
struct TableRow<'a, S: HubSpec> {
    cells: Vec<Cell<'a>>,
    object: RowObject<'a, S>,
}

#[derive(Serialize)]
#[serde(untagged, bound = "S: HubSpec")]
enum RowObject<'a, S: HubSpec> {
    None,
    Metadata(PartialMetadata<'a>),
    Object(WrittenIn<'a, S>),
}

// === impl Table ===

impl<'a, S: Columns> Table<'a, S> {
    /// A table of a list of objects, in the order of tables (API-175).
    pub(super) fn of_list(metadata: ListMeta<'a>, items: &[Shown<'a, S>], style: TableStyle, now: Time) -> Self {
        let mut items = items.to_vec();
        items.sort_by(|one, other| S::order(one.object, other.object));
        Self {
            kind: "Table",
            api_version: style.version.api_version(),
            metadata,
            column_definitions: (style.header == Header::Written).then_some(S::COLUMNS),
            rows: items.into_iter().map(|shown| TableRow::new(shown, style, now)).collect(),
        }
    }

    /// A table of one object.
    pub(super) fn of_object(shown: Shown<'a, S>, style: TableStyle, now: Time) -> Self {
        let metadata = ListMeta::at(&shown.object.metadata.resource_version);
        Self::of_list(metadata, &[shown], style, now)
    }
}

// === impl TableStyle ===

impl TableStyle {
    /// A whole table.
    pub(super) fn new(version: MetaVersion, view: &View<'_>) -> Result<Self, Failure> {
        let include_object = IncludeObject::parse(view.include_object)?;
        Ok(Self { version, header: Header::Written, include_object, object_version: view.version })
    }
}

// === impl TableRow ===

impl<'a, S: Columns> TableRow<'a, S> {
    fn new(shown: Shown<'a, S>, style: TableStyle, now: Time) -> Self {
        let object = match style.include_object {
            IncludeObject::None => RowObject::None,
            IncludeObject::Metadata => RowObject::Metadata(PartialMetadata::new(&shown.object.metadata, style.version)),
            IncludeObject::Object => RowObject::Object(shown.object.in_version(style.object_version)),
        };
        Self { cells: S::cells(shown.object, now), object }
    }
}
