//! Whether settings make sense together, and every problem if not.

use std::path::Path;
use std::time::Duration;
use std::{fmt, io};

use evenkeel_api::Preset;
use evenkeel_files::advice;
use evenkeel_identity::RequestRules;
use http::Uri;

use super::limits::CLIENTS_MIN;
use super::{
    Config, FleetConfig, HealthConfig, IdentitySource, Limits, ListenAddress, Problem, RouteTimeouts, ShadowConfig,
    Timeouts, TracingConfig, UpstreamAddress, UpstreamConfig, UpstreamTls, own_address, paths, service_check,
};
use super::{HoldWhile, LimitConfig};
use crate::observe::log;
use crate::proxy::error_response::{AllowedOrigins, ErrorFormat};

/// Collects problems.
#[derive(Default)]
struct Problems(Vec<Problem>);

/// No request waits longer than this for a seat, whatever the settings say: under the preset `kubernetes` (HF-6), and otherwise.
const QUEUE_MAX_KUBERNETES: Duration = Duration::from_secs(60);
const QUEUE_MAX: Duration = Duration::from_secs(3600);
/// An operator who stops a gateway does not want to wait longer.
const DRAIN_MAX: Duration = Duration::from_secs(3600);
/// The bounds of the setting for the bytes of a head.
const HEAD_BYTES: std::ops::RangeInclusive<usize> = 8192..=(1 << 24);
/// The least setting for the bytes of all buffers together.
const BUFFER_BYTES_MIN: usize = 1 << 20;
/// The bounds of an upstream's weight.
const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=1000;
const HEADERS: std::ops::RangeInclusive<usize> = 16..=4096;

// === impl Config ===

impl Config {
    /// Everything that is wrong with the settings; nothing if the gateway can start with them. Looks whether the files
    /// that they name exist and can be read, but not into them.
    pub fn check(&self) -> Vec<Problem> {
        self.check_with(can_be_read)
    }

    /// Checks everything but what is on the disk, for settings that may be meant for another machine.
    pub fn check_without_files(&self) -> Vec<Problem> {
        self.check_with(|_| Ok(()))
    }

    fn check_with(&self, look_at: impl Fn(&Path) -> io::Result<()>) -> Vec<Problem> {
        let mut problems = Problems::default();
        problems.listeners(self);
        problems.admin_hosts(self);
        problems.upstreams(self);
        problems.no_time("dns.period", self.dns.period.unwrap_or(Duration::MAX));
        problems.health(&self.health);
        problems.files(self, look_at);
        problems.0.extend(self.check_short_form());
        problems.identity(self);
        problems.requests(self);
        problems.responses(self);
        problems.timeouts(&self.timeouts, self.preset);
        problems.route_timeouts(self);
        problems.limits(&self.limits);
        problems.request_buffer(self);
        problems.zero("concurrency", u64::from(self.concurrency().most()));
        problems.limit("limit", &self.limit);
        for (name, service) in &self.services {
            problems.limit(&format!("services.{name}.limit"), &service.limit);
        }
        problems.0.extend(FleetConfig::check(self));
        problems.0.extend(self.shadow.iter().flat_map(ShadowConfig::check));
        problems.zero("flightRecorder.files", self.flight_recorder.files as u64);
        problems.zero("workers", self.workers.map_or(1, |workers| workers as u64));
        if let Err(message) = log::filter(&self.log) {
            problems.add("log.filter", message);
        }
        if !(0.0..=1.0).contains(&self.log.access_sample) {
            problems.add("log.accessSample", "must be a number from 0 to 1");
        }
        if !(0.0..=1.0).contains(&self.llm.cached_token_weight) {
            problems.add("llm.cachedTokenWeight", "must be a number from 0 to 1");
        }
        problems.tracing(&self.tracing);
        problems.0
    }
}

/// Whether a file or a folder can be read.
fn can_be_read(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_dir() { path.read_dir().map(drop) } else { evenkeel_files::open(path).map(drop) }
}

// === impl Problems ===

impl Problems {
    fn add(&mut self, field: impl fmt::Display, message: impl Into<String>) {
        self.0.push(Problem::new(field.to_string(), message));
    }

    fn zero(&mut self, field: &str, value: u64) {
        if value == 0 {
            self.add(field, "must be at least 1");
        }
    }

    fn no_time(&mut self, field: &str, duration: Duration) {
        if duration.is_zero() {
            self.add(field, "must be longer than zero");
        }
    }

    fn listeners(&mut self, config: &Config) {
        if config.listen.is_empty() {
            self.add("listen", "there is no address to listen on; name one, as `- address: 127.0.0.1:8080`");
        }
        let clients = config.listen.iter().enumerate();
        let clients = clients.map(|(index, listen)| (format!("listen[{index}]"), listen));
        let clients = clients.map(|(field, listen)| (field, &listen.address, listen.mode));
        let ext_proc = config.ext_proc.iter().map(|envoy| ("extProc".to_owned(), &envoy.address, envoy.mode));
        let listeners: Vec<_> = clients.chain(ext_proc).collect();
        for (field, address, mode) in &listeners {
            if mode.is_some() && !matches!(address, ListenAddress::Unix(_)) {
                let message = "applies only to Unix sockets (`address: unix:/run/evenkeel.sock`); remove it";
                self.add(format!("{field}.mode"), message);
            }
        }
        if let Some(ListenAddress::Unix(_)) = &config.admin.address {
            let message = "the admin endpoint cannot listen on a Unix socket; set an address of this machine, as `127.0.0.1:9901`";
            self.add("admin.address", message);
        }
        let mut taken: Vec<(String, &ListenAddress)> = Vec::new();
        let listeners = listeners.into_iter().map(|(field, address, _)| (format!("{field}.address"), address));
        let admin = config.admin.address.as_ref().map(|address| ("admin.address".to_owned(), address));
        for (field, address) in listeners.chain(admin) {
            // The system chooses a port of its own for each of these.
            if address.port() == Some(0) {
                continue;
            }
            match taken.iter().find(|(_, other)| *other == address) {
                Some((first, _)) => {
                    let message = format!("{address} is also the address of {first}; each needs its own address");
                    self.add(field, message);
                }
                None => taken.push((field, address)),
            }
        }
    }

    fn admin_hosts(&mut self, config: &Config) {
        for (index, host) in config.admin.hosts.iter().enumerate() {
            let is_name = host.parse::<http::uri::Authority>().is_ok_and(|name| name.host() == host);
            if host != "*" && !is_name {
                let message = format!("{host:?} is not a host name; write it without scheme and port, or `*`");
                self.add(format!("admin.hosts[{index}]"), message);
            }
        }
    }

    fn upstreams(&mut self, config: &Config) {
        if config.upstreams.is_empty() && config.services.is_empty() && config.ext_proc.is_none() {
            let message = "no upstream is configured; name one, as `- url: http://127.0.0.1:9000` or \
                           with `--upstream http://127.0.0.1:9000`, or let Envoy ask with `--ext-proc 127.0.0.1:9902`";
            self.add("upstreams", message);
        }
        self.upstreams_of("upstreams", &config.upstreams, config);
        for (name, service) in &config.services {
            self.upstreams_of(&format!("services.{name}.upstream"), &service.upstream, config);
        }
        self.0.extend(service_check::check(config));
    }

    /// Upstreams that serve the same requests.
    fn upstreams_of(&mut self, list: &str, upstreams: &[UpstreamConfig], config: &Config) {
        for (index, upstream) in upstreams.iter().enumerate() {
            let field = format!("{list}[{index}]");
            self.upstream_tls(&format!("{field}.tls"), upstream);
            if !WEIGHTS.contains(&upstream.weight) {
                self.add(format!("{field}.weight"), format!("must be from {} to {}", WEIGHTS.start(), WEIGHTS.end()));
            }
            if let Some(first) = upstreams[..index].iter().position(|other| other.url == upstream.url) {
                let message = format!("{} is already {list}[{first}]; remove it here", upstream.url);
                self.add(format!("{field}.url"), message);
            }
            if config.listen.iter().any(|listen| own_address::is_own(&upstream.url, &listen.address)) {
                let url = upstream.url.to_string();
                let message = format!(
                    "the upstream {} is the gateway's own address; name the address of the service, or let the gateway listen \
                     on another port (`listen`, `--listen`)",
                    url.trim_end_matches('/')
                );
                self.add(format!("{field}.url"), message);
            }
        }
    }

    fn upstream_tls(&mut self, field: &str, upstream: &UpstreamConfig) {
        match &upstream.url {
            UpstreamAddress::Url(url) => self.tls(field, &upstream.tls, url),
            UpstreamAddress::Unix(_) if upstream.tls != UpstreamTls::default() => {
                self.add(field, format!("{} is a Unix socket, which is not encrypted; remove tls", upstream.url));
            }
            UpstreamAddress::Unix(_) => {}
        }
    }

    fn tls(&mut self, field: &str, tls: &UpstreamTls, url: &Uri) {
        if tls.certificate.is_some() != tls.key.is_some() {
            self.add(field, "a certificate needs its key, and a key its certificate; name both");
        }
        if *tls != UpstreamTls::default() && url.scheme_str() != Some("https") {
            self.add(field, format!("{url} is not encrypted; use an https URL, or remove tls"));
        }
    }

    fn tracing(&mut self, tracing: &TracingConfig) {
        if !(0.0..=1.0).contains(&tracing.sample_ratio) {
            self.add("tracing.sampleRatio", "must be a number from 0 to 1");
        }
        self.no_time("tracing.timeout", tracing.timeout);
        if tracing.service_name.is_empty() {
            self.add("tracing.serviceName", "is empty; set the name of the service in traces");
        }
        let Some(endpoint) = &tracing.endpoint else { return };
        self.tls("tracing.tls", &tracing.tls, endpoint);
        if cfg!(not(feature = "otlp")) {
            self.add("tracing.endpoint", "this program was built without tracing; build it with the feature `otlp`");
        }
    }

    fn limit(&mut self, field: &str, limit: &LimitConfig) {
        let Some(HoldWhile { url, metric, above }) = &limit.hold_while else { return };
        let is_page = |url: &Uri| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some();
        if !url.parse().is_ok_and(|url| is_page(&url)) {
            let message = "must be the URL of a page of metrics, as `http://127.0.0.1:8000/metrics`";
            self.add(format!("{field}.holdWhile.url"), message);
        }
        if metric.is_empty() || !metric.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':'))
        {
            self.add(
                format!("{field}.holdWhile.metric"),
                "must be the name of a metric, as `vllm:num_requests_waiting`",
            );
        }
        if !above.is_finite() {
            self.add(format!("{field}.holdWhile.above"), "must be a number");
        }
    }

    fn health(&mut self, health: &HealthConfig) {
        self.zero("health.failures", u64::from(health.failures));
        self.no_time("health.pause", health.pause);
        if health.pause_max < health.pause {
            self.add("health.pauseMax", "is shorter than health.pause; make it at least as long");
        }
        if !(health.error_share > 0.0 && health.error_share < 1.0) {
            self.add("health.errorShare", "must be a number between 0 and 1, and neither of them");
        }
        let Some(check) = &health.check else { return };
        if !check.path.starts_with('/') || check.path.parse::<Uri>().is_err() {
            self.add("health.check.path", format!("{:?} is no path; write it as `/healthz`", check.path));
        }
        self.no_time("health.check.interval", check.interval);
        self.no_time("health.check.timeout", check.timeout);
        self.zero("health.check.healthyAfter", u64::from(check.healthy_after));
        self.zero("health.check.unhealthyAfter", u64::from(check.unhealthy_after));
        self.zero("health.check.expect", check.expect.len() as u64);
    }

    fn files(&mut self, config: &Config, look_at: impl Fn(&Path) -> io::Result<()>) {
        paths::visit(&mut config.clone(), &mut |field, path| {
            if path.as_os_str().is_empty() {
                self.add(field, "is missing; name a file");
            } else if paths::is_made(field) {
                // The file is made when the gateway starts.
            } else if let Err(error) = look_at(path) {
                self.add(field, format!("{}: {error}; {}", path.display(), advice(&error)));
            }
        });
    }

    fn identity(&mut self, config: &Config) {
        let mut listeners = config.listen.iter().filter_map(|listen| listen.tls.as_ref());
        let asks_for_certificates = listeners.any(|tls| tls.client_ca.is_some());
        // A client's certificate is named by Envoy if it asks for one.
        self.0.extend(config.identity.check(asks_for_certificates || config.ext_proc.is_some()));
    }

    fn requests(&mut self, config: &Config) {
        if let Err(faults) = RequestRules::new(&config.requests, config.preset) {
            for message in faults.0 {
                self.add("requests.routes", message);
            }
        }
    }

    fn responses(&mut self, config: &Config) {
        if let Err((setting, message)) = ErrorFormat::new(&config.responses, config.preset) {
            self.add(format!("responses.{setting}"), message);
        }
        if let Err((index, message)) = AllowedOrigins::new(&config.cors.origins) {
            self.add(format!("cors.origins[{index}]"), message);
        }
    }

    fn queue(&mut self, field: &str, queue: Duration, preset: Preset) {
        self.no_time(field, queue);
        match preset {
            Preset::Kubernetes if queue > QUEUE_MAX_KUBERNETES => {
                let message = "under the preset `kubernetes`, a request waits at most one minute for a seat; set it to 1m or less";
                self.add(field, message);
            }
            _ if queue > QUEUE_MAX => {
                self.add(field, "a request waits at most one hour for a seat; set it to 1h or less");
            }
            _ => {}
        }
    }

    fn route_timeouts(&mut self, config: &Config) {
        for (index, route) in config.requests.routes.iter().enumerate() {
            let field = |name: &str| format!("requests.routes[{index}].timeouts.{name}");
            let RouteTimeouts { response, stall, total, queue } = route.timeouts;
            if let Some(stall) = stall {
                self.no_time(&field("stall"), stall);
            }
            if let Some(queue) = queue {
                self.queue(&field("queue"), queue, config.preset);
                if route.seats == 0 {
                    self.add(field("queue"), "the route has `seats: 0`, so its requests wait for no seat; remove it");
                }
                if total.is_some_and(|total| !total.is_zero() && queue > total) {
                    self.add(field("queue"), "is longer than the route's total; make it shorter, or total longer");
                }
            }
            let whole = total.unwrap_or(if route.long_running { Duration::ZERO } else { config.timeouts.total });
            let is_too_long = |response: Duration| !whole.is_zero() && response > whole;
            match response {
                Some(response) if is_too_long(response) => {
                    let limit = if total.is_some() { "the route's total" } else { "timeouts.total" };
                    self.add(field("response"), format!("is longer than {limit}; make it shorter, or total longer"));
                }
                None if total.is_some() && is_too_long(config.timeouts.response) => {
                    let message =
                        "is shorter than timeouts.response; set the response of the route too, or make it longer";
                    self.add(field("total"), message);
                }
                _ => {}
            }
        }
    }

    fn timeouts(&mut self, timeouts: &Timeouts, preset: Preset) {
        let must_be = [
            ("connect", timeouts.connect),
            ("head", timeouts.head),
            ("idle", timeouts.idle),
            ("stall", timeouts.stall),
            ("firstMessage", timeouts.first_message),
        ];
        for (name, duration) in must_be {
            self.no_time(&format!("timeouts.{name}"), duration);
        }
        self.queue("timeouts.queue", timeouts.queue, preset);
        if !timeouts.total.is_zero() && timeouts.response > timeouts.total {
            self.add("timeouts.response", "is longer than timeouts.total; make it shorter, or total longer");
        }
        for (name, duration) in [("drain", timeouts.drain), ("drainNotice", timeouts.drain_notice)] {
            if duration > DRAIN_MAX {
                self.add(format!("timeouts.{name}"), "must be at most one hour");
            }
        }
    }

    fn limits(&mut self, limits: &Limits) {
        self.zero("limits.connections", limits.connections as u64);
        self.zero("limits.streams", u64::from(limits.streams));
        for (name, value, range) in [("headBytes", limits.head_bytes, HEAD_BYTES), ("headers", limits.headers, HEADERS)]
        {
            if !range.contains(&value) {
                self.add(format!("limits.{name}"), format!("must be from {} to {}", range.start(), range.end()));
            }
        }
        if limits.buffer_bytes < BUFFER_BYTES_MIN {
            self.add("limits.bufferBytes", format!("must be at least {BUFFER_BYTES_MIN}"));
        }
        if limits.response_buffer > limits.buffer_bytes {
            let all = limits.buffer_bytes;
            let message = format!(
                "is more than limits.bufferBytes ({all}), which is for all buffers; make it smaller, or set that"
            );
            self.add("limits.responseBuffer", message);
        }
    }

    /// Whether a body can get as far as it is to be buffered.
    fn request_buffer(&mut self, config: &Config) {
        let (set, all) = (config.limits.request_buffer, config.limits.buffer_bytes);
        // A trusted proxy speaks for many clients, and has no share.
        let has_proxy =
            config.identity.sources.iter().any(|source| matches!(source, IdentitySource::TrustedHeaders(_)));
        let (most, whose, times) = if has_proxy {
            (all, "limits.bufferBytes is for all buffers", 1)
        } else {
            (config.limits.buffer_bytes_per_client(), "one client has a quarter of limits.bufferBytes", CLIENTS_MIN)
        };
        if set > most {
            let needed = set.saturating_mul(times);
            let message = format!(
                "is never reached: {whose}, {most} bytes; set it to at most {most}, or limits.bufferBytes to at least {needed}"
            );
            self.add("limits.requestBuffer", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_not_be_read_is_named_with_its_setting_and_what_to_do() {
        let text = "{upstreams: [{url: 'http://127.0.0.1:9000'}], identity: {sources: [{apiKey: {file: keys.csv}}]}}";
        let config = Config::parse("x.yaml", text).unwrap();
        let found = config.check_with(|_| Err(io::Error::from_raw_os_error(13)));
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "identity.sources[0].apiKey.file: keys.csv: Permission denied (os error 13); make it readable for the user that \
              runs evenkeel; under systemd, pass it to the service with `LoadCredential=`"
            ]
        );
    }

    #[test]
    fn files_and_folders_can_be_read_and_pipes_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        std::fs::write(&file, "").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [folder.path(), &file] {
            assert!(can_be_read(path).is_ok(), "{path:?}");
        }
        assert_eq!(can_be_read(&pipe).unwrap_err().to_string(), "it is a FIFO, not a regular file");
        assert_eq!(can_be_read(&folder.path().join("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
