//! Writes that wait until they are in effect, and changes that do not affect requests.

use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_api::meta::Time;
use evenkeel_api::v1::FlowSchema;
use evenkeel_api::{Kind, Preset};
use evenkeel_engine::controller::Dangling;
use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;

use super::*;
use crate::registry::Registry;

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Running {
    store: Arc<dyn Store>,
    followed: Followed,
    task: JoinHandle<()>,
}

impl Running {
    fn start() -> Self {
        let store: Arc<dyn Store> = Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).unwrap());
        let (followed, follow_store) = Followed::new();
        let schemas = Arc::new(Registry::new(Arc::clone(&store), Preset::Kubernetes));
        let levels = Arc::new(Registry::new(Arc::clone(&store), Preset::Kubernetes));
        Self { store, followed, task: tokio::spawn(follow_store.run(schemas, levels)) }
    }

    /// Creates a schema, and returns its revision.
    async fn create(&self, name: &str) -> u64 {
        let payload = payload(&FlowSchema::builder(name).priority_level("exempt").build());
        self.store.create(Kind::FlowSchema, name, payload).await.unwrap().revision
    }
}

fn payload(schema: &FlowSchema) -> Bytes {
    serde_json::to_vec(schema).unwrap().into()
}

/// Polls a future once.
async fn poll_once<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

impl Running {
    /// Whether a revision is known to be in effect now.
    async fn is_in_effect(&self, revision: u64) -> bool {
        poll_once(pin!(self.followed.in_effect(revision))).await == Poll::Ready(true)
    }

    /// Waits until a revision is in effect, also while the follower pauses, which it may do on a busy machine.
    async fn reaches(&self, revision: u64) {
        let reached = async {
            while !self.followed.in_effect(revision).await {
                yield_now().await;
            }
        };
        timeout(PATIENCE, reached).await.unwrap();
    }
}

/// Asks for the next objects, which have not arrived yet.
async fn asks_again(stream: &mut ObjectStream) {
    assert!(poll_once(pin!(stream.next())).await.is_pending());
}

#[tokio::test]
async fn a_write_is_in_effect_when_all_flow_controls_have_asked_for_the_next_objects() {
    let running = Running::start();
    let (mut fast, mut slow) = (running.followed.stream_for_flow_control(), running.followed.stream_for_flow_control());
    // A stream for others than flow controls is not waited for.
    let mut observer = running.followed.stream();
    let first = observer.next().await.unwrap();
    for stream in [&mut fast, &mut slow] {
        assert_eq!(stream.next().await.unwrap().revision, first.revision);
        asks_again(stream).await;
    }
    let revision = running.create("a").await;
    assert!(!running.is_in_effect(revision).await);
    for stream in [&mut fast, &mut slow] {
        let state = stream.next().await.unwrap();
        assert_eq!((state.revision, state.objects.flow_schemas.len()), (revision, 1));
        assert!(!running.is_in_effect(revision).await, "it has the objects, but has not put them into effect");
        asks_again(stream).await;
    }
    running.reaches(revision).await;
    // A flow control that is gone is not waited for either.
    drop(slow);
    let revision = running.create("b").await;
    fast.next().await.unwrap();
    asks_again(&mut fast).await;
    running.reaches(revision).await;
}

#[tokio::test]
async fn a_write_of_a_status_goes_no_further_than_the_shared_state() {
    let running = Running::start();
    let (mut stream, mut states) = (running.followed.stream_for_flow_control(), running.followed.states());
    let created = running.create("a").await;
    while stream.next().await.unwrap().revision < created {}
    asks_again(&mut stream).await;

    let mut schema = FlowSchema::builder("a").priority_level("exempt").build();
    schema.status.conditions.push(Dangling::new("a", "exempt", false).condition(Time::from_unix_seconds(1)));
    let revision = running.store.update(Kind::FlowSchema, "a", created, payload(&schema)).await.unwrap().revision;
    let state = timeout(PATIENCE, states.wait_for(|state| state.as_ref().is_some_and(|it| it.revision == revision)));
    let dangling = state.await.unwrap().unwrap().as_ref().map(|it| it.upkeep.flow_schemas[0].dangling);
    assert_eq!(dangling, Some(Some(false)), "controllers see it");
    assert!(running.is_in_effect(revision).await, "there is nothing to wait for");
    // A status does not affect a flow control.
    asks_again(&mut stream).await;

    let precedence = schema.spec.matching_precedence + 1;
    schema.spec.matching_precedence = precedence;
    running.store.update(Kind::FlowSchema, "a", revision, payload(&schema)).await.unwrap();
    let state = timeout(PATIENCE, stream.next()).await.unwrap().unwrap();
    assert_eq!(state.objects.flow_schemas[0].spec.matching_precedence, precedence);
}

#[tokio::test]
async fn a_store_that_is_closed_ends_everything() {
    let running = Running::start();
    let mut stream = running.followed.stream();
    stream.next().await.unwrap();
    running.store.close().await.unwrap();
    timeout(PATIENCE, running.task).await.unwrap().unwrap();
    assert!(stream.next().await.is_none());
    assert!(!running.followed.in_effect(u64::MAX).await);
}

/// A second in all, wherever it passes: in the follower, whose store may fail, or in a flow control.
#[tokio::test(start_paused = true)]
async fn a_write_waits_for_its_effect_for_at_most_a_second_in_all() {
    let (publish, states) = watch::channel(None);
    let (_rest, is_resting) = watch::channel(false);
    let followed = Followed { states, is_resting, effects: Arc::default() };
    let second = Duration::from_secs(1);
    let waited = async |revision| {
        let begun = tokio::time::Instant::now();
        assert!(!followed.in_effect(revision).await);
        begun.elapsed()
    };
    assert_eq!(waited(1).await, second, "the follower does not reach the revision");

    let slow = Effects::join(&followed.effects);
    slow.reach(1);
    let state = ObjectsAt {
        revision: 2,
        generation: 2,
        objects: evenkeel_engine::controller::Objects::default(),
        upkeep: UpkeepOfObjects::default(),
    };
    let publishes = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        publish.send_replace(Some(Arc::new(state)));
    };
    let (waited, ()) = tokio::join!(waited(2), publishes);
    assert_eq!(waited, second, "the flow control gets what the follower has left of the second");
}
