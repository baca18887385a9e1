//! `evenkeel serve`: the gateway in front of a service.

mod lifecycle;
mod memory;
mod open_files;
mod reload;
mod takeover;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Result;
use clap::{Args, ValueEnum};
use evenkeel_api::Preset;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_gateway::Config;
use evenkeel_gateway::config::{BorrowingConfig, ListenAddress, ListenConfig, LogFormat, UpstreamConfig};

use crate::api::ApiArgs;
use crate::exit::{Exit, WrongUsage};
use crate::terminal::print;
use crate::usage::{concurrency, listen_address, number};
pub(crate) use lifecycle::start_with;
pub(crate) use open_files::raise_limit;
use reload::ReloadableSettings;
use takeover::Takeover;

const EXAMPLES: &str = "\
Examples:
  Protect a service that can process 50 requests at a time:
    evenkeel serve --upstream http://127.0.0.1:9000 --concurrency 50
    evenkeel serve --upstream http://127.0.0.1:9000 --concurrency auto
  Listen on all interfaces, with your own objects; changes to the files take effect immediately:
    evenkeel serve --upstream http://127.0.0.1:9000 --listen 0.0.0.0:8080 --objects ./objects
  In front of a server of language models, such as vLLM or Ollama:
    evenkeel serve --upstream http://127.0.0.1:8000 --preset llm --concurrency 32
  In front of a Kubernetes API server:
    evenkeel serve --upstream https://127.0.0.1:6443 --preset kubernetes
  Share 600 seats with the other gateways of the same service, by way of etcd:
    evenkeel serve --upstream http://checkout:9000 --concurrency 600 --fleet checkout --fleet-endpoint 127.0.0.1:2379
  Decide about the requests that an Envoy forwards:
    evenkeel serve --ext-proc 127.0.0.1:9902 --concurrency 50
  See what other objects would change, without any effect on requests:
    evenkeel serve --upstream http://127.0.0.1:9000 --objects ./objects --shadow ./new-objects
    evenkeel shadow
  Two upstreams and all settings from a file:
    evenkeel serve --config evenkeel.yaml --upstream http://one:9000 --upstream http://two:9000
  Serve the API of the objects too, for kubectl:
    evenkeel serve --upstream http://127.0.0.1:9000 --data-dir ./data
    kubectl --kubeconfig ./data/kubeconfig get flowschemas
  Serve only the API, with its objects in etcd:
    evenkeel serve --api-only --data-dir ./data --store etcd://127.0.0.1:2379
  Replace a running gateway, for example by a new version, without refusing a connection:
    evenkeel serve --config evenkeel.yaml --takeover-socket /run/evenkeel/takeover.sock --takeover
  Print the effective settings of the file, the flags and the defaults:
    evenkeel serve --config evenkeel.yaml --print-config

Signals:
  SIGTERM, SIGINT  shut down: /readyz fails, and running requests are finished; a second signal,
                   at least half a second later, exits immediately
  SIGHUP           reload the settings file and log the result (the file is also watched)";

/// Runs the gateway in front of a service, so that one noisy client cannot starve the others.
///
/// Flags override the settings file, which overrides the defaults.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// The URL of the service. May be given several times: each request goes to the least loaded upstream.
    #[arg(long, value_name = "URL", value_parser = UpstreamConfig::new)]
    upstream: Vec<UpstreamConfig>,

    /// The address for clients: an IP address or a name, and a port [default: 127.0.0.1:8080]. May be given several times.
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    listen: Vec<ListenAddress>,

    /// The address at which Envoy asks what to do with its requests (external processing), such as 127.0.0.1:9902. Without --upstream,
    /// nothing is forwarded: Envoy does that.
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    ext_proc: Option<ListenAddress>,

    /// The address of the admin endpoint, or `none` [default: 127.0.0.1:9901]. It has the dashboard, metrics and health checks.
    #[arg(long, value_name = "ADDR", value_parser = admin)]
    admin_listen: Option<Admin>,

    /// The settings file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The kind of service: `plain`, matched by methods and paths, with all seats in one level; `llm`, the same for servers of
    /// language models, whose requests cost tokens; or `kubernetes`, with everything as in a kube-apiserver [default: plain;
    /// kubernetes with --api-only].
    #[arg(long, value_name = "PRESET", value_parser = Preset::from_str)]
    preset: Option<Preset>,

    /// A manifest, or a directory of manifests, with flow schemas and priority levels [default: the objects of the preset].
    /// Changes take effect immediately.
    #[arg(long, value_name = "PATH")]
    objects: Option<PathBuf>,

    /// A manifest, or a directory of manifests, with objects that decide beside those in effect, without any effect on requests. `evenkeel
    /// shadow` shows what they would change.
    #[arg(long, value_name = "PATH")]
    shadow: Option<PathBuf>,

    /// How many requests all upstreams together can process at a time: a number, or `auto` to find out, or `auto:10..400` to find
    /// out within these bounds [default: auto; 600 with --preset kubernetes].
    #[arg(long, visible_alias = "seats", value_name = "N", value_parser = concurrency)]
    concurrency: Option<Concurrency>,

    /// Share the seats with all gateways that have the same name of a service: they use `--concurrency` seats together. Needs etcd: that of
    /// `--store`, or `--fleet-endpoint`.
    #[arg(long, value_name = "NAME")]
    fleet: Option<String>,

    /// A member of the etcd by which a fleet shares its seats, such as 127.0.0.1:2379. May be given several times.
    #[arg(long, value_name = "HOST:PORT")]
    fleet_endpoint: Vec<String>,

    /// When priority levels borrow and return seats: `immediate`, at every event, or `periodic`, every ten seconds as in
    /// Kubernetes [default: immediate; periodic with --preset kubernetes].
    #[arg(long, value_name = "WHEN", value_parser = BorrowingConfig::from_str)]
    borrowing: Option<BorrowingConfig>,

    /// How many threads serve requests [default: one for each core].
    #[arg(long, value_name = "N", value_parser = number::<1024>)]
    workers: Option<u32>,

    /// Log format [default: text].
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Format>,

    /// Log level: `error`, `warn`, `info`, `debug` or `trace`, or per module, such as `info,evenkeel_gateway=debug`
    /// [default: info].
    #[arg(long, value_name = "FILTER")]
    log_filter: Option<String>,

    #[command(flatten)]
    api: ApiArgs,

    /// Take the place of the gateway that runs with the same `takeoverSocket`: use its listening sockets, and let it finish its
    /// requests and exit. Starts as usual if none runs.
    #[arg(long)]
    takeover: bool,

    /// The Unix socket over which a later `serve --takeover` finds this gateway.
    #[arg(long, value_name = "FILE")]
    takeover_socket: Option<PathBuf>,

    /// Print the effective settings, report errors, and exit. Does not open files that the settings refer to.
    #[arg(long)]
    print_config: bool,
}

/// The file with the limit that was learnt, in the data directory.
const LIMIT_FILE: &str = "limit.json";

/// The dumps of the flight recorder, in the data directory.
const FLIGHT_FOLDER: &str = "flight";

/// The lock by which the next process knows that this one is dead, in the data directory.
const FLEET_LOCK: &str = "fleet.lock";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// An object of JSON a line, for machines.
    Json,
}

/// The address of the admin endpoint, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Admin {
    At(ListenAddress),
    None,
}

fn admin(text: &str) -> Result<Admin, String> {
    if text == "none" {
        return Ok(Admin::None);
    }
    listen_address(text).map(Admin::At).map_err(|fault| fault + ", or `none`")
}

// === impl Serve ===

impl Serve {
    pub(crate) fn run(&self) -> Result<Exit> {
        let config = self.read()?;
        if self.print_config {
            print(config.to_yaml())?;
            if !self.api.api_only {
                lifecycle::ensure_no_problems(&config.check_without_files(), self.config.as_deref())?;
            }
            return Ok(Exit::Success);
        }
        lifecycle::run(config, &self.api, self, if self.takeover { Takeover::Asked } else { Takeover::No })
    }

    fn override_settings(&self, config: &mut Config) {
        if !self.upstream.is_empty() {
            config.upstreams.clone_from(&self.upstream);
        }
        if !self.listen.is_empty() {
            // TLS and the PROXY protocol are settings of the file's; a flag that moves a listener does not take them off.
            let first = config.listen.first().cloned().unwrap_or_default();
            let at = |address: &ListenAddress| {
                let mode = first.mode.filter(|_| matches!(address, ListenAddress::Unix(_)));
                ListenConfig { address: address.clone(), mode, ..first.clone() }
            };
            config.listen = self.listen.iter().map(at).collect();
        }
        if let Some(address) = &self.ext_proc {
            config.ext_proc.get_or_insert_default().address = address.clone();
        }
        match &self.admin_listen {
            Some(Admin::At(address)) => config.admin.address = Some(address.clone()),
            Some(Admin::None) => config.admin.address = None,
            None => {}
        }
        match self.preset {
            Some(preset) => config.preset = preset,
            // The settings in the file are the gateway's.
            None if self.api.api_only => config.preset = Preset::Kubernetes,
            None => {}
        }
        if let Some(objects) = &self.objects {
            config.objects = Some(objects.clone());
        }
        if let Some(objects) = &self.shadow {
            config.shadow.get_or_insert_default().objects = Some(objects.clone());
        }
        if let Some(concurrency) = &self.concurrency {
            config.concurrency = Some(concurrency.clone());
        }
        if let (None, Some(folder)) = (&config.limit.state_file, &self.api.data_dir) {
            config.limit.state_file = Some(folder.join(LIMIT_FILE));
        }
        if let (None, Some(folder)) = (&config.flight_recorder.directory, &self.api.data_dir) {
            config.flight_recorder.directory = Some(folder.join(FLIGHT_FOLDER));
        }
        if let Some(service) = &self.fleet {
            config.fleet.get_or_insert_default().service.clone_from(service);
        }
        if let Some(fleet) = &mut config.fleet {
            if !self.fleet_endpoint.is_empty() {
                fleet.endpoints.clone_from(&self.fleet_endpoint);
            }
            self.api.lend_etcd_to(fleet);
            if let (None, Some(folder)) = (&fleet.lock_file, &self.api.data_dir) {
                fleet.lock_file = Some(folder.join(FLEET_LOCK));
            }
        }
        if let Some(borrowing) = self.borrowing {
            config.flow_control.borrowing = Some(borrowing);
        }
        if let Some(path) = &self.takeover_socket {
            config.takeover_socket = Some(path.clone());
        }
        if let Some(workers) = self.workers {
            config.workers = usize::try_from(workers).ok();
        }
        match self.log_format {
            Some(Format::Text) => config.log.format = LogFormat::Text,
            Some(Format::Json) => config.log.format = LogFormat::Json,
            None => {}
        }
        if let Some(filter) = &self.log_filter {
            config.log.filter.clone_from(filter);
        }
    }
}

impl ReloadableSettings for Serve {
    fn read(&self) -> Result<Config, WrongUsage> {
        let mut config = match &self.config {
            Some(path) => Config::read_for(path, self.preset).map_err(|error| WrongUsage(error.to_string()))?,
            None => Config::for_preset(self.preset.unwrap_or_default()),
        };
        self.override_settings(&mut config);
        Ok(config)
    }

    fn file(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        serve: Serve,
    }

    fn settings(flags: &str, file: &str) -> Config {
        let mut config = Config::parse("file", file).unwrap();
        let line = CommandLine::parse_from(["serve"].into_iter().chain(flags.split_whitespace()));
        line.serve.override_settings(&mut config);
        config
    }

    #[test]
    fn what_no_flag_says_is_as_in_the_file() {
        let file = "{concurrency: 7, workers: 3, admin: {address: null}, log: {format: json, filter: debug}, \
                    objects: there, listen: [{address: 127.0.0.1:81}], upstreams: [{url: http://a:1}]}";
        assert_eq!(settings("", file), Config::parse("file", file).unwrap());
    }

    #[test]
    fn flags_go_before_the_file() {
        let file = "{concurrency: 7, workers: 3, admin: {address: null}, log: {format: json, filter: debug}, \
                    objects: there, listen: [{address: 127.0.0.1:81}], upstreams: [{url: http://a:1}, {url: http://b:2}], \
                    flowControl: {borrowing: immediate}}";
        let flags = "--borrowing periodic --concurrency 8 --workers 4 --admin-listen 127.0.0.1:5 --log-format text --log-filter warn \
                     --objects here --shadow new --listen 127.0.0.1:82 --listen [::1]:82 --upstream http://c:3";
        let expected = "{concurrency: 8, workers: 4, admin: {address: 127.0.0.1:5}, log: {format: text, filter: warn}, \
                        objects: here, shadow: {objects: new}, listen: [{address: 127.0.0.1:82}, {address: '[::1]:82'}], \
                        upstreams: [{url: http://c:3}], flowControl: {borrowing: periodic}}";
        assert_eq!(settings(flags, file), Config::parse("file", expected).unwrap());
        assert_eq!(settings("--admin-listen none", "").admin.address, None);
    }

    #[test]
    fn the_api_alone_is_that_of_kubernetes_unless_a_flag_says_otherwise() {
        assert_eq!(settings("", "").preset, Preset::Plain);
        assert_eq!(settings("--preset kubernetes", "preset: plain").preset, Preset::Kubernetes);
        assert_eq!(settings("--api-only --data-dir d", "preset: plain").preset, Preset::Kubernetes);
        assert_eq!(settings("--api-only --data-dir d --preset plain", "").preset, Preset::Plain);
    }

    #[test]
    fn the_etcd_of_the_objects_is_that_of_the_fleet_unless_it_has_another() {
        let fleet = |flags: &str, file: &str| settings(flags, file).fleet.unwrap();
        let of_store = fleet("--fleet checkout --data-dir d --store etcd://a:1,b:2", "");
        assert_eq!(
            (of_store.service.as_str(), of_store.endpoints),
            ("checkout", vec!["a:1".to_owned(), "b:2".to_owned()])
        );
        assert_eq!(of_store.lock_file, Some("d/fleet.lock".into()));
        let own =
            fleet("--data-dir d --store etcd://a:1", "fleet: {service: checkout, endpoints: ['c:3'], lockFile: l}");
        assert_eq!((own.endpoints, own.lock_file), (vec!["c:3".to_owned()], Some("l".into())));
        assert_eq!(
            fleet("--fleet b --fleet-endpoint d:4", "fleet: {service: a, endpoints: ['c:3']}").endpoints,
            ["d:4"]
        );
        assert!(fleet("--fleet a --data-dir d", "").endpoints.is_empty());
    }

    #[test]
    fn a_listener_that_is_moved_stays_encrypted() {
        let file = "listen: [{address: 127.0.0.1:443, tls: {certificate: c.pem, key: k.pem}, proxyProtocolFrom: [10.0.0.0/8]}]";
        let moved = "listen: [{address: 127.0.0.1:444, tls: {certificate: c.pem, key: k.pem}, proxyProtocolFrom: [10.0.0.0/8]}]";
        assert_eq!(settings("--listen 127.0.0.1:444", file), Config::parse("file", moved).unwrap());
        let file = "listen: [{address: 'unix:/run/a.sock', mode: '0660'}]";
        let moved = "listen: [{address: 'unix:/run/b.sock', mode: '0660'}]";
        assert_eq!(settings("--listen unix:/run/b.sock", file), Config::parse("file", moved).unwrap());
        assert_eq!(settings("--listen 127.0.0.1:1", file).listen[0].mode, None);
    }

    #[test]
    fn the_defaults_that_the_help_shows_are_the_defaults() {
        let help = crate::command().find_subcommand_mut("serve").unwrap().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let config = Config::default();
        for shown in [
            config.listen[0].address.to_string(),
            format!(
                "{}; {} with --preset kubernetes",
                config.concurrency(),
                Concurrency::of_preset(Preset::Kubernetes)
            ),
            config.admin.address.unwrap().to_string(),
            config.log.filter,
        ] {
            assert!(help.contains(&format!("[default: {shown}]")), "{shown}");
        }
    }
}
