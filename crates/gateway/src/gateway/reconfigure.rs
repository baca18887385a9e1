//! Settings that change while the gateway runs.

use std::sync::Arc;

use evenkeel::division::Borrowing;
use evenkeel_api::short;

use crate::config::Config;
use crate::gateway::generation::Generation;
use crate::gateway::{BackgroundTask, Gateway, StartError};
use crate::observe::{Ended, log};
use crate::tls::keep_fresh;

/// What came of new settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Reconfigured {
    /// The settings that have changed and are in effect, as `timeouts.idle`.
    pub changed: Vec<String>,
    /// The settings that are different and need a restart.
    pub needs_restart: Vec<String>,
}

/// What cannot change without a restart: sockets, threads, the preset and where objects come from, and the format of the log.
const NEEDS_RESTART: [&str; 7] = ["listen", "admin", "workers", "preset", "objects", "log.format", "takeoverSocket"];

// === impl Gateway ===

impl Gateway {
    /// Follows these settings from now on, as far as that is possible without a restart. New requests and connections are
    /// served under them; requests that run keep those that they began with. If anything is wrong with them, nothing changes.
    pub async fn reconfigure(&mut self, mut config: Config) -> Result<Reconfigured, StartError> {
        let before = Arc::clone(&self.generations.borrow());
        // Where objects come from stays as it is; levels and matches that are the objects may change.
        let may_change = self.follows_settings && config.short_form().is_some();
        let is_fixed = |name: &str| needs_restart(name) || is_of_short_form(name) && !may_change;
        let (needs_restart, changed): (Vec<_>, Vec<_>) =
            before.config.differences(&config).into_iter().partition(|name| is_fixed(name));
        if !may_change {
            config.levels.clone_from(&before.config.levels);
            config.matches.clone_from(&before.config.matches);
        }
        keep_fixed(&before.config, &mut config);
        if changed.is_empty() {
            self.shared.metrics.settings_are_in_effect();
            return Ok(Reconfigured { changed, needs_restart });
        }
        let enough = match config.short_objects().filter(|_| self.follows_settings) {
            Some(objects) => self.flow().check_objects_with(&objects.with_mandatory_levels(), config.concurrency),
            None => self.flow().check_server_concurrency(config.concurrency),
        };
        let opened = match enough {
            Ok(()) => Generation::open(config, Some(&before), &self.shared.metrics).await,
            Err(too_few) => Err(too_few.into()),
        };
        let generation = match opened {
            Ok(generation) => Arc::new(generation),
            Err(error) => {
                self.shared.metrics.settings_refused();
                return Err(error);
            }
        };
        let config = &generation.config;
        if config.concurrency != before.config.concurrency {
            self.flow().set_server_concurrency(config.concurrency);
        }
        self.flow().set_borrowing(config.flow_control.borrowing.map(Borrowing::from));
        self.flow().set_newcomer_wait(config.flow_control.newcomer_wait);
        self.flow().set_wait_limit(config.timeouts.queue);
        self.shared.clients.set_limits(config.limits.connections_per_client(), config.limits.streams_per_client());
        self.shared.rejections.set_limit(&config.log);
        log::set_filter(&config.log);
        self.upstream_files = BackgroundTask(tokio::spawn(keep_fresh(generation.files().collect())));
        self.shared.metrics.set_upstreams(generation.upstream_metrics());
        let is_replaced = |old: &Ended| !generation.recorders().any(|new| new.is_same(old));
        self.replaced.retain(|replaced| !replaced.is_over());
        self.replaced.extend(before.recorders().filter(is_replaced));
        self.generations.send_replace(generation);
        self.shared.metrics.settings_applied();
        Ok(Reconfigured { changed, needs_restart })
    }

    /// Notes that settings were offered that cannot be used, for the metrics.
    pub fn note_settings_refused(&self) {
        self.shared.metrics.settings_refused();
    }
}

/// Whether a setting is one of those, or a part of one.
fn needs_restart(name: &str) -> bool {
    let is = |fixed: &str| name.strip_prefix(fixed).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    NEEDS_RESTART.into_iter().any(is)
}

fn is_of_short_form(name: &str) -> bool {
    short::KEYS.iter().any(|key| name.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// What needs a restart stays as it is.
fn keep_fixed(before: &Config, config: &mut Config) {
    config.listen.clone_from(&before.listen);
    config.admin.clone_from(&before.admin);
    config.workers = before.workers;
    config.preset = before.preset;
    config.objects.clone_from(&before.objects);
    config.log.format = before.log.format;
    config.takeover_socket.clone_from(&before.takeover_socket);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_needs_a_restart() {
        let text = "{listen: [{address: 127.0.0.1:1}], admin: {address: null, hosts: [a]}, workers: 7, objects: there, \
                    preset: kubernetes, log: {format: json}, takeoverSocket: /t}";
        let before = Config::default();
        let mut config = Config::parse("new", text).unwrap();
        let differences = before.differences(&config);
        assert_eq!(
            differences,
            ["admin.address", "admin.hosts", "listen", "log.format", "objects", "preset", "takeoverSocket", "workers"]
        );
        assert!(differences.iter().all(|name| needs_restart(name)));
        keep_fixed(&before, &mut config);
        assert_eq!(config, before);
        for free in [
            "concurrency",
            "flowControl.borrowing",
            "flowControl.newcomerWait",
            "upstreams",
            "log.filter",
            "timeouts.idle",
            "listeners",
            "identity.openPaths",
        ] {
            assert!(!needs_restart(free), "{free}");
        }
    }
}
