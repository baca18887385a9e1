//! Watches: order, completeness, progress, and their ends.

use std::sync::Arc;

use evenkeel_store::{At, Change, Error, Event, Object, Store, Watch, WatchOptions};

use crate::contract::{SHORT_HISTORY, cached};
use crate::samples::{LEVEL, SCHEMA, text};

type Shared = Arc<dyn Store>;

async fn watch_all(store: &Shared) -> (u64, Watch) {
    let revision = store.revision().await.unwrap();
    (revision, store.watch(WatchOptions::after(revision)).await.unwrap())
}

async fn create(store: &Shared, name: &str) -> Arc<Object> {
    store.create(SCHEMA, name, text(name)).await.unwrap()
}

async fn next(watch: &mut Watch) -> Event {
    Event::clone(&*watch.next().await.unwrap())
}

pub(crate) async fn a_watch_tells_every_write_with_what_was_before(store: Shared) {
    let (_, mut watch) = watch_all(&store).await;
    assert_eq!(watch.try_next().unwrap(), None);
    let created = create(&store, "a").await;
    let updated = store.update(SCHEMA, "a", created.revision, text("two")).await.unwrap();
    let level = store.create(LEVEL, "a", text("level")).await.unwrap();
    let removed = store.delete(SCHEMA, "a", updated.revision).await.unwrap();

    let event = |revision, change| Event { revision, change };
    assert_eq!(next(&mut watch).await, event(created.revision, Change::Created { object: created.clone() }));
    let second = next(&mut watch).await;
    assert_eq!((second.kind(), second.name()), (SCHEMA, "a"));
    assert_eq!((second.object(), second.previous()), (Some(&updated), Some(&created)));
    assert_eq!(second, event(updated.revision, Change::Updated { object: updated.clone(), previous: created }));
    assert_eq!(next(&mut watch).await, event(level.revision, Change::Created { object: level }));
    assert_eq!(next(&mut watch).await, event(removed, Change::Deleted { previous: updated }));
    assert_eq!(watch.try_next().unwrap(), None);
    assert_eq!(watch.progress().unwrap(), removed);
}

pub(crate) async fn a_watch_begins_in_the_past(store: Shared) {
    let start = store.revision().await.unwrap();
    let mut revisions = Vec::new();
    for name in ["a", "b", "c", "d"] {
        revisions.push(create(&store, name).await.revision);
    }
    for (seen, after) in std::iter::once(start).chain(revisions.clone()).enumerate() {
        let mut watch = store.watch(WatchOptions::after(after)).await.unwrap();
        for revision in &revisions[seen..] {
            assert_eq!(next(&mut watch).await.revision, *revision);
        }
        assert_eq!(watch.try_next().unwrap(), None);
    }
}

pub(crate) async fn a_watch_of_one_kind_is_told_nothing_of_the_other(store: Shared) {
    let start = store.revision().await.unwrap();
    let mut schemas = store.watch(WatchOptions::of(SCHEMA, start)).await.unwrap();
    let mut levels = store.watch(WatchOptions::of(LEVEL, start)).await.unwrap();
    for number in 0..5 {
        store.create(LEVEL, &format!("level-{number}"), text("")).await.unwrap();
        create(&store, &format!("schema-{number}")).await;
    }
    for number in 0..5 {
        assert_eq!(next(&mut levels).await.name(), format!("level-{number}"));
        assert_eq!(next(&mut schemas).await.name(), format!("schema-{number}"));
    }
    assert_eq!(schemas.try_next().unwrap(), None);
    assert_eq!(levels.try_next().unwrap(), None);
}

pub(crate) async fn progress_moves_on_with_the_other_kind(store: Shared) {
    let start = store.revision().await.unwrap();
    let mut watch = store.watch(WatchOptions::of(LEVEL, start)).await.unwrap();
    assert_eq!(watch.progress().unwrap(), start);
    let revision = create(&store, "a").await.revision;
    cached(&*store, revision).await;
    assert_eq!(watch.progress().unwrap(), revision);
    // And a watch can begin there.
    let mut next_watch = store.watch(WatchOptions::of(LEVEL, watch.progress().unwrap())).await.unwrap();
    let level = store.create(LEVEL, "b", text("")).await.unwrap();
    assert_eq!(next(&mut next_watch).await.revision, level.revision);
}

pub(crate) async fn progress_waits_for_what_was_not_told_yet(store: Shared) {
    let (start, mut watch) = watch_all(&store).await;
    let first = create(&store, "a").await.revision;
    let second = create(&store, "b").await.revision;
    cached(&*store, second).await;
    assert_eq!(watch.progress().unwrap(), start);
    next(&mut watch).await;
    assert_eq!(watch.progress().unwrap(), first);
    next(&mut watch).await;
    assert_eq!(watch.progress().unwrap(), second);
}

pub(crate) async fn a_dropped_wait_loses_nothing(store: Shared) {
    let (_, mut watch) = watch_all(&store).await;
    let writer = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            for number in 0..100 {
                create(&store, &format!("a{number:03}")).await;
            }
        }
    });
    let mut seen = Vec::new();
    while seen.len() < 100 {
        tokio::select! {
            biased;
            event = watch.next() => seen.push(event.unwrap().name().to_owned()),
            () = tokio::task::yield_now() => {}
        }
    }
    writer.await.unwrap();
    let expected: Vec<_> = (0..100).map(|number| format!("a{number:03}")).collect();
    assert_eq!(seen, expected);
}

pub(crate) async fn a_watch_from_the_future_is_refused(store: Shared) {
    let revision = create(&store, "a").await.revision;
    match store.watch(WatchOptions::after(revision + 1)).await {
        Err(Error::FutureRevision { asked, current }) => assert_eq!((asked, current), (revision + 1, revision)),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_watch_from_before_the_compaction_is_too_old(store: Shared) {
    let first = create(&store, "a").await.revision;
    let second = create(&store, "b").await.revision;
    let third = create(&store, "c").await.revision;
    cached(&*store, third).await;
    store.compact(second).await.unwrap();
    match store.watch(WatchOptions::after(first)).await {
        Err(Error::TooOld { asked, oldest }) => assert_eq!((asked, oldest), (first, second)),
        other => panic!("{other:?}"),
    }
    let mut watch = store.watch(WatchOptions::after(second)).await.unwrap();
    assert_eq!(next(&mut watch).await.revision, third);
}

pub(crate) async fn a_watcher_that_the_compaction_has_passed_is_too_old(store: Shared) {
    let (_, mut watch) = watch_all(&store).await;
    let first = create(&store, "a").await.revision;
    let second = create(&store, "b").await.revision;
    cached(&*store, second).await;
    store.compact(first).await.unwrap();
    for _ in 0..2 {
        match watch.next().await {
            Err(Error::TooOld { oldest, .. }) => assert_eq!(oldest, first),
            other => panic!("{other:?}"),
        }
        assert!(matches!(watch.try_next(), Err(Error::TooOld { .. })));
        assert!(matches!(watch.progress(), Err(Error::TooOld { .. })));
    }
    let mut watch = store.watch(WatchOptions::after(first)).await.unwrap();
    assert_eq!(next(&mut watch).await.revision, second);
}

pub(crate) async fn a_compaction_behind_a_watcher_is_not_noticed(store: Shared) {
    let (_, mut watch) = watch_all(&store).await;
    for number in 0..5 {
        let created = create(&store, &format!("a{number}")).await;
        assert_eq!(next(&mut watch).await.revision, created.revision);
        store.compact(created.revision).await.unwrap();
    }
    let last = create(&store, "last").await;
    assert_eq!(next(&mut watch).await.revision, last.revision);
    assert_eq!(store.get(SCHEMA, "a0", At::Latest).await.unwrap().unwrap().payload, "a0");
}

pub(crate) async fn the_end_of_the_store_is_the_end_of_the_watch(store: Shared) {
    let (_, mut watch) = watch_all(&store).await;
    let waiting = tokio::spawn(async move { (watch.next().await.map(|event| event.revision), watch) });
    let (revision, mut behind) = watch_all(&store).await;
    let created = create(&store, "a").await;
    let (told, mut watch) = waiting.await.unwrap();
    assert_eq!(told.unwrap(), created.revision);
    let waiting = tokio::spawn(async move { watch.next().await });
    store.close().await.unwrap();
    assert!(matches!(waiting.await.unwrap(), Err(Error::Closed)));
    // Events that took place before the close come first.
    assert_eq!(next(&mut behind).await.revision, created.revision);
    assert!(matches!(behind.next().await, Err(Error::Closed)));
    assert!(matches!(store.watch(WatchOptions::after(revision)).await, Err(Error::Closed)));
    drop(store);
    assert!(matches!(behind.next().await, Err(Error::Closed)));
}

pub(crate) async fn a_slow_watcher_is_too_old_and_slows_nobody(store: Shared) {
    let (_, mut slow) = watch_all(&store).await;
    let (start, mut quick) = watch_all(&store).await;
    let writes = SHORT_HISTORY.events * 2;
    for number in 0..writes {
        let created = create(&store, &format!("a{number}")).await;
        assert_eq!(next(&mut quick).await.revision, created.revision);
    }
    assert!(matches!(slow.next().await, Err(Error::TooOld { .. })));
    assert!(matches!(store.watch(WatchOptions::after(start)).await, Err(Error::TooOld { .. })));
    // The whole window is still there.
    let oldest = quick.progress().unwrap() - SHORT_HISTORY.events as u64;
    let mut late = store.watch(WatchOptions::after(oldest)).await.unwrap();
    for number in writes - SHORT_HISTORY.events..writes {
        assert_eq!(next(&mut late).await.name(), format!("a{number}"));
    }
}
