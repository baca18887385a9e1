//! `UpstreamSource`: an upstream of the settings, and the addresses that it has now.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::{TargetPlace, UpstreamLocation, UpstreamTarget};
use crate::config::{Config, UpstreamConfig};
use crate::dns::{Found, FoundAddress, LookupError, LookupName, Resolver};
use crate::observe::metrics::{LookupMetrics, UpstreamLabels};
use crate::tls::{ClientTls, TlsError};

/// An upstream of the settings. One that is given by name has a target for each of its addresses.
#[derive(Debug)]
pub(crate) struct UpstreamSource {
    labels: UpstreamLabels,
    config: UpstreamConfig,
    /// The settings that targets are made with.
    gateway: Arc<Config>,
    workers: usize,
    tls: Option<ClientTls>,
    targets: ArcSwap<Vec<Arc<UpstreamTarget>>>,
    lookups: Option<Lookups>,
}

/// The lookups of a name.
#[derive(Debug)]
struct Lookups {
    name: LookupName,
    resolver: Resolver,
    metrics: LookupMetrics,
    last: Mutex<LastLookup>,
}

/// The outcome of the last lookup.
#[derive(Debug, Default)]
struct LastLookup {
    /// How many lookups have failed in a row.
    failures: u32,
    /// How long the addresses are good for.
    pause: Duration,
}

/// When a name is looked up again: by the time that its records are valid, within these bounds.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// The time where the answer does not say how long addresses are valid.
const PAUSE_UNKNOWN: Duration = Duration::from_secs(30);
/// After a failure the next lookup is soon, and later after each further one.
const RETRY_MAX: Duration = Duration::from_secs(30);

// === impl UpstreamSource ===

impl UpstreamSource {
    /// The upstream that errors call `group`. So many workers send requests to it. A name has no addresses until it is looked up.
    pub(crate) fn open(
        group: &str,
        labels: UpstreamLabels,
        config: &UpstreamConfig,
        gateway: &Arc<Config>,
        workers: usize,
    ) -> Result<Self, TlsError> {
        let open = |host: &str| ClientTls::open(&config.tls, &format!("{group}.tls"), host);
        let tls = config.url.is_tls().then(|| open(&config.url.host())).transpose()?;
        let lookups = LookupName::of(&config.url).map(|name| Lookups {
            name,
            resolver: Resolver::new(gateway.dns.clone()),
            metrics: LookupMetrics::new(labels.clone()),
            last: Mutex::default(),
        });
        let source = Self {
            labels,
            config: config.clone(),
            gateway: Arc::clone(gateway),
            workers,
            tls,
            targets: ArcSwap::default(),
            lookups,
        };
        let location = UpstreamLocation::of(&config.url);
        source.targets.store(Arc::new(vec![source.target(location, 1)]));
        Ok(source)
    }

    fn target(&self, location: UpstreamLocation, weight: u32) -> Arc<UpstreamTarget> {
        let weight = self.config.weight.saturating_mul(weight);
        let place = TargetPlace { labels: &self.labels, location, weight };
        Arc::new(UpstreamTarget::new(&self.config, place, self.tls.clone(), &self.gateway, self.workers))
    }

    /// Whether these settings say the same of the upstream.
    pub(crate) fn is_as_in(&self, config: &UpstreamConfig, gateway: &Config) -> bool {
        self.config == *config && self.gateway.health == gateway.health && self.gateway.dns == gateway.dns
    }

    /// Where requests go; at least one.
    pub(crate) fn targets(&self) -> Arc<Vec<Arc<UpstreamTarget>>> {
        self.targets.load_full()
    }

    /// Whether the upstream is given by a name, which is looked up.
    pub(crate) fn has_name(&self) -> bool {
        self.lookups.is_some()
    }

    pub(crate) fn tls(&self) -> Option<&ClientTls> {
        self.tls.as_ref()
    }

    /// The counts of the lookups of its name, if it is given by one.
    pub(crate) fn lookup_metrics(&self) -> Option<LookupMetrics> {
        self.lookups.as_ref().map(|lookups| lookups.metrics.clone())
    }

    /// Looks the name up. Says whether addresses have come or gone. After a failure, the last ones stay.
    pub(crate) async fn look_up(&self) -> bool {
        let Some(lookups) = &self.lookups else { return false };
        let result = lookups.resolver.look_up(&lookups.name).await;
        lookups.metrics.looked_up(result.is_ok());
        lookups.note(&result, self);
        match result {
            Ok(found) => self.renew(&found.addresses),
            Err(_) => false,
        }
    }

    /// How long the addresses that were found last are good for.
    pub(crate) fn pause(&self) -> Duration {
        self.lookups.as_ref().map_or(Duration::MAX, |lookups| lookups.last().pause)
    }

    /// Sets the addresses. Those that were there before keep their connections and their health.
    fn renew(&self, found: &[FoundAddress]) -> bool {
        let before = self.targets();
        let known = |location: &UpstreamLocation, weight: u32| {
            let weight = self.config.weight.saturating_mul(weight);
            before.iter().find(|target| target.location == *location && target.weight == weight).cloned()
        };
        let weights = reduced(found);
        let target = |(found, weight): (&FoundAddress, u32)| {
            let location = UpstreamLocation::Address(found.address);
            known(&location, weight).unwrap_or_else(|| self.target(location, weight))
        };
        let after: Vec<_> = found.iter().zip(weights).map(target).collect();
        if let Some(lookups) = &self.lookups {
            lookups.metrics.set_addresses(after.len());
        }
        let is_same =
            after.len() == before.len() && after.iter().zip(&*before).all(|(one, other)| Arc::ptr_eq(one, other));
        if is_same {
            return false;
        }
        let addresses = |targets: &[Arc<UpstreamTarget>]| {
            let all: Vec<_> = targets.iter().filter_map(|target| target.address()).map(|one| one.to_string()).collect();
            all.join(" ")
        };
        let (upstream, before, addresses) = (self.config.url.to_string(), addresses(&before), addresses(&after));
        tracing::info!(upstream, addresses, before, "the addresses of an upstream are in use");
        self.targets.store(Arc::new(after));
        true
    }
}

/// The weights of addresses, divided by their greatest common divisor.
fn reduced(found: &[FoundAddress]) -> Vec<u32> {
    let common = found.iter().fold(0, |common, found| greatest_common_divisor(common, found.weight)).max(1);
    found.iter().map(|found| found.weight / common).collect()
}

fn greatest_common_divisor(mut one: u32, mut other: u32) -> u32 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

// === impl Lookups ===

impl Lookups {
    fn last(&self) -> std::sync::MutexGuard<'_, LastLookup> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes when the next lookup is due, and logs the first failure and its end.
    fn note(&self, result: &Result<Found, LookupError>, source: &UpstreamSource) {
        let (period, upstream) = (source.gateway.dns.period, source.config.url.to_string());
        let mut last = self.last();
        match result {
            Ok(found) => {
                if last.failures > 0 {
                    tracing::info!(upstream, "the name of an upstream can be looked up again");
                }
                let by_ttl = || found.ttl.unwrap_or(PAUSE_UNKNOWN).clamp(PAUSE_MIN, PAUSE_MAX);
                *last = LastLookup { failures: 0, pause: period.unwrap_or_else(by_ttl) };
            }
            Err(error) => {
                let retry = PAUSE_MIN.saturating_mul(1 << last.failures.min(5)).min(RETRY_MAX);
                let known = source.targets().iter().filter(|target| target.address().is_some()).count();
                if last.failures == 0 && known > 0 {
                    tracing::warn!(
                        upstream, %error, addresses = known,
                        "the name of an upstream cannot be looked up; its last known addresses stay in use"
                    );
                } else if last.failures == 0 {
                    tracing::warn!(upstream, %error, "the name of an upstream cannot be looked up; it has no address");
                }
                *last =
                    LastLookup { failures: last.failures.saturating_add(1), pause: retry.min(period.unwrap_or(retry)) };
            }
        }
    }
}

// === impl UpstreamTarget ===

impl UpstreamTarget {
    /// The address of the target, if it is one of an upstream.
    fn address(&self) -> Option<SocketAddr> {
        match self.location {
            UpstreamLocation::Address(address) => Some(address),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_as_small_as_they_can_be() {
        let found = |weights: &[u32]| {
            let address = "127.0.0.1:1".parse().unwrap();
            reduced(&weights.iter().map(|weight| FoundAddress { address, weight: *weight }).collect::<Vec<_>>())
        };
        assert_eq!(found(&[10, 10, 10]), [1, 1, 1]);
        assert_eq!(found(&[20, 30, 1000]), [2, 3, 100]);
        assert_eq!(found(&[1, 65535]), [1, 65535]);
        assert!(found(&[]).is_empty());
    }
}
