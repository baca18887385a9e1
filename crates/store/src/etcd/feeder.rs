//! The task that keeps the cache up to date: it watches etcd, and resumes where it stopped whenever the watch ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use tonic::Streaming;

use crate::cache::{Cache, Write};

use super::messages::{EventType, WatchCreateRequest, WatchEvent, WatchResponse, revision_of, signed, unsigned};
use super::read::EtcdReader;

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Feeds a cache from a cluster.
pub(crate) struct Feeder {
    pub(crate) reader: Arc<EtcdReader>,
    pub(crate) cache: Arc<Cache>,
    /// The newest of the store's own writes.
    pub(crate) written: Arc<AtomicU64>,
}

/// Why a watch has ended.
#[derive(Debug)]
enum WatchEnd {
    /// The connection is lost, or another member is in use now. The watch resumes where it stopped.
    Lost(String),
    /// The next events are lost.
    Gone(String),
}

// === impl Feeder ===

impl Feeder {
    /// Works until it is aborted.
    pub(crate) async fn run(self) {
        let (mut pause, mut lost_at) = (PAUSE_MIN, None);
        loop {
            let revision = self.cache.freshness().revision;
            let end = self.follow(revision, &mut lost_at).await;
            self.cache.set_disconnected(Instant::now());
            let relisted = match end {
                WatchEnd::Lost(reason) => {
                    // Logged once, however long it takes.
                    if lost_at.is_none() {
                        lost_at = Some(Instant::now());
                        tracing::warn!(
                            revision,
                            reason,
                            "lost the watch of etcd; objects stay unchanged until it resumes"
                        );
                    }
                    Ok(())
                }
                WatchEnd::Gone(reason) => {
                    tracing::warn!(revision, reason, "cannot resume the watch of etcd; listing all objects");
                    self.relist().await
                }
            };
            if let Err(error) = &relisted {
                tracing::warn!(%error, "cannot list the objects in etcd");
            }
            // After progress, the next attempt may follow at once.
            let progressed = relisted.is_ok() && self.cache.freshness().revision > revision;
            pause = if progressed { PAUSE_MIN } else { (pause * 2).min(PAUSE_MAX) };
            sleep(pause).await;
        }
    }

    /// Watches from a revision on, until that ends.
    async fn follow(&self, revision: u64, lost_at: &mut Option<Instant>) -> WatchEnd {
        let client = &self.reader.client;
        let mut moved = client.moved();
        let range = self.reader.keys.all();
        let create = WatchCreateRequest {
            key: range.start,
            range_end: range.end,
            start_revision: signed(revision + 1),
            progress_notify: true,
            fragment: true,
        };
        let (first, responses) = match client.watch(create).await {
            Ok(opened) => opened,
            Err(failure) => return WatchEnd::Lost(crate::Error::from(failure).to_string()),
        };
        if let Some(lost_at) = lost_at.take() {
            tracing::info!(revision, after = ?lost_at.elapsed(), "the watch of etcd has resumed");
        }
        // An etcd that is behind us has been restored from a backup, or is a member that has to catch up.
        if revision_of(first.header.as_ref()) < revision {
            match self.reader.revision().await {
                Ok(newest) if newest < revision => {
                    // Writes after the backup are gone. Writes since the restore are in the list that is asked for next, or is
                    // noted again.
                    self.written.store(0, Ordering::Release);
                    return WatchEnd::Gone(format!("etcd is back at revision {newest}"));
                }
                Ok(_) => {}
                Err(error) => return WatchEnd::Lost(error.to_string()),
            }
        }
        let member = client.current();
        let end = tokio::select! {
            end = self.take_in(first, responses) => {
                if matches!(end, WatchEnd::Lost(_)) {
                    client.leave(member);
                }
                end
            }
            _ = moved.changed() => WatchEnd::Lost("the connection moved to another member".to_owned()),
        };
        end
    }

    /// Takes in what etcd sends.
    async fn take_in(&self, first: WatchResponse, mut responses: Streaming<WatchResponse>) -> WatchEnd {
        let mut pending = Vec::new();
        let mut response = first;
        loop {
            if response.canceled {
                return self.canceled(&response);
            }
            if response.created {
                self.cache.set_connected();
            } else if response.events.is_empty() && !response.fragment && pending.is_empty() {
                // The progress notification was sent to this very watch, in order with its events: all events up to its
                // revision have arrived.
                self.cache.apply([], revision_of(response.header.as_ref()));
            }
            pending.append(&mut response.events);
            if !response.fragment {
                self.apply(std::mem::take(&mut pending));
            }
            response = match responses.message().await {
                Ok(Some(response)) => response,
                Ok(None) => return WatchEnd::Lost("the member ended the watch".to_owned()),
                Err(status) => return WatchEnd::Lost(status.message().to_owned()),
            };
        }
    }

    fn canceled(&self, response: &WatchResponse) -> WatchEnd {
        if response.compact_revision > 0 {
            return WatchEnd::Gone(format!("compacted up to revision {}", response.compact_revision));
        }
        // Without a valid token, etcd gives no reason that could be told from others.
        self.reader.client.forget_token();
        WatchEnd::Lost(response.cancel_reason.clone())
    }

    fn apply(&self, events: Vec<WatchEvent>) {
        // Not the revision of the response: etcd may be ahead of what it has sent.
        let last = events.iter().filter_map(|event| event.kv.as_ref()).map(|kv| unsigned(kv.mod_revision)).max();
        let Some(last) = last else { return };
        let known = self.cache.freshness().revision;
        let writes = events.into_iter().filter_map(|event| self.write(&event)).filter(|write| write.revision > known);
        self.cache.apply(writes, last);
    }

    /// The write of an event; `None` if it is not about an object.
    fn write(&self, event: &WatchEvent) -> Option<Write> {
        let kv = event.kv.as_ref()?;
        let (kind, name) = self.reader.keys.parse(&kv.key)?;
        let object = match EventType::try_from(event.r#type).ok()? {
            EventType::Put => Some(self.reader.keys.object(kv)?),
            EventType::Delete => None,
        };
        Some(Write { revision: unsigned(kv.mod_revision), kind, name: name.into(), object })
    }

    async fn relist(&self) -> Result<(), crate::Error> {
        let (kinds, revision) = self.reader.list_all().await?;
        self.cache.replace(kinds, revision);
        Ok(())
    }
}
