//! The managed fields after a create or an update (API-136 to API-142).

use evenkeel_api::decode::{Node, Value as NodeValue};
use evenkeel_api::meta::{ManagedFieldsEntry, Time};
use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};

use super::ancient::merge_oldest;
use super::difference::Differences;
use super::owner::{Operation, Owner, read, write};
use super::writer::{WriteTarget, Writer, strip};

/// The `metadata.managedFields` of a request.
///
/// An empty list asks for another thing than none, and looks the same in an [`Object`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SentManagers {
    /// The entries of the decoded object, or none.
    AsDecoded,
    /// An empty list, which clears all tracking (API-139).
    EmptyList,
}

// === impl SentManagers ===

impl SentManagers {
    /// The managed fields of a body or of a patched object.
    pub fn of(root: &Node) -> Self {
        let entries = root.get("metadata").and_then(|metadata| metadata.get("managedFields"));
        match entries.map(|node| &node.value) {
            Some(NodeValue::List(items)) if items.is_empty() => Self::EmptyList,
            _ => Self::AsDecoded,
        }
    }
}

/// Gives a new object its managed fields (API-136).
///
/// The object is as it will be stored, with the entries of the body in `managed_fields`.
pub fn created<S: HubSpec>(object: &mut Object<V1, S>, writer: Writer<'_>, now: Time) {
    let sent = std::mem::take(&mut object.metadata.managed_fields);
    let owners = read(&sent).unwrap_or_default();
    object.metadata.managed_fields = write(track(owners, &Object::default(), object, writer, now));
}

/// Gives an object that takes the place of another one its managed fields (API-137 to API-142, API-144).
///
/// `new` is as it will be stored, with what the request sent in `managed_fields`. Whether the update writes anything at
/// all is for [`differs`](super::differs) to say.
pub fn updated<S: HubSpec>(
    old: &Object<V1, S>,
    new: &mut Object<V1, S>,
    sent: SentManagers,
    writer: Writer<'_>,
    now: Time,
) {
    let entries = std::mem::take(&mut new.metadata.managed_fields);
    if let Some(owners) = starting_point(old, &entries, sent, writer.endpoint) {
        new.metadata.managed_fields = write(track(owners, old, new, writer, now));
    }
}

/// The owners before the update: those that the request sent, if it may and did, and those of the stored object
/// otherwise. `None` where nothing is tracked, which is so until the next apply.
fn starting_point<S: HubSpec>(
    old: &Object<V1, S>,
    entries: &[ManagedFieldsEntry],
    sent: SentManagers,
    endpoint: WriteTarget,
) -> Option<Vec<Owner>> {
    if endpoint == WriteTarget::Object {
        if sent == SentManagers::EmptyList || entries == [ManagedFieldsEntry::default()] {
            return None;
        }
        if let (Ok(owners), false) = (read(entries), entries.is_empty()) {
            return Some(owners);
        }
    }
    let stored = &old.metadata.managed_fields;
    (!stored.is_empty()).then(|| read(stored).unwrap_or_default())
}

/// The owners after an update: what it changed goes to the writer (API-137).
pub(crate) fn track<S: HubSpec>(
    mut owners: Vec<Owner>,
    old: &Object<V1, S>,
    new: &Object<V1, S>,
    writer: Writer<'_>,
    now: Time,
) -> Vec<Owner> {
    let mut differences = Differences::new(old, new, writer.endpoint);
    differences.take_from(&mut owners);
    let mut taken = differences.in_version(writer.version).changed.clone();
    strip(&mut taken);
    if !taken.is_empty() {
        let mut owner = Owner::new(writer, Operation::Update, taken);
        owner.time = Some(now);
        match owners.iter_mut().find(|known| known.identity() == owner.identity()) {
            Some(known) => {
                known.fields.unite(owner.fields);
                known.time = owner.time;
            }
            None => owners.push(owner),
        }
    }
    owners.retain(|owner| !owner.fields.is_empty());
    merge_oldest(&mut owners);
    owners
}
