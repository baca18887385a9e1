//! `WatchStream`: the events of a watch, line by line.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::{Change, Error, Event, Watch};
use http::HeaderValue;
use tokio::time::{Instant, sleep_until};

use crate::clock::now;
use crate::failure::Failure;
use crate::options::{Initial, Moment, Selection, WatchOptions};
use crate::output::{Bookmark, Change as Told, Columns, EventWriter};
use crate::registry::{Record, Registry, Unlisted};

/// The events of a watch.
pub(crate) struct WatchStream<S: HubSpec> {
    registry: Arc<Registry<S>>,
    selection: Selection,
    writer: EventWriter,
    state: WatchState<S>,
    /// When a bookmark is due, if the client wants bookmarks.
    bookmark_at: Option<Instant>,
    /// When the last bookmark before the end is due, until it has been sent.
    last_bookmark_at: Option<Instant>,
    /// No bookmark has been sent since then. One at the end may still have a new revision.
    owes_last_bookmark: bool,
    ends_at: Instant,
    /// The revision that the client knows.
    known: u64,
    /// No events up to this revision: a watch may start in the future (API-169).
    silent_to: u64,
}

/// The phase of the watch.
enum WatchState<S: HubSpec> {
    /// The present objects have not been read.
    Begin(Option<u64>, Initial),
    /// The present objects are being sent.
    Objects {
        items: VecDeque<Arc<Record<S>>>,
        revision: u64,
        initial: Initial,
    },
    /// Changes are being sent.
    Changes(Watch),
    /// A failure that has not been sent yet.
    Failed(Failure),
    Ended,
}

/// Bookmarks come about once a minute (API-163).
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// The last bookmark is sent this long before the end.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// A watch without a timeout ends after half an hour to an hour (API-166).
const LENGTH_MIN_SECONDS: u64 = 1800;

// === impl WatchStream ===

impl<S: HubSpec + Columns> WatchStream<S> {
    /// The format of the watch.
    pub(crate) fn content_type(&self) -> HeaderValue {
        self.writer.content_type()
    }

    pub(crate) fn new(registry: Arc<Registry<S>>, options: WatchOptions, writer: EventWriter) -> Self {
        let started_at = Instant::now();
        let seconds = options.timeout_seconds.unwrap_or_else(random_length);
        let ends_at = started_at.checked_add(Duration::from_secs(seconds)).unwrap_or(started_at + BOOKMARK_PERIOD);
        let state = WatchState::Begin(options.after, options.initial);
        Self {
            registry,
            selection: options.selection,
            writer,
            state,
            bookmark_at: options.wants_bookmarks.then_some(started_at + BOOKMARK_PERIOD),
            last_bookmark_at: ends_at.checked_sub(LAST_BOOKMARK).filter(|_| options.wants_bookmarks),
            owes_last_bookmark: options.wants_bookmarks,
            ends_at,
            known: options.after.unwrap_or(0),
            silent_to: 0,
        }
    }

    /// The next line; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            match std::mem::replace(&mut self.state, WatchState::Ended) {
                WatchState::Begin(after, initial) => self.state = self.begin(after, initial).await,
                WatchState::Objects { mut items, revision, initial } => {
                    if let Some(record) = items.pop_front() {
                        self.state = WatchState::Objects { items, revision, initial };
                        return Some(self.tell(Told::Added, &record));
                    }
                    self.state = self.changes(revision).await;
                    self.known = self.known.max(revision);
                    if initial == Initial::ObjectsAndBookmark {
                        let version = revision.to_string();
                        return Some(self.writer.bookmark::<S>(Bookmark::InitialEventsEnd, &version));
                    }
                }
                WatchState::Changes(watch) => match self.next_change(watch).await {
                    WaitOutcome::Line(line) => return Some(line),
                    WaitOutcome::Silent => {}
                    WaitOutcome::End => return None,
                },
                WatchState::Failed(failure) => return Some(self.writer.failure(&failure)),
                WatchState::Ended => return None,
            }
        }
    }

    async fn begin(&mut self, after: Option<u64>, initial: Initial) -> WatchState<S> {
        if initial == Initial::None {
            let after = match after {
                Some(after) => after,
                None => match self.registry.store().revision().await {
                    Ok(revision) => revision,
                    Err(error) => return WatchState::Failed(Registry::<S>::failure(error)),
                },
            };
            self.known = after;
            return self.changes(after).await;
        }
        let moment = after.map_or(Moment::Current, Moment::NotOlderThan);
        match self.registry.list(moment, 0, None).await {
            Ok(page) => {
                let selected = page.items.into_iter().filter(|record| self.selection.matches(&record.object.metadata));
                WatchState::Objects { items: selected.collect(), revision: page.revision, initial }
            }
            Err(Unlisted::Expired) => WatchState::Failed(Failure::expired("the state to begin with is too old")),
            Err(Unlisted::Failed(failure)) => WatchState::Failed(failure),
        }
    }

    async fn changes(&mut self, after: u64) -> WatchState<S> {
        let store = Arc::clone(self.registry.store());
        let watch = |after| store.watch(evenkeel_store::WatchOptions::of(S::KIND, after));
        let watching = match watch(after).await {
            Err(Error::FutureRevision { current, .. }) => {
                self.silent_to = after;
                watch(current).await
            }
            watching => watching,
        };
        match watching {
            Ok(watch) => WatchState::Changes(watch),
            Err(error) => WatchState::Failed(Self::ended(error, after)),
        }
    }

    /// The failure that ends the watch.
    fn ended(error: Error, after: u64) -> Failure {
        match error {
            Error::TooOld { oldest, .. } => Failure::expired(format!("too old resource version: {after} ({oldest})")),
            other => Registry::<S>::failure(other),
        }
    }

    async fn next_change(&mut self, mut watch: Watch) -> WaitOutcome {
        // Changes have priority over the timers below, so that a client that never catches up must reach the end here.
        if Instant::now() >= self.ends_at {
            return self.end(watch);
        }
        let bookmark_at = self.bookmark_at.into_iter().chain(self.last_bookmark_at).min();
        let wakes_at = bookmark_at.map_or(self.ends_at, |at| at.min(self.ends_at));
        let event = tokio::select! {
            biased;
            event = watch.next() => event,
            () = sleep_until(wakes_at) => {
                if Instant::now() >= self.ends_at {
                    return self.end(watch);
                }
                let step = match watch.progress() {
                    Ok(progress) => self.bookmark(progress),
                    // Asking for the next change returns the error.
                    Err(_) => WaitOutcome::Silent,
                };
                self.state = WatchState::Changes(watch);
                return step;
            }
        };
        match event {
            Ok(event) => {
                let line = self.change(&event);
                self.state = WatchState::Changes(watch);
                line.map_or(WaitOutcome::Silent, WaitOutcome::Line)
            }
            Err(Error::Closed) => WaitOutcome::End,
            Err(error) => {
                self.state = WatchState::Failed(Self::ended(error, self.known));
                WaitOutcome::Silent
            }
        }
    }

    /// The end, after the last bookmark if that is still due: a client that returns knows where to resume (API-163).
    fn end(&mut self, mut watch: Watch) -> WaitOutcome {
        match watch.progress() {
            Ok(progress) if self.owes_last_bookmark && progress > self.known => self.bookmark(progress),
            _ => WaitOutcome::End,
        }
    }

    /// The bookmark that is due, if its revision is new.
    fn bookmark(&mut self, progress: u64) -> WaitOutcome {
        let now = Instant::now();
        self.last_bookmark_at = self.last_bookmark_at.filter(|at| *at > now);
        self.bookmark_at = Some(now + BOOKMARK_PERIOD);
        if progress <= self.known {
            return WaitOutcome::Silent;
        }
        self.known = progress;
        self.owes_last_bookmark = self.last_bookmark_at.is_some();
        WaitOutcome::Line(self.writer.bookmark::<S>(Bookmark::Progress, &progress.to_string()))
    }

    /// The event of a write for a client that sees the selected objects (API-162).
    fn change(&mut self, event: &Event) -> Option<Bytes> {
        if event.revision <= self.silent_to {
            return None;
        }
        match self.translate(event) {
            Ok(Some((told, record))) => {
                self.known = event.revision;
                Some(self.tell(told, &record))
            }
            Ok(None) => None,
            Err(failure) => Some(self.writer.failure(&failure)),
        }
    }

    fn translate(&self, event: &Event) -> Result<Option<Seen<S>>, Failure> {
        let selected = |object| {
            let record = self.registry.decode(object)?;
            Ok::<_, Failure>(self.selection.matches(&record.object.metadata).then_some(record))
        };
        // An unreadable object was never shown.
        let was_selected = |object| selected(object).ok().flatten();
        let gone = |old: Arc<Record<S>>| (Told::Deleted, last_seen(&old, event.revision));
        Ok(match &event.change {
            Change::Created { object } => selected(object)?.map(|new| (Told::Added, new)),
            Change::Updated { object, previous } => match (was_selected(previous), selected(object)?) {
                (Some(_), Some(new)) => Some((Told::Modified, new)),
                (None, Some(new)) => Some((Told::Added, new)),
                (Some(old), None) => Some(gone(old)),
                (None, None) => None,
            },
            Change::Deleted { previous } => was_selected(previous).map(gone),
        })
    }

    fn tell(&mut self, told: Told, record: &Record<S>) -> Bytes {
        self.writer.change(told, record.shown(), now())
    }
}

/// A change as the client sees it.
type Seen<S> = (Told, Arc<Record<S>>);

/// The result of waiting for the next event or timer.
enum WaitOutcome {
    Line(Bytes),
    Silent,
    End,
}

/// An object as it was, with the version of its deletion (API-160).
fn last_seen<S: HubSpec>(record: &Record<S>, revision: u64) -> Arc<Record<S>> {
    Arc::new(Record::new(Object::clone(&record.object), revision))
}

fn random_length() -> u64 {
    let random = uuid::Uuid::new_v4().as_u128();
    LENGTH_MIN_SECONDS + u64::try_from(random % u128::from(LENGTH_MIN_SECONDS)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use evenkeel_api::Preset;
    use evenkeel_api::v1::FlowSchemaSpec;
    use evenkeel_api::{Kind, Version};
    use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
    use serde_json::Value;

    use super::*;
    use crate::controllers::bootstrap;
    use crate::negotiate::Wanted;
    use crate::output::View;

    fn store() -> Arc<dyn Store> {
        Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).unwrap())
    }

    /// From a revision on, for this many seconds, and without bookmarks.
    fn options(after: u64, seconds: u64) -> WatchOptions {
        WatchOptions {
            selection: Selection::default(),
            after: Some(after),
            initial: Initial::None,
            wants_bookmarks: false,
            timeout_seconds: Some(seconds),
        }
    }

    fn stream(registry: Arc<Registry<FlowSchemaSpec>>, options: WatchOptions) -> WatchStream<FlowSchemaSpec> {
        let view = View { version: Version::V1, wanted: Wanted::default(), include_object: None, now: now() };
        WatchStream::new(registry, options, EventWriter::new(&view).unwrap())
    }

    #[tokio::test]
    async fn api_166_a_watch_ends_in_time_though_changes_are_waiting() {
        let store = store();
        let start = store.revision().await.unwrap();
        let registry = Arc::new(Registry::new(store, Preset::Kubernetes));
        bootstrap::tidy(&registry).await.unwrap();
        tokio::time::pause();
        let mut stream = stream(registry, options(start, 1));
        assert!(stream.next().await.is_some(), "the first of many");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(stream.next().await, None);
    }

    #[tokio::test]
    async fn what_could_not_be_read_before_is_new_once_it_can() {
        let (store, kind) = (store(), Kind::FlowSchema);
        let schema = evenkeel_api::v1::FlowSchema::builder("good").priority_level("a").build();
        let good = serde_json::to_vec(&schema).unwrap();
        let bad = store.create(kind, "a", "garbage".into()).await.unwrap();
        let other = store.create(kind, "b", "garbage".into()).await.unwrap();
        store.delete(kind, "b", other.revision).await.unwrap();
        store.update(kind, "a", bad.revision, good.into()).await.unwrap();
        let mut stream = stream(Arc::new(Registry::new(store, Preset::Kubernetes)), options(other.revision, 60));
        let line: Value = serde_json::from_slice(&stream.next().await.unwrap()).unwrap();
        assert_eq!((&line["type"], &line["object"]["metadata"]["name"]), (&"ADDED".into(), &"good".into()));
    }

    /// Writes an object of the other kind, of which a watch shows nothing but a bookmark.
    async fn write(store: &dyn Store, name: &str) -> u64 {
        let created = store.create(Kind::PriorityLevelConfiguration, name, Bytes::from_static(b"{}"));
        created.await.unwrap().revision
    }

    /// The version in a bookmark.
    fn bookmarked(line: Option<Bytes>) -> String {
        let line: Value = serde_json::from_slice(&line.unwrap()).unwrap();
        assert_eq!(line["type"], "BOOKMARK");
        line["object"]["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
    }

    /// A watch of four seconds with bookmarks, on a clock that advances only while all tasks wait.
    struct Short {
        store: Arc<dyn Store>,
        stream: WatchStream<FlowSchemaSpec>,
        started_at: Instant,
    }

    impl Short {
        async fn start() -> Self {
            let store = store();
            let start = store.revision().await.unwrap();
            tokio::time::pause();
            let options = WatchOptions { wants_bookmarks: true, ..options(start, 4) };
            let stream = stream(Arc::new(Registry::new(Arc::clone(&store), Preset::Kubernetes)), options);
            Self { store, stream, started_at: Instant::now() }
        }

        /// The next line is a bookmark.
        async fn tells(&mut self, revision: u64, at_seconds: u64) {
            assert_eq!(bookmarked(self.stream.next().await), revision.to_string());
            assert_eq!(self.started_at.elapsed().as_secs(), at_seconds);
        }

        async fn ends(&mut self) {
            assert_eq!(self.stream.next().await, None);
            assert_eq!(self.started_at.elapsed().as_secs(), 4);
        }
    }

    #[tokio::test]
    async fn api_163_the_last_bookmark_comes_two_seconds_before_the_end_and_once() {
        let mut watch = Short::start().await;
        let revision = write(&*watch.store, "a").await;
        watch.tells(revision, 2).await;
        write(&*watch.store, "b").await;
        watch.ends().await;
    }

    #[tokio::test]
    async fn api_163_the_last_bookmark_comes_at_the_end_if_its_time_has_passed_unnoticed() {
        let mut watch = Short::start().await;
        let revision = write(&*watch.store, "a").await;
        tokio::time::advance(Duration::from_secs(4)).await;
        watch.tells(revision, 4).await;
        watch.ends().await;
    }

    #[tokio::test]
    async fn api_163_the_last_bookmark_comes_at_the_end_if_there_was_nothing_to_say_before() {
        let mut watch = Short::start().await;
        {
            let mut next = pin!(watch.stream.next());
            let line = tokio::time::timeout(Duration::from_secs(3), next.as_mut()).await;
            assert!(line.is_err(), "{line:?}");
            let revision = write(&*watch.store, "a").await;
            assert_eq!(bookmarked(next.await), revision.to_string());
        }
        watch.ends().await;
    }

    #[tokio::test]
    async fn api_163_no_bookmark_says_what_is_known() {
        Short::start().await.ends().await;
    }
}
