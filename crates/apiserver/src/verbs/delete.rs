//! Delete (API-66 to API-71).

use std::sync::Arc;

use evenkeel_api::meta::Time;
use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use http::StatusCode;

use super::attempts::Attempts;
use crate::failure::Failure;
use crate::options::{DeleteOptions, Moment, Persistence, Propagation};
use crate::registry::{Managers, Record, Registry, Unwritten};

/// The outcome of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted<S: HubSpec> {
    /// The object is deleted.
    Gone {
        /// Its UID.
        uid: String,
    },
    /// The object is only marked, because of its finalizers.
    Marked(Arc<Record<S>>),
}

/// The finalizers that select a propagation policy.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Deletes the object of this name.
pub(crate) async fn delete<S: HubSpec>(
    registry: &Registry<S>,
    name: &str,
    options: &DeleteOptions,
    now: Time,
) -> Result<Deleted<S>, Failure> {
    let mut attempts = Attempts::begin(registry, name).await;
    loop {
        let stored = registry.find(name, Moment::Current).await?;
        let outcome = match registry.decode(&stored) {
            Ok(old) => remove_or_mark(registry, &old, options, now).await,
            Err(unreadable) => remove_unreadable(registry, &stored, options, unreadable).await,
        };
        match outcome {
            Ok(deleted) => return Ok(deleted),
            Err(Unwritten::Changed) => attempts.again::<S>().await?,
            Err(Unwritten::Failed(failure)) => return Err(failure),
        }
    }
}

async fn remove_or_mark<S: HubSpec>(
    registry: &Registry<S>,
    old: &Arc<Record<S>>,
    options: &DeleteOptions,
    now: Time,
) -> Result<Deleted<S>, Unwritten> {
    check_uid(old, options).map_err(Unwritten::Failed)?;
    check_version::<S>(old.object.name(), old.revision, options).map_err(Unwritten::Failed)?;
    let finalizers = finalizers(&old.object, options.propagation);
    if finalizers.is_empty() {
        remove(registry, old.object.name(), old.revision, options).await?;
        return Ok(Deleted::Gone { uid: old.object.metadata.uid.clone() });
    }
    mark(registry, old, finalizers, options, now).await
}

/// Deletes an unreadable object, so that there is a way to get rid of it. Its UID is unknown, so that a request with a UID as
/// a precondition is rejected.
async fn remove_unreadable<S: HubSpec>(
    registry: &Registry<S>,
    stored: &evenkeel_store::Object,
    options: &DeleteOptions,
    unreadable: Failure,
) -> Result<Deleted<S>, Unwritten> {
    if options.uid.is_some() {
        return Err(Unwritten::Failed(unreadable));
    }
    check_version::<S>(&stored.name, stored.revision, options).map_err(Unwritten::Failed)?;
    remove(registry, &stored.name, stored.revision, options).await?;
    Ok(Deleted::Gone { uid: String::new() })
}

fn check_uid<S: HubSpec>(old: &Record<S>, options: &DeleteOptions) -> Result<(), Failure> {
    let metadata = &old.object.metadata;
    if let Some(uid) = options.uid.as_ref().filter(|uid| **uid != metadata.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            metadata.uid
        );
        return Err(Failure::precondition(S::KIND, old.object.name(), why));
    }
    Ok(())
}

fn check_version<S: HubSpec>(name: &str, revision: u64, options: &DeleteOptions) -> Result<(), Failure> {
    let found = revision.to_string();
    if let Some(version) = options.resource_version.as_ref().filter(|version| **version != found) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({found}). \
             The object might have been modified"
        );
        return Err(Failure::precondition(S::KIND, name, why));
    }
    Ok(())
}

/// Removes the finalizers of the garbage collector from an object that is being deleted, and the object if it has no others.
/// Does nothing if the object is gone or has another UID.
pub(crate) async fn collect<S: HubSpec>(registry: &Registry<S>, name: &str, uid: &str) -> Result<(), Failure> {
    let mut attempts = Attempts::begin(registry, name).await;
    loop {
        let old = match registry.get(name, Moment::Current).await {
            Err(failure) if failure.status == StatusCode::NOT_FOUND => return Ok(()),
            found => found?,
        };
        let metadata = &old.object.metadata;
        let others = metadata.finalizers.iter().filter(|name| !is_of_the_collector(name)).cloned().collect();
        if metadata.uid != uid || metadata.deletion_timestamp.is_none() || metadata.finalizers == others {
            return Ok(());
        }
        match collect_once(registry, &old, others).await {
            Ok(()) => return Ok(()),
            Err(Unwritten::Changed) => attempts.again::<S>().await?,
            Err(Unwritten::Failed(failure)) => return Err(failure),
        }
    }
}

async fn collect_once<S: HubSpec>(
    registry: &Registry<S>,
    old: &Record<S>,
    others: Vec<String>,
) -> Result<(), Unwritten> {
    if others.is_empty() {
        return registry.delete(old.object.name(), old.revision).await.map(drop);
    }
    let mut object = Object::clone(&old.object);
    object.metadata.finalizers = others;
    registry.update(old, object, Managers::Expendable).await.map(drop)
}

/// Whether a finalizer is one that a garbage collector removes.
pub(crate) fn is_of_the_collector(finalizer: &str) -> bool {
    matches!(finalizer, ORPHAN | FOREGROUND)
}

/// The finalizers that the object has after a deletion with this policy (API-70).
fn finalizers<S: HubSpec>(object: &Object<V1, S>, propagation: Propagation) -> Vec<String> {
    let wanted = match propagation {
        Propagation::Default => return object.metadata.finalizers.clone(),
        Propagation::Background | Propagation::Cascade => None,
        Propagation::Orphan => Some(ORPHAN),
        Propagation::Foreground => Some(FOREGROUND),
    };
    let mut finalizers: Vec<String> = object.metadata.finalizers.clone();
    finalizers.retain(|name| !is_of_the_collector(name) || wanted == Some(name.as_str()));
    if let Some(wanted) = wanted.filter(|wanted| !finalizers.iter().any(|name| name == wanted)) {
        finalizers.push(wanted.to_owned());
    }
    finalizers
}

async fn remove<S: HubSpec>(
    registry: &Registry<S>,
    name: &str,
    revision: u64,
    options: &DeleteOptions,
) -> Result<(), Unwritten> {
    if options.persistence == Persistence::Stored {
        registry.delete(name, revision).await?;
    }
    Ok(())
}

/// Marks the object as being deleted (API-67).
async fn mark<S: HubSpec>(
    registry: &Registry<S>,
    old: &Arc<Record<S>>,
    finalizers: Vec<String>,
    options: &DeleteOptions,
    now: Time,
) -> Result<Deleted<S>, Unwritten> {
    let mut object = Object::clone(&old.object);
    object.metadata.finalizers = finalizers;
    if object.metadata.deletion_timestamp.is_none() {
        object.metadata.deletion_timestamp = Some(now);
        object.metadata.deletion_grace_period_seconds = Some(0);
        object.metadata.generation += 1;
    }
    if object == *old.object {
        return Ok(Deleted::Marked(Arc::clone(old)));
    }
    if options.persistence == Persistence::DryRun {
        return Ok(Deleted::Marked(Arc::new(Record::unstored(object))));
    }
    registry.update(old, object, Managers::Expendable).await.map(Deleted::Marked)
}
