//! The fleet that the gateway shares its seats with.

use std::path::PathBuf;
use std::time::Duration;

use evenkeel::fleet::{FleetSettings, Terms};
use evenkeel_identity::config::duration;
use serde::{Deserialize, Serialize};

use super::{BorrowingConfig, Config, Problem};

/// Several gateways in front of one service, which has `concurrency` seats for all of them together (FL).
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FleetConfig {
    /// The name of the service. Gateways with the same name share the seats.
    pub service: String,
    /// The members of etcd, each as `host:port`. The default is the etcd of the objects (`--store etcd://…`).
    pub endpoints: Vec<String>,
    /// How to encrypt connections to etcd.
    pub tls: FleetTls,
    /// The user of etcd, if it wants one.
    pub user: Option<String>,
    /// The file with the user's password.
    pub password_file: Option<PathBuf>,
    /// How long a grant of seats lasts without a confirmed write to etcd.
    #[serde(with = "duration")]
    pub ttl: Duration,
    /// The longest request for which the service must not get too much when a gateway is lost. The default is `ttl`.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub grace: Option<Duration>,
    /// The part of the seats that outlives a cut from etcd, in percent.
    pub floor_percent: u32,
    /// How long that part stays after the cut.
    #[serde(with = "duration")]
    pub floor_hold: Duration,
    /// To be raised when `concurrency` or `floorPercent` change: the settings with the highest number win.
    pub generation: u64,
    /// A file that the gateway locks. The next process with this file has the floor of one that died at once, not after `floorHold`.
    pub lock_file: Option<PathBuf>,
}

/// How to encrypt connections to the etcd of a fleet.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FleetTls {
    /// The authorities that sign etcd's certificates, as PEM. Connections are encrypted if it is set.
    pub ca: Option<PathBuf>,
    /// The gateway's own certificate, if etcd wants one.
    pub certificate: Option<PathBuf>,
    /// The key of that certificate.
    pub key: Option<PathBuf>,
    /// The name that etcd's certificates have, if it is not the host of the endpoint.
    pub server_name: Option<String>,
}

/// The bounds of the TTL. A shorter grant could end while etcd answers within its usual time.
const TTL: std::ops::RangeInclusive<Duration> = Duration::from_millis(1500)..=Duration::from_secs(300);
/// The longest hold: a week.
const HOLD_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

// === impl FleetConfig ===

impl FleetConfig {
    /// The longest request that must not be exceeded when a gateway is lost.
    pub fn grace(&self) -> Duration {
        self.grace.unwrap_or(self.ttl)
    }

    /// The settings of a member of the fleet, for a service with that many seats.
    pub(crate) fn settings(&self, seats: u32) -> FleetSettings {
        let ms = |duration: Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
        let terms = Terms { ttl_ms: ms(self.ttl), grace_ms: ms(self.grace()), floor_hold_ms: ms(self.floor_hold) };
        let floor_percent = self.floor_percent.into();
        FleetSettings { seats: seats.into(), auto: None, floor_percent, generation: self.generation, terms }
    }

    /// Everything that is wrong with the fleet of these settings, if there is one.
    pub(super) fn check(config: &Config) -> Vec<Problem> {
        let Some(fleet) = &config.fleet else { return Vec::new() };
        let mut problems = Vec::new();
        let mut add = |field: &str, message: &str| problems.push(Problem::new(format!("fleet{field}"), message));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if fleet.service.is_empty() {
            add(
                ".service",
                "is missing; name the service, as `service: checkout`: gateways with the same name share its seats",
            );
        } else if !fleet.service.chars().all(is_name) {
            add(".service", "must be letters, digits, `.`, `_` and `-`");
        }
        if fleet.endpoints.is_empty() {
            add(
                ".endpoints",
                "a fleet needs etcd, and no member of it is named; set `endpoints: [127.0.0.1:2379]` or `--fleet-endpoint`, or keep \
                 the objects in etcd with `--store etcd://127.0.0.1:2379`",
            );
        }
        if config.preset == evenkeel_api::Preset::Kubernetes
            || config.flow_control.borrowing == Some(BorrowingConfig::Periodic)
        {
            add(
                "",
                "a fleet needs levels that never use more seats than there are; use `preset: plain` without `flowControl.borrowing: periodic`",
            );
        }
        if !config.services.is_empty() {
            add("", "a fleet shares the seats of one service; run a gateway for each service, or remove `services`");
        }
        if !TTL.contains(&fleet.ttl) {
            add(".ttl", "must be from 1.5s to 5m");
        }
        if fleet.grace() > HOLD_MAX {
            add(".grace", "must be at most a week");
        }
        if fleet.floor_hold < fleet.ttl || fleet.floor_hold > HOLD_MAX {
            add(".floorHold", "must be at least `ttl`, and at most a week");
        }
        if fleet.floor_percent > 100 {
            add(".floorPercent", "must be from 0 to 100");
        }
        if fleet.user.is_some() != fleet.password_file.is_some() {
            add(".user", "needs `passwordFile`, and that needs `user`; set both or none");
        }
        let FleetTls { ca, certificate, key, server_name } = &fleet.tls;
        if certificate.is_some() != key.is_some() {
            add(".tls", "`certificate` and `key` belong together; set both or none");
        }
        if ca.is_none() && (certificate.is_some() || server_name.is_some()) {
            add(".tls.ca", "is missing; name the file with the authorities of etcd's certificates");
        }
        problems
    }

    /// Shows every path that is set, with the name of its setting.
    pub(super) fn visit_paths(&mut self, see: &mut dyn FnMut(&str, &mut PathBuf)) {
        for (field, path) in [
            ("fleet.tls.ca", &mut self.tls.ca),
            ("fleet.tls.certificate", &mut self.tls.certificate),
            ("fleet.tls.key", &mut self.tls.key),
            ("fleet.passwordFile", &mut self.password_file),
            ("fleet.lockFile", &mut self.lock_file),
        ] {
            if let Some(path) = path {
                see(field, path);
            }
        }
    }
}

impl Default for FleetConfig {
    fn default() -> Self {
        Self {
            service: String::new(),
            endpoints: Vec::new(),
            tls: FleetTls::default(),
            user: None,
            password_file: None,
            ttl: Duration::from_secs(3),
            grace: None,
            floor_percent: 50,
            floor_hold: Duration::from_secs(600),
            generation: 0,
            lock_file: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let config = Config::parse("file", text).unwrap();
        FleetConfig::check(&config).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_fleet_says_what_is_missing() {
        assert!(problems("{}").is_empty());
        assert!(problems("{concurrency: 60, fleet: {service: checkout, endpoints: ['a:2379']}}").is_empty());
        assert!(problems("{fleet: {service: checkout, endpoints: ['a:2379']}}").is_empty(), "it finds its seats");
        let missing = problems("fleet: {}");
        assert!(missing[0].contains("fleet.service") && missing[1].contains("a fleet needs etcd"), "{missing:?}");
        let rest = "endpoints: ['a:1'], service: a";
        for (settings, expected) in [
            (format!("{{preset: kubernetes, fleet: {{{rest}}}}}"), "use `preset: plain`"),
            (format!("{{flowControl: {{borrowing: periodic}}, fleet: {{{rest}}}}}"), "use `preset: plain`"),
            (format!("{{services: {{a: {{upstream: 'http://a:1'}}}}, fleet: {{{rest}}}}}"), "remove `services`"),
            (format!("fleet: {{{rest}, ttl: 1s}}"), "from 1.5s"),
            (format!("fleet: {{{rest}, floorHold: 1s}}"), "at least `ttl`"),
            (format!("fleet: {{{rest}, floorPercent: 101}}"), "from 0 to 100"),
            (format!("fleet: {{{rest}, user: me}}"), "passwordFile"),
            (format!("fleet: {{{rest}, tls: {{key: k.pem}}}}"), "belong together"),
            ("fleet: {service: a b, endpoints: ['a:1']}".to_owned(), "must be letters"),
        ] {
            let found = problems(&settings);
            assert!(found.iter().any(|problem| problem.contains(expected)), "{settings}: {found:?}");
        }
    }

    #[test]
    fn the_grace_is_as_long_as_a_grant_if_nothing_is_said() {
        let terms = |text: &str| Config::parse("file", text).unwrap().fleet.unwrap().settings(60).terms;
        let expected = Terms { ttl_ms: 5000, grace_ms: 5000, floor_hold_ms: 600_000 };
        assert_eq!(terms("fleet: {service: a, ttl: 5s}"), expected);
        assert_eq!(terms("fleet: {service: a, ttl: 5s, grace: 30s}").grace_ms, 30_000);
    }
}
