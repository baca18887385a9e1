//! Keeps the addresses of upstreams that are given by name up to date.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::UpstreamSource;
use crate::gateway::BackgroundTask;
use crate::gateway::generation::Generation;
use crate::observe::metrics::GatewayMetrics;

/// The lookups of one upstream, until it is dropped.
struct Following {
    source: Arc<UpstreamSource>,
    _task: BackgroundTask,
}

/// Looks up the names of the upstreams when that is due, for as long as the future lives. New addresses begin a new generation, in which
/// all else is the same.
pub(crate) async fn follow_names(generations: watch::Sender<Arc<Generation>>, metrics: GatewayMetrics) {
    let mut all: Vec<Following> = Vec::new();
    let mut changes = generations.subscribe();
    loop {
        let sources: Vec<_> = changes.borrow_and_update().sources().filter(|one| one.has_name()).cloned().collect();
        all.retain(|following| sources.iter().any(|source| Arc::ptr_eq(source, &following.source)));
        for source in sources {
            if !all.iter().any(|following| Arc::ptr_eq(&following.source, &source)) {
                let follow = follow_one(Arc::clone(&source), generations.clone(), metrics.clone());
                all.push(Following { source, _task: BackgroundTask(tokio::spawn(follow)) });
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn follow_one(source: Arc<UpstreamSource>, generations: watch::Sender<Arc<Generation>>, metrics: GatewayMetrics) {
    loop {
        tokio::time::sleep(source.pause()).await;
        if source.look_up().await {
            generations.send_modify(|generation| {
                *generation = Arc::new(generation.with_current_addresses());
                metrics.set_upstreams(generation.upstream_metrics());
            });
        }
    }
}

/// Looks up all names at once, for the first time. A name without addresses does not keep the gateway from starting.
pub(crate) async fn look_up_all(sources: impl IntoIterator<Item = Arc<UpstreamSource>>) {
    let mut lookups = JoinSet::new();
    for source in sources {
        lookups.spawn(async move {
            source.look_up().await;
        });
    }
    lookups.join_all().await;
}
