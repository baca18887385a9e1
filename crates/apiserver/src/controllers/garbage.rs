//! Does what a garbage collector does with deleted objects: removes the finalizers `orphan` and `foregroundDeletion`, which
//! wait for the dependants of an object (API-70).
//!
//! Nothing depends on objects of this group, so there is nothing to wait for. A kube-apiserver leaves this to the
//! controller manager; without one, `kubectl delete --cascade=foreground` waits for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::{Error, Watch, WatchOptions};
use tokio::time::{Instant, sleep, sleep_until};

use crate::failure::Failure;
use crate::log_once::LogOnce;
use crate::options::Moment;
use crate::registry::Registry;
use crate::verbs;

/// Who deletes an object still sees it marked for so long, as in a cluster: a client can read the finalizer that its request
/// made, and take it back.
const MARKED_FOR: Duration = Duration::from_secs(1);
/// How long to wait before trying again when the store fails.
const PAUSE: Duration = Duration::from_secs(1);

/// The objects that were found marked: when their finalizers are removed, by their identities.
type Due = BTreeMap<String, Instant>;

/// Collects the objects of one kind, until the store is closed.
pub(crate) async fn run<S: HubSpec>(registry: &Registry<S>) {
    let mut log_once = LogOnce::new("cannot finish the deletion of objects");
    loop {
        match follow(registry, &mut log_once).await {
            Err(Error::Closed) => return,
            // A watch that has fallen behind is no failure.
            Err(Error::TooOld { .. }) | Ok(()) => {}
            Err(error) => log_once.failed(&**registry.store(), &error).await,
        }
        sleep(PAUSE).await;
    }
}

async fn follow<S: HubSpec>(registry: &Registry<S>, log_once: &mut LogOnce) -> Result<(), Error> {
    let revision = registry.store().revision().await?;
    let mut watch = registry.store().watch(WatchOptions::of(S::KIND, revision)).await?;
    let mut due = Due::new();
    loop {
        let collected = collect_due(registry, &mut due).await;
        log_once.note(&**registry.store(), &collected).await;
        let next_at = match collected {
            Ok(()) => due.values().min().copied(),
            Err(_) => Some(Instant::now() + PAUSE),
        };
        wait(&mut watch, next_at).await?;
    }
}

/// Waits for a change of the objects, or until something is due.
async fn wait(watch: &mut Watch, next_at: Option<Instant>) -> Result<(), Error> {
    let due = async {
        match next_at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        event = watch.next() => { event?; }
        () = due => {}
    }
    while watch.try_next()?.is_some() {}
    Ok(())
}

/// Collects the objects whose time has come, and notes those that are newly marked.
async fn collect_due<S: HubSpec>(registry: &Registry<S>, due: &mut Due) -> Result<(), Failure> {
    let (objects, _) = registry.snapshot(Moment::Any).await?;
    let now = Instant::now();
    let before = std::mem::take(due);
    let mut failed = None;
    for object in objects.iter().filter(|object| is_waiting(object)) {
        let uid = &object.metadata.uid;
        let at = before.get(uid).copied().unwrap_or(now + MARKED_FOR);
        if at <= now {
            match verbs::collect(registry, object.name(), uid).await {
                Ok(()) => continue,
                // One that cannot be written must not keep the others.
                Err(failure) => failed = Some(failure),
            }
        }
        due.insert(uid.clone(), at);
    }
    failed.map_or(Ok(()), Err)
}

/// Whether the object is deleted and has a finalizer that a garbage collector removes.
fn is_waiting<S: HubSpec>(object: &Object<V1, S>) -> bool {
    object.metadata.deletion_timestamp.is_some()
        && object.metadata.finalizers.iter().any(|name| verbs::is_of_the_collector(name))
}
