//! `Follower`: reads the objects after each write, and publishes them.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_store::{Error, Store, Watch, WatchOptions};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::ObjectsAt;
use super::effect::Effects;
use super::pace::FollowPace;
use crate::failure::Failure;
use crate::log_once::LogOnce;
use crate::options::Moment;
use crate::registry::{ObjectsOfKind, Registry};

/// Reads the objects after each write, and publishes them. Writes that arrive meanwhile are read together.
#[derive(Debug)]
pub(crate) struct Follower {
    states: watch::Sender<Option<Arc<ObjectsAt>>>,
    is_resting: watch::Sender<bool>,
    effects: Arc<Effects>,
}

/// How long to wait before trying again when the store fails.
const RETRY: Duration = Duration::from_millis(500);
const UNREAD: &str = "cannot read the objects; the last configuration stays in effect";

// === impl Follower ===

impl Follower {
    pub(super) fn new(
        states: watch::Sender<Option<Arc<ObjectsAt>>>,
        is_resting: watch::Sender<bool>,
        effects: Arc<Effects>,
    ) -> Self {
        Self { states, is_resting, effects }
    }

    /// Follows the objects until the store is closed.
    pub(crate) async fn run(
        self,
        schemas: Arc<Registry<FlowSchemaSpec>>,
        levels: Arc<Registry<PriorityLevelConfigurationSpec>>,
    ) {
        let mut pace = FollowPace::new(Instant::now());
        let mut log_once = LogOnce::new(UNREAD);
        loop {
            match self.follow(&schemas, &levels, &mut pace, &mut log_once).await {
                Error::Closed => return,
                // A watch that has fallen behind is not a failure.
                Error::TooOld { .. } => {}
                error => log_once.failed(&**schemas.store(), &error).await,
            }
            self.rest(RETRY).await;
        }
    }

    /// Follows the objects until there is an error, starting with the present ones.
    async fn follow(
        &self,
        schemas: &Registry<FlowSchemaSpec>,
        levels: &Registry<PriorityLevelConfigurationSpec>,
        pace: &mut FollowPace,
        log_once: &mut LogOnce,
    ) -> Error {
        let mut watch = match watch_from_now(&**schemas.store()).await {
            Ok(watch) => watch,
            Err(error) => return error,
        };
        loop {
            let started_at = Instant::now();
            let (schemas, levels) = match read(schemas, levels).await {
                Ok(read) => read,
                Err(failure) => return Error::Unavailable(failure.message),
            };
            log_once.succeeded();
            let revision = schemas.revision;
            self.publish(schemas, levels).await;
            let now = Instant::now();
            let rest = pace.take(now - started_at, now);
            if !rest.is_zero() {
                self.rest(rest).await;
            }
            if let Err(error) = next_writes(&mut watch, revision).await {
                return error;
            }
        }
    }

    /// Publishes the objects, and waits until the flow controls follow them.
    async fn publish(
        &self,
        schemas: ObjectsOfKind<FlowSchemaSpec>,
        levels: ObjectsOfKind<PriorityLevelConfigurationSpec>,
    ) {
        let state = {
            let before = self.states.borrow();
            Arc::new(ObjectsAt::after(before.as_deref(), schemas, levels))
        };
        let generation = state.generation;
        self.states.send_replace(Some(state));
        self.effects.reached(generation).await;
    }

    /// Pauses. During the pause, no write waits for its effect.
    async fn rest(&self, time: Duration) {
        self.is_resting.send_replace(true);
        sleep(time).await;
        self.is_resting.send_replace(false);
    }
}

async fn watch_from_now(store: &dyn Store) -> Result<Watch, Error> {
    let revision = store.revision().await?;
    store.watch(WatchOptions::after(revision)).await
}

/// Waits for a write after this revision, and skips all that have arrived.
async fn next_writes(watch: &mut Watch, revision: u64) -> Result<(), Error> {
    while watch.next().await?.revision <= revision {}
    while watch.try_next()?.is_some() {}
    Ok(())
}

/// Both kinds at one revision.
async fn read(
    schemas: &Registry<FlowSchemaSpec>,
    levels: &Registry<PriorityLevelConfigurationSpec>,
) -> Result<(ObjectsOfKind<FlowSchemaSpec>, ObjectsOfKind<PriorityLevelConfigurationSpec>), Failure> {
    let schemas = schemas.snapshot(Moment::Any).await?;
    let levels = levels.snapshot(Moment::Exactly(schemas.revision)).await?;
    Ok((schemas, levels))
}
