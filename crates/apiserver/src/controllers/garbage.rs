//! Does what a garbage collector does with deleted objects: removes the finalizers `orphan` and `foregroundDeletion`, which
//! wait for the dependants of an object (API-70).
//!
//! Nothing depends on objects of this group, so there is nothing to wait for. A kube-apiserver leaves this to the
//! controller manager; without one, `kubectl delete --cascade=foreground` waits for ever.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use tokio::time::Instant;

use super::due_at;
use crate::failure::Failure;
use crate::follow::{ObjectsAt, States};
use crate::log_once::LogOnce;
use crate::registry::{Registry, Upkeep};
use crate::verbs;

/// A deleted object stays visible with its mark for this long, as in a cluster: a client can read the finalizer that its
/// request set, and remove it.
const MARKED_FOR: Duration = Duration::from_secs(1);
/// How long to wait before a write that failed is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Objects marked for deletion: when their finalizers are removed, by UID.
type Due = BTreeMap<String, Instant>;

/// Selects the objects of one kind, and the upkeep of each.
type OfKind<S> = fn(&ObjectsAt) -> (&[Arc<Object<V1, S>>], &[Upkeep]);

/// Collects the objects of one kind after each change, until the store is closed.
pub(crate) async fn run<S: HubSpec>(registry: &Registry<S>, mut states: States, of_kind: OfKind<S>) {
    let mut log_once = LogOnce::new("cannot finish the deletion of objects");
    let mut due = Due::new();
    loop {
        let state = states.borrow_and_update().clone();
        let (objects, upkeep) = state.as_ref().map_or((&[][..], &[][..]), |state| of_kind(state));
        let marked = objects.iter().zip(upkeep).filter(|(_, upkeep)| upkeep.awaits_collector);
        let collected = collect_due(registry, marked.map(|(object, _)| object), &mut due).await;
        log_once.note(&**registry.store(), &collected).await;
        let next_at = match collected {
            Ok(()) => due.values().min().copied(),
            Err(_) => Some(Instant::now() + PAUSE),
        };
        drop(state);
        tokio::select! {
            changed = states.changed() => if changed.is_err() { return },
            () = due_at(next_at) => {}
        }
    }
}

/// Removes the finalizers that are due, and notes newly marked objects.
async fn collect_due<'a, S: HubSpec>(
    registry: &Registry<S>,
    marked: impl Iterator<Item = &'a Arc<Object<V1, S>>>,
    due: &mut Due,
) -> Result<(), Failure> {
    let now = Instant::now();
    let before = std::mem::take(due);
    let mut failed = None;
    for object in marked {
        let uid = &object.metadata.uid;
        let at = before.get(uid).copied().unwrap_or(now + MARKED_FOR);
        if at <= now {
            match verbs::collect(registry, object.name(), uid).await {
                Ok(()) => continue,
                // A failed write must not keep the other objects from being collected.
                Err(failure) => failed = Some(failure),
            }
        }
        due.insert(uid.clone(), at);
    }
    failed.map_or(Ok(()), Err)
}
