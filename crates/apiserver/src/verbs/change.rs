//! How an existing object changes: read, change, check, write, and retry after a conflict
//! (API-56 to API-61, API-67).

use std::sync::Arc;

use evenkeel_api::v1::V1;
use evenkeel_api::validate::{self, Context, EmptyRules, ValidSpec};
use evenkeel_api::{HubSpec, Kind, Object, Preset};

use super::attempts::Attempts;
use super::{Write, prepare};
use crate::failure::Failure;
use crate::managed_fields::{self, SentManagers, WriteTarget};
use crate::offload::Offload;
use crate::options::{Moment, Persistence};
use crate::registry::{Managers, Record, Registry, Unwritten};
use crate::strconv::parse_uint;

/// The object that is to be written.
#[derive(Debug)]
pub(super) struct Candidate<S: HubSpec> {
    pub(super) object: Object<V1, S>,
    pub(super) managed_fields: ManagedFields,
    pub(super) empty_rules: EmptyRules,
}

/// Where the new `managedFields` come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ManagedFields {
    /// From a comparison of old and new, starting with what was sent.
    Compare(SentManagers),
    /// The fields are in the object already.
    Final,
}

// === impl ManagedFields ===

impl ManagedFields {
    fn managers(self) -> Managers {
        match self {
            Self::Compare(_) => Managers::Expendable,
            Self::Final => Managers::Needed,
        }
    }
}

/// Changes an object by `change`, which is called again if the object has changed in the meantime.
pub(super) async fn change<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    write: &Write<'_>,
    mut change: impl FnMut(&Record<S>) -> Result<Candidate<S>, Failure>,
) -> Result<Arc<Record<S>>, Failure> {
    let mut attempts = Attempts::begin(registry, write.name).await;
    loop {
        let old = registry.get(write.name, Moment::Current).await?;
        match attempt(registry, old, write, &mut change).await {
            Ok(record) => return Ok(record),
            Err(Unwritten::Changed) => attempts.again::<S>().await?,
            Err(Unwritten::Failed(failure)) => return Err(failure),
        }
    }
}

/// Changes an object that was read, unless it has changed since.
pub(super) async fn attempt<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    old: Arc<Record<S>>,
    write: &Write<'_>,
    change: impl FnOnce(&Record<S>) -> Result<Candidate<S>, Failure>,
) -> Result<Arc<Record<S>>, Unwritten> {
    let place = Offload::of(write.weight + old.len()).await;
    let changed = place.run(|| {
        let candidate = change(&old)?;
        check_version(&candidate.object, &old, S::KIND)?;
        let managers = candidate.managed_fields.managers();
        let mut new = prepared(candidate, &old.object, write, registry.preset())?;
        Ok(managed_fields::differs(&old.object, &mut new).then_some((new, managers)))
    });
    match changed.map_err(Unwritten::Failed)? {
        Some((new, managers)) => store(registry, &old, new, write, managers).await,
        None => Ok(old),
    }
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

/// Sets the server's fields, updates the owners of fields, and validates the object.
fn prepared<S: HubSpec + ValidSpec>(
    candidate: Candidate<S>,
    old: &Object<V1, S>,
    write: &Write<'_>,
    preset: Preset,
) -> Result<Object<V1, S>, Failure> {
    let Candidate { object: mut new, managed_fields, empty_rules } = candidate;
    match write.endpoint {
        WriteTarget::Object => prepare::for_update(&mut new, old),
        WriteTarget::Status => prepare::for_status_update(&mut new, old),
    }
    if let ManagedFields::Compare(sent) = managed_fields {
        managed_fields::updated(old, &mut new, sent, write.writer(), write.now);
    }
    new.metadata.resource_version.clone_from(&old.metadata.resource_version);
    let context = Context { version: write.version, preset, empty_rules };
    let checked = match write.endpoint {
        WriteTarget::Object => validate::update(&new, old, context),
        WriteTarget::Status => validate::status_update(&new, old, context),
    };
    checked.map_err(|errors| Failure::invalid(S::KIND, new.name(), &errors))?;
    Ok(new)
}

async fn store<S: HubSpec>(
    registry: &Registry<S>,
    old: &Record<S>,
    new: Object<V1, S>,
    write: &Write<'_>,
    managers: Managers,
) -> Result<Arc<Record<S>>, Unwritten> {
    // Without its last finalizer, an object that is being deleted is deleted (API-67).
    let is_gone = new.metadata.deletion_timestamp.is_some() && new.metadata.finalizers.is_empty();
    let is_dry = write.options.persistence == Persistence::DryRun;
    // A deletion is never rejected.
    let _checked = if is_gone { None } else { write.check_seats(&new).await.map_err(Unwritten::Failed)? };
    if !is_gone && !is_dry {
        return registry.update(old, new, managers).await;
    }
    if is_gone && !is_dry {
        registry.delete(old.object.name(), old.revision).await?;
    }
    Ok(Arc::new(Record::unstored(new)))
}
