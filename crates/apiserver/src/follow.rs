//! `ObjectStream`: the objects of a store after each change, for a flow control.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_engine::controller::Objects;
use evenkeel_store::{Error, Watch, WatchOptions};
use tokio::time::{Instant, sleep, sleep_until};

use crate::failure::Failure;
use crate::log_once::LogOnce;
use crate::options::Moment;
use crate::registry::Registry;

/// The objects of a store, each time they have changed.
///
/// Changes that come while the last ones are being followed are taken together, so that a stream of writes costs a part
/// of a core at most.
#[derive(Debug)]
pub struct ObjectStream {
    schemas: Arc<Registry<FlowSchemaSpec>>,
    levels: Arc<Registry<PriorityLevelConfigurationSpec>>,
    watch: Option<Watch>,
    /// When the objects were last handed out, and how long it took to read them.
    handed_out: Option<(Instant, Duration)>,
    log_once: LogOnce,
}

/// The objects at a revision.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ObjectState {
    /// The objects.
    pub objects: Objects,
    /// The revision.
    pub revision: u64,
}

/// After the objects were read and followed there is a pause of so many times what it took.
const PAUSE_FACTOR: u32 = 9;
const PAUSE_MAX: Duration = Duration::from_millis(80);
/// How long to wait before trying again when the store fails.
const RETRY: Duration = Duration::from_millis(500);
const UNREAD: &str = "cannot read the objects; the last configuration stays in effect";

// === impl ObjectStream ===

impl ObjectStream {
    pub(crate) fn new(
        schemas: Arc<Registry<FlowSchemaSpec>>,
        levels: Arc<Registry<PriorityLevelConfigurationSpec>>,
    ) -> Self {
        Self { schemas, levels, watch: None, handed_out: None, log_once: LogOnce::new(UNREAD) }
    }

    /// The objects: the first time at once, and then as soon as they have changed. None when the store is closed.
    ///
    /// Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Option<ObjectState> {
        loop {
            match self.try_next().await {
                Ok(state) => {
                    self.log_once.succeeded();
                    return Some(state);
                }
                Err(Error::Closed) => return None,
                // Begin again with what there is then. A watch that has fallen behind is no log_once.
                Err(error) => {
                    if !matches!(error, Error::TooOld { .. }) {
                        self.log_once.failed(&**self.schemas.store(), &error).await;
                    }
                    self.watch = None;
                    sleep(RETRY).await;
                }
            }
        }
    }

    async fn try_next(&mut self) -> Result<ObjectState, Error> {
        // Reading the objects and following them take a tenth of the time together, or a little more if there are many.
        let pause = |(at, reading): (Instant, Duration)| ((at.elapsed() + reading) * PAUSE_FACTOR).min(PAUSE_MAX);
        let next_at = Instant::now() + self.handed_out.take().map_or(Duration::ZERO, pause);
        if let Some(watch) = &mut self.watch {
            watch.next().await?;
            sleep_until(next_at).await;
            while watch.try_next()?.is_some() {}
        } else {
            let revision = self.schemas.store().revision().await?;
            self.watch = Some(self.schemas.store().watch(WatchOptions::after(revision)).await?);
        }
        let started_at = Instant::now();
        let state = self.read().await.map_err(|failure| Error::Unavailable(failure.message))?;
        self.handed_out = Some((Instant::now(), started_at.elapsed()));
        Ok(state)
    }

    /// Both kinds at one revision.
    async fn read(&self) -> Result<ObjectState, Failure> {
        let (flow_schemas, revision) = self.schemas.snapshot(Moment::Any).await?;
        let (priority_levels, _) = self.levels.snapshot(Moment::Exactly(revision)).await?;
        Ok(ObjectState { objects: Objects { flow_schemas, priority_levels }, revision })
    }
}
