//! Settings that change while the gateway runs.

use std::sync::Arc;

use evenkeel_api::short;
use evenkeel_engine::controller::Objects;

use crate::config::Config;
use crate::gateway::generation::Generation;
use crate::gateway::shadowing::ShadowFiles;
use crate::gateway::{BackgroundTask, Gateway, StartError, follow_shadow, look_after_limits};
use crate::observe::{Ended, log};
use crate::tls::keep_fresh;

/// The outcome of new settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Reconfigured {
    /// The settings that have changed and are in effect, as `timeouts.idle`.
    pub changed: Vec<String>,
    /// The settings that are different and need a restart.
    pub needs_restart: Vec<String>,
}

/// The settings that cannot change without a restart: sockets, threads, the preset, the source of objects, the format of the log,
/// and the fleet.
const NEEDS_RESTART: [&str; 9] =
    ["listen", "extProc", "admin", "workers", "preset", "objects", "log.format", "takeoverSocket", "fleet"];

// === impl Gateway ===

impl Gateway {
    /// Follows these settings from now on, as far as that is possible without a restart. New requests and connections are
    /// served under them; requests that run keep those that they began with. If anything is wrong with them, nothing changes.
    pub async fn reconfigure(&mut self, mut config: Config) -> Result<Reconfigured, StartError> {
        let before = Arc::clone(&self.generations.borrow());
        // The source of objects stays the same; levels and matches may change if they are the objects.
        let may_change = self.follows_settings && config.short_form().is_some();
        let is_of_fleet =
            |name: &str| matches!(name, "concurrency" | "flowControl.borrowing") && before.config.fleet.is_some();
        let is_fixed = |name: &str| needs_restart(name) || is_of_fleet(name) || is_of_short_form(name) && !may_change;
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
        let objects = config.short_objects().filter(|_| self.follows_settings);
        let objects = objects.map(Objects::with_mandatory_levels);
        let flows = &self.shared.flows;
        let opened = match flows.check(&config, objects.as_ref()) {
            Ok(()) => Box::pin(Generation::open(config, Some(&before), &self.shared.metrics, flows)).await,
            Err(too_few) => Err(too_few),
        };
        let generation = match opened {
            Ok(generation) => Arc::new(generation),
            Err(error) => {
                self.shared.metrics.settings_refused();
                return Err(error);
            }
        };
        let config = &generation.config;
        flows.follow(&before.config, config);
        if config.shadow != before.config.shadow {
            let opened = ShadowFiles::open(config.shadow.as_ref(), config.preset, flows).await;
            let opened = opened.inspect_err(|error| tracing::warn!("there is no shadow: {error}"));
            self.shadow_task = opened.ok().flatten().map(follow_shadow);
        }
        let about_limits = |config: &Config| (config.concurrency(), config.limit.clone(), config.services.clone());
        if about_limits(config) != about_limits(&before.config) {
            self.limit_tasks = look_after_limits(flows, config);
        }
        self.shared.clients.set_limits(config.limits.connections_per_client(), config.limits.streams_per_client());
        self.shared.rejections.set_limit(&config.log);
        log::set_filter(&config.log);
        self.upstream_files = BackgroundTask(tokio::spawn(keep_fresh(generation.files().collect())));
        let is_replaced = |old: &Ended| !generation.recorders().any(|new| new.is_same(old));
        self.replaced.retain(|replaced| !replaced.is_over());
        self.replaced.extend(before.recorders().filter(is_replaced));
        self.generations.send_modify(|current| {
            // Addresses may have changed while the rest was opened.
            *current = Arc::new(generation.with_current_addresses());
            self.shared.metrics.set_upstreams(current.upstream_metrics());
        });
        self.shared.metrics.settings_applied();
        Ok(Reconfigured { changed, needs_restart })
    }

    /// Notes that settings were offered that cannot be used, for the metrics.
    pub fn note_settings_refused(&self) {
        self.shared.metrics.settings_refused();
    }
}

/// Whether a setting needs a restart, or is a part of one that does.
fn needs_restart(name: &str) -> bool {
    let is = |fixed: &str| name.strip_prefix(fixed).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    NEEDS_RESTART.into_iter().any(is)
}

fn is_of_short_form(name: &str) -> bool {
    short::KEYS.iter().any(|key| name.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Settings that need a restart keep their values.
fn keep_fixed(before: &Config, config: &mut Config) {
    config.listen.clone_from(&before.listen);
    config.ext_proc.clone_from(&before.ext_proc);
    config.admin.clone_from(&before.admin);
    config.workers = before.workers;
    config.preset = before.preset;
    config.objects.clone_from(&before.objects);
    config.log.format = before.log.format;
    config.takeover_socket.clone_from(&before.takeover_socket);
    config.fleet.clone_from(&before.fleet);
    if before.fleet.is_some() {
        // The ledger of the fleet has the seats.
        config.concurrency.clone_from(&before.concurrency);
        config.flow_control.borrowing = before.flow_control.borrowing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_needs_a_restart() {
        let text = "{listen: [{address: 127.0.0.1:1}], admin: {address: null, hosts: [a]}, workers: 7, objects: there, \
                    preset: kubernetes, log: {format: json}, takeoverSocket: /t, extProc: {address: 127.0.0.1:2}, fleet: {service: a}}";
        let before = Config::default();
        let mut config = Config::parse("new", text).unwrap();
        let differences = before.differences(&config);
        assert_eq!(
            differences,
            [
                "admin.address",
                "admin.hosts",
                "listen",
                "log.format",
                "objects",
                "preset",
                "takeoverSocket",
                "workers",
                "extProc",
                "fleet"
            ]
        );
        assert!(differences.iter().all(|name| needs_restart(name)));
        keep_fixed(&before, &mut config);
        assert_eq!(config, before);
        for free in [
            "concurrency",
            "flowControl.borrowing",
            "flowControl.newcomerWait",
            "flowControl.revokeAfter",
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
