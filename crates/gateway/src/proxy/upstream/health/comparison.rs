//! Looks at all upstreams some times a second, and ejects those that do worse than the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::judge::{self, Case, TrackRecord, Verdict, judge};
use super::pace::{self, PaceSeen};
use crate::gateway::generation::Generation;
use crate::proxy::upstream::UpstreamTarget;

/// An upstream, and its record.
#[derive(Debug)]
struct Watched {
    upstream: Arc<UpstreamTarget>,
    record: TrackRecord,
    pace: PaceSeen,
}

/// Compares the upstreams for as long as the future lives. A sole upstream is not compared.
pub(crate) async fn compare_upstreams(mut generations: watch::Receiver<Arc<Generation>>) {
    let mut looks = interval(judge::PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Upstreams are compared with others of the same pool.
    let mut pools: Vec<Vec<Watched>> = Vec::new();
    loop {
        let settings = Arc::clone(&generations.borrow_and_update());
        let mut before = pools.into_iter().flatten().collect();
        pools = settings.pools.iter().map(|pool| follow(&mut before, &pool.upstreams)).collect();
        let (mut many, alone): (Vec<_>, Vec<_>) = pools.into_iter().partition(|all| all.len() > 1);
        for watched in alone.iter().flatten() {
            watched.upstream.health.set_patience(None);
        }
        if many.is_empty() {
            drop(settings);
            if generations.changed().await.is_err() {
                return;
            }
            pools = alone;
            continue;
        }
        while matches!(generations.has_changed(), Ok(false)) {
            looks.tick().await;
            let now = Instant::now();
            for all in &mut many {
                look(now, &settings, all);
            }
        }
        if generations.has_changed().is_err() {
            return;
        }
        many.extend(alone);
        pools = many;
    }
}

/// The upstreams that there are now. The records of those that stay are kept.
fn follow(before: &mut Vec<Watched>, upstreams: &[Arc<UpstreamTarget>]) -> Vec<Watched> {
    let watched = |upstream: &Arc<UpstreamTarget>| {
        let known = before.iter().position(|watched| Arc::ptr_eq(&watched.upstream, upstream));
        let new =
            || Watched { upstream: Arc::clone(upstream), record: TrackRecord::default(), pace: PaceSeen::default() };
        known.map_or_else(new, |index| before.swap_remove(index))
    };
    upstreams.iter().map(watched).collect()
}

fn look(now: Instant, settings: &Generation, all: &mut [Watched]) {
    let config = &settings.config.health;
    let usual = compare_paces(all);
    let patience = judge::patience(config, usual);
    let mut cases: Vec<Case<'_>> = Vec::with_capacity(all.len());
    let mut upstreams = Vec::with_capacity(all.len());
    for watched in &mut *all {
        let health = &watched.upstream.health;
        health.set_patience(patience);
        upstreams.push(&*watched.upstream);
        cases.push(Case {
            record: &mut watched.record,
            counts: watched.upstream.counts(),
            out: health.out(),
            trial_since: health.trial_since(),
        });
    }
    let verdicts = judge(now, patience, config, &mut cases);
    for (upstream, verdict) in upstreams.into_iter().zip(verdicts) {
        let Some(verdict) = verdict else { continue };
        let change = upstream.health.update(now, |standing| match verdict {
            Verdict::Eject(cause) => standing.eject(cause, now, config),
            Verdict::Reinstate => standing.reinstate(now),
            Verdict::TrialFailed => standing.trial_since().and_then(|_| standing.trial_failed(now, config)),
        });
        upstream.announce(change, 0);
    }
}

/// How long the fastest of those in service usually takes.
fn compare_paces(all: &mut [Watched]) -> Option<Duration> {
    let in_service = all.iter_mut().filter(|watched| watched.upstream.health.out().is_none());
    let mut paces: Vec<_> = in_service.map(|watched| (&watched.upstream.health.pace, &mut watched.pace)).collect();
    pace::compare(&mut paces)
}
