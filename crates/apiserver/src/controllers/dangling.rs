//! Writes the condition `Dangling` of every flow schema: whether its priority level is missing (API-197).

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use evenkeel_api::meta::Time;
use evenkeel_api::v1::{Condition, FlowSchema, FlowSchemaSpec};
use evenkeel_api::{Kind, Version};
use evenkeel_engine::controller::{DANGLING, Dangling};
use http::StatusCode;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::due_at;
use crate::clock::now;
use crate::failure::Failure;
use crate::follow::{ObjectsAt, States};
use crate::log_once::LogOnce;
use crate::managed_fields::{OnConflict, WriteTarget};
use crate::options::{Moment, Persistence, WriteOptions};
use crate::patch::FieldValidation;
use crate::registry::Registry;
use crate::verbs::{self, Write};

/// The manager that writes the condition.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// One flow schema is written at most this often in [`WINDOW`].
const WRITES_MAX: usize = 6;
const WINDOW: Duration = Duration::from_secs(60);
/// Changes come in groups, such as a schema and its level: conditions are written when a group is complete.
const GATHERING: Duration = Duration::from_millis(20);
/// How long to wait before a write that failed is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Recent writes of each flow schema, so that a fight with another writer stays slow.
#[derive(Debug, Default)]
struct WritePace {
    /// By a hash of the name, so that very many schemas take little memory. Two of the same hash would share a limit.
    writes: HashMap<u64, Vec<Instant>>,
    hasher: RandomState,
}

/// The outcome of updating all flow schemas.
#[derive(Debug, Default)]
struct RoundSummary {
    /// How many conditions were written.
    written: usize,
    /// When to retry those that had to wait.
    retry_at: Option<Instant>,
    /// Why one of them could not be written.
    failed: Option<Failure>,
}

/// The outcome of checking one condition.
#[derive(Debug)]
enum ConditionWrite {
    Written,
    /// The condition is as it should be, or the schema is gone.
    NotNeeded,
    /// The condition was written too often, and may be written again at this time.
    TooOften(Instant),
}

/// Whether conditions can be written, by the last round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundOutcome {
    /// The condition was written, or did not have to be.
    Working,
    /// Some have to be written, and none was tried: they were tried too often before.
    NothingTried,
}

/// Writes conditions after each change of the objects, until the store is closed.
pub(crate) async fn run(schemas: &Registry<FlowSchemaSpec>, mut states: States) {
    let mut pace = WritePace::default();
    let mut log_once = LogOnce::new("cannot update the condition Dangling");
    loop {
        let state = states.borrow_and_update().clone();
        let round = match &state {
            Some(state) => write_due(schemas, state, &mut pace).await,
            None => RoundSummary::default(),
        };
        drop(state);
        let retry_at = round.retry_at;
        match round.outcome() {
            Ok(RoundOutcome::Working) => log_once.succeeded(),
            Ok(RoundOutcome::NothingTried) => {}
            Err(failure) => log_once.failed(&**schemas.store(), &failure).await,
        }
        tokio::select! {
            changed = states.changed() => match changed {
                Ok(()) => sleep(GATHERING).await,
                Err(_) => return,
            },
            () = due_at(retry_at) => {}
        }
    }
}

/// Writes every condition that is not as it should be.
async fn write_due(schemas: &Registry<FlowSchemaSpec>, state: &ObjectsAt, pace: &mut WritePace) -> RoundSummary {
    let ObjectsAt { objects, upkeep, .. } = state;
    let existing: BTreeSet<&str> = objects.priority_levels.iter().map(|level| level.name()).collect();
    pace.forget_old();
    let mut round = RoundSummary::default();
    for (schema, upkeep) in objects.flow_schemas.iter().zip(&upkeep.flow_schemas) {
        let exists = existing.contains(schema.spec.priority_level_configuration.name.as_str());
        if upkeep.dangling == Some(!exists) {
            continue;
        }
        let again_at = match write_if_due(schemas, schema.name(), exists, pace).await {
            Ok(ConditionWrite::Written) => {
                round.written += 1;
                continue;
            }
            Ok(ConditionWrite::NotNeeded) => continue,
            Ok(ConditionWrite::TooOften(until)) => until,
            // A failed write must not keep the others from being updated.
            Err(failure) => {
                round.failed.get_or_insert(failure);
                Instant::now() + PAUSE
            }
        };
        round.retry_at = Some(round.retry_at.map_or(again_at, |earlier| earlier.min(again_at)));
    }
    round
}

/// Writes the condition of one schema. The schema is read again: the followed state may be older than the last write of this
/// task.
async fn write_if_due(
    schemas: &Registry<FlowSchemaSpec>,
    name: &str,
    exists: bool,
    pace: &mut WritePace,
) -> Result<ConditionWrite, Failure> {
    let present = match schemas.get(name, Moment::Any).await {
        // The schema was deleted in the meantime.
        Err(failure) if failure.status == StatusCode::NOT_FOUND => return Ok(ConditionWrite::NotNeeded),
        present => present?,
    };
    let Some(condition) = due(&present.object, exists, now()) else { return Ok(ConditionWrite::NotNeeded) };
    if let Err(until) = pace.take(name) {
        return Ok(ConditionWrite::TooOften(until));
    }
    write(schemas, name, &condition).await.map(|()| ConditionWrite::Written)
}

/// The condition that the schema should have, if it does not have it.
fn due(schema: &FlowSchema, exists: bool, now: Time) -> Option<Condition> {
    let level = &schema.spec.priority_level_configuration.name;
    let dangling = Dangling::new(schema.name(), level, !exists);
    if dangling.is_told_by(schema) {
        return None;
    }
    let mut condition = dangling.condition(now);
    // The time is that of the last change of the status, not of its reason.
    let old = schema.status.condition(DANGLING).filter(|old| old.status == condition.status);
    if let Some(since) = old.and_then(|old| old.last_transition_time) {
        condition.last_transition_time = Some(since);
    }
    Some(condition)
}

async fn write(schemas: &Registry<FlowSchemaSpec>, name: &str, condition: &Condition) -> Result<(), Failure> {
    let body = json!({
        "apiVersion": Version::V1.api_version(),
        "kind": Kind::FlowSchema.name(),
        "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    let options = WriteOptions {
        persistence: Persistence::Stored,
        validation: FieldValidation::Ignore,
        manager: MANAGER.to_owned(),
        on_conflict: OnConflict::Force,
    };
    let write = Write {
        version: Version::V1,
        name,
        endpoint: WriteTarget::Status,
        options: &options,
        now: now(),
        weight: 0,
        seats: None,
    };
    match verbs::apply(schemas, body.to_string().as_bytes(), &write, &mut Vec::new()).await {
        // The schema was deleted in the meantime.
        Err(failure) if failure.status == StatusCode::NOT_FOUND => Ok(()),
        applied => applied.map(|_| ()),
    }
}

// === impl RoundSummary ===

impl RoundSummary {
    fn outcome(self) -> Result<RoundOutcome, Failure> {
        match self {
            Self { failed: Some(failure), .. } => Err(failure),
            Self { written: 0, retry_at: Some(_), .. } => Ok(RoundOutcome::NothingTried),
            Self { .. } => Ok(RoundOutcome::Working),
        }
    }
}

// === impl WritePace ===

impl WritePace {
    /// Counts a write, or says when it may take place.
    fn take(&mut self, name: &str) -> Result<(), Instant> {
        let now = Instant::now();
        let writes = self.writes.entry(self.hasher.hash_one(name)).or_insert_with(|| Vec::with_capacity(1));
        writes.retain(|at| now.duration_since(*at) < WINDOW);
        match writes.first() {
            Some(oldest) if writes.len() >= WRITES_MAX => Err(*oldest + WINDOW),
            _ => {
                writes.push(now);
                Ok(())
            }
        }
    }

    /// Forgets the writes that no longer count.
    fn forget_old(&mut self) {
        let now = Instant::now();
        self.writes.retain(|_, writes| writes.last().is_some_and(|last| now.duration_since(*last) < WINDOW));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_api::Preset;
    use evenkeel_engine::controller::Objects;
    use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};

    use super::*;
    use crate::follow::UpkeepOfObjects;
    use crate::registry::ObjectsOfKind;

    #[tokio::test]
    async fn a_round_that_tries_nothing_shows_nothing() {
        let store: Arc<dyn Store> = Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).unwrap());
        let schemas = Registry::new(Arc::clone(&store), Preset::Kubernetes);
        let schema = json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
            "metadata": {"name": "a"}, "spec": {"priorityLevelConfiguration": {"name": "gone"}}});
        store.create(Kind::FlowSchema, "a", schema.to_string().into()).await.unwrap();
        let ObjectsOfKind { objects, upkeep, revision } = schemas.snapshot(Moment::Any).await.unwrap();
        let state = ObjectsAt {
            revision,
            generation: 1,
            objects: Objects { flow_schemas: objects, priority_levels: Vec::new() },
            upkeep: UpkeepOfObjects { flow_schemas: upkeep, priority_levels: Vec::new() },
        };
        let mut pace = WritePace::default();
        while pace.take("a").is_ok() {}
        // The write was tried too often, perhaps in vain: nothing says that it would succeed now.
        let round = write_due(&schemas, &state, &mut pace).await;
        assert_eq!(round.outcome().unwrap(), RoundOutcome::NothingTried);
        // A write that succeeds shows that writes work, and so does a round without a need to write, also if the objects were
        // read before it.
        for written in [1, 0] {
            let round = write_due(&schemas, &state, &mut WritePace::default()).await;
            assert_eq!((round.written, round.outcome().unwrap()), (written, RoundOutcome::Working));
        }
        store.close().await.unwrap();
    }

    #[test]
    fn api_197_the_condition_and_when_it_changed() {
        let schema = FlowSchema::builder("a").priority_level("gone").build();
        let early = Time::from_unix_seconds(100);
        let condition = due(&schema, false, early).unwrap();
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "NotFound"));
        let mut told = schema.clone();
        told.status.conditions.push(condition);
        assert_eq!(due(&told, false, early), None, "it is told once");
        let found = due(&told, true, Time::from_unix_seconds(200)).unwrap();
        assert_eq!((found.status.as_str(), found.last_transition_time), ("False", Some(Time::from_unix_seconds(200))));
        told.spec.priority_level_configuration.name = "also-gone".to_owned();
        let renamed = due(&told, false, Time::from_unix_seconds(300)).unwrap();
        assert_eq!(renamed.last_transition_time, Some(early), "the status did not change");
    }

    #[tokio::test(start_paused = true)]
    async fn api_197_at_most_six_writes_a_minute() {
        let mut pace = WritePace::default();
        let started_at = Instant::now();
        for _ in 0..WRITES_MAX {
            assert_eq!(pace.take("a"), Ok(()));
        }
        assert_eq!(pace.take("a"), Err(started_at + WINDOW));
        assert_eq!(pace.take("b"), Ok(()), "each for itself");
        tokio::time::advance(WINDOW).await;
        assert_eq!(pace.take("a"), Ok(()));
        pace.forget_old();
        assert_eq!(pace.writes.len(), 1, "old writes take no memory");
    }
}
