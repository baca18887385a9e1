//! `Owner`: one `managedFields` entry, and how a list of them is read and written (API-134, API-139).

use std::cmp::Ordering;

use evenkeel_api::Version;
use evenkeel_api::meta::{self, ManagedFieldsEntry, Time};

use super::field_set::FieldSet;
use super::fields_v1::NoFieldSet;
use super::writer::Writer;

/// How a manager came to own its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Operation {
    /// By server-side apply.
    Apply,
    /// By everything else.
    Update,
}

/// The fields that one manager owns by one operation in one version through one endpoint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Owner {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) version: Version,
    pub(crate) subresource: String,
    pub(crate) time: Option<Time>,
    pub(crate) fields: FieldSet,
}

/// The longest name of a manager (API-80).
const MANAGER_BYTES_MAX: usize = 128;
/// The longest name of a subresource.
const SUBRESOURCE_BYTES_MAX: usize = 256;
/// The only form of `fieldsV1`.
const FIELDS_TYPE: &str = "FieldsV1";

// === impl Operation ===

impl Operation {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Apply, Self::Update].into_iter().find(|operation| operation.as_str() == text)
    }
}

// === impl Owner ===

impl Owner {
    /// The fields that a request makes its writer own.
    pub(crate) fn new(writer: Writer<'_>, operation: Operation, fields: FieldSet) -> Self {
        Self {
            manager: writer.name().to_owned(),
            operation,
            version: writer.version,
            subresource: writer.endpoint.subresource().to_owned(),
            time: None,
            fields,
        }
    }

    /// The key of an entry. A manager has one entry for all that it applies, in whatever version (API-130).
    pub(crate) fn identity(&self) -> (&str, Operation, Option<Version>, &str) {
        let version = (self.operation == Operation::Update).then_some(self.version);
        (&self.manager, self.operation, version, &self.subresource)
    }

    /// The order of entries in an object (API-134).
    fn order(&self, other: &Self) -> Ordering {
        fn key(owner: &Owner) -> (Operation, i64, &str, &str, &str) {
            let version = owner.version.api_version();
            (owner.operation, owner.seconds(), &owner.manager, version, &owner.subresource)
        }
        key(self).cmp(&key(other))
    }

    /// When the manager last changed one of the fields; 0 if that is not known.
    pub(crate) fn seconds(&self) -> i64 {
        self.time.map_or(0, Time::unix_seconds)
    }

    /// Reads an entry: `None` if it belongs to no version of the group, so that nobody can tell what its fields mean.
    fn read(entry: &ManagedFieldsEntry) -> Result<Option<Self>, NoFieldSet> {
        let operation = Operation::parse(&entry.operation).ok_or(NoFieldSet)?;
        let is_valid = entry.fields_type == FIELDS_TYPE
            && !entry.api_version.is_empty()
            && entry.manager.len() <= MANAGER_BYTES_MAX
            && entry.manager.chars().all(|character| !character.is_control())
            && entry.subresource.len() <= SUBRESOURCE_BYTES_MAX;
        if !is_valid {
            return Err(NoFieldSet);
        }
        let fields = match &entry.fields_v1 {
            Some(fields) => FieldSet::from_fields_v1(&fields.tree())?,
            None => FieldSet::default(),
        };
        Ok(Version::from_api_version(&entry.api_version).map(|version| Self {
            manager: entry.manager.clone(),
            operation,
            version,
            subresource: entry.subresource.clone(),
            time: entry.time,
            fields,
        }))
    }

    fn write(self) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: self.manager,
            operation: self.operation.as_str().to_owned(),
            api_version: self.version.api_version().to_owned(),
            time: self.time,
            fields_type: FIELDS_TYPE.to_owned(),
            fields_v1: Some(meta::FieldSet::from(self.fields.to_fields_v1())),
            subresource: self.subresource,
        }
    }
}

/// Reads entries. If one is not valid, none counts. Of two for the same owner the last counts.
pub(crate) fn read(entries: &[ManagedFieldsEntry]) -> Result<Vec<Owner>, NoFieldSet> {
    let mut owners = Vec::with_capacity(entries.len());
    for entry in entries {
        owners.extend(Owner::read(entry)?);
    }
    owners.sort_by(|one, other| one.identity().cmp(&other.identity()));
    owners.dedup_by(|later, earlier| {
        let is_same = later.identity() == earlier.identity();
        if is_same {
            std::mem::swap(later, earlier);
        }
        is_same
    });
    Ok(owners)
}

/// Writes entries into an object; owners of nothing have none.
pub(crate) fn write(mut owners: Vec<Owner>) -> Vec<ManagedFieldsEntry> {
    owners.retain(|owner| !owner.fields.is_empty());
    owners.sort_by(Owner::order);
    owners.into_iter().map(Owner::write).collect()
}
