//! The way of every change to an object that is there: read, change, check, write, and again if somebody was faster
//! (API-56 to API-61, API-67).

use std::sync::Arc;

use evenkeel_api::meta::ManagedFieldsEntry;
use evenkeel_api::v1::V1;
use evenkeel_api::validate::{self, ValidSpec};
use evenkeel_api::{HubSpec, Kind, Object};

use super::{Write, prepare};
use crate::failure::Failure;
use crate::managed_fields::{self, Endpoint};
use crate::options::{Moment, Persistence};
use crate::registry::{Registry, Record, Unwritten};
use crate::strconv::parse_uint;

/// What an object shall become.
#[derive(Debug)]
pub(super) struct Candidate<S: HubSpec> {
    pub(super) object: Object<V1, S>,
    pub(super) ownership: Ownership,
}

/// Who decides what becomes of `managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// The comparison of old and new, and the client did not say anything about them.
    Compared,
    /// The same, and the client sent some.
    ComparedWithSent,
    /// They are in the object already.
    Settled,
}

/// How often a change is tried that somebody else is always faster than.
const TRIES_MAX: usize = 32;

/// Changes an object as `change` says, which is asked again if the object has changed in the meantime.
pub(super) async fn change<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    write: &Write<'_>,
    mut change: impl FnMut(&Record<S>) -> Result<Candidate<S>, Failure>,
) -> Result<Arc<Record<S>>, Failure> {
    for _ in 0..TRIES_MAX {
        let old = registry.get(write.name, Moment::Current).await?;
        let candidate = change(&old)?;
        check_version(&candidate.object, &old, S::KIND)?;
        let new = settle(candidate, &old.object, write)?;
        if is_same(&new, &old.object) {
            return Ok(old);
        }
        match store(registry, &old, new, write).await {
            Ok(record) => return Ok(record),
            Err(Unwritten::Changed) => {}
            Err(Unwritten::Failed(failure)) => return Err(failure),
        }
    }
    Err(Failure::modified(S::KIND, write.name))
}

/// A version in the object must be the stored one (API-60).
fn check_version<S: HubSpec>(new: &Object<V1, S>, old: &Record<S>, kind: Kind) -> Result<(), Failure> {
    let version = &new.metadata.resource_version;
    if version.is_empty() {
        return Ok(());
    }
    match parse_uint(version).map_err(Failure::plain)? {
        0 => Ok(()),
        number if number == old.revision => Ok(()),
        _ => Err(Failure::modified(kind, new.name())),
    }
}

/// Sets what the server sets, settles who owns what, and checks the whole.
fn settle<S: HubSpec + ValidSpec>(
    candidate: Candidate<S>,
    old: &Object<V1, S>,
    write: &Write<'_>,
) -> Result<Object<V1, S>, Failure> {
    let Candidate { object: mut new, ownership } = candidate;
    let managed_fields = std::mem::take(&mut new.metadata.managed_fields);
    match write.endpoint {
        Endpoint::Object => prepare::for_update(&mut new, old),
        Endpoint::Status => prepare::for_status_update(&mut new, old),
    }
    new.metadata.managed_fields = managed_fields;
    match ownership {
        Ownership::Settled => {}
        Ownership::Compared => managed_fields::updated(old, &mut new, None, &write.writer(), write.now),
        Ownership::ComparedWithSent => {
            let sent = std::mem::take(&mut new.metadata.managed_fields);
            managed_fields::updated(old, &mut new, Some(sent), &write.writer(), write.now);
        }
    }
    new.metadata.resource_version.clear();
    let checked = match write.endpoint {
        Endpoint::Object => validate::update(&new, old, write.version),
        Endpoint::Status => validate::status_update(&new, old, write.version),
    };
    checked.map_err(|errors| Failure::invalid(S::KIND, new.name(), &errors))?;
    Ok(new)
}

/// Whether nothing has changed but times in `managedFields` (API-58).
fn is_same<S: HubSpec>(new: &Object<V1, S>, old: &Object<V1, S>) -> bool {
    let same_entry = |new: &ManagedFieldsEntry, old: &ManagedFieldsEntry| {
        ManagedFieldsEntry { time: None, ..new.clone() } == ManagedFieldsEntry { time: None, ..old.clone() }
    };
    let (new_fields, old_fields) = (&new.metadata.managed_fields, &old.metadata.managed_fields);
    if new.spec != old.spec
        || new.status != old.status
        || new_fields.len() != old_fields.len()
        || !new_fields.iter().zip(old_fields).all(|(new, old)| same_entry(new, old))
    {
        return false;
    }
    let mut metadata = new.metadata.clone();
    metadata.managed_fields.clone_from(&old.metadata.managed_fields);
    metadata.resource_version.clone_from(&old.metadata.resource_version);
    metadata == old.metadata
}

async fn store<S: HubSpec>(
    registry: &Registry<S>,
    old: &Record<S>,
    mut new: Object<V1, S>,
    write: &Write<'_>,
) -> Result<Arc<Record<S>>, Unwritten> {
    // The last finalizer of an object that is being deleted is gone, and so is the object (API-67).
    let is_gone = new.metadata.deletion_timestamp.is_some() && new.metadata.finalizers.is_empty();
    let is_dry = write.options.persistence == Persistence::DryRun;
    if !is_gone && !is_dry {
        return registry.update(old, &new).await;
    }
    if is_gone && !is_dry {
        registry.delete(old).await?;
    }
    new.metadata.resource_version.clone_from(&old.object.metadata.resource_version);
    Ok(Arc::new(Record::unstored(new)))
}
