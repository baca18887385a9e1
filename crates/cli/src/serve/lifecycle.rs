//! The life of a gateway: it starts, serves until it is asked to shut down, and drains.

use std::future::Future;
use std::num::NonZero;
use std::path::Path;

use anyhow::{Context, Result};
use evenkeel_api::Preset;
use evenkeel_apiserver::GovernedFlow;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_gateway::config::{ListenAddress, Problem};
use evenkeel_gateway::objects::{self, ObjectSource};
use evenkeel_gateway::sockets::Predecessor;
use evenkeel_gateway::{Config, Drained, Gateway, StartError, observe::log};
use tokio::runtime;

use super::reload::{self, End, ReloadableSettings};
use super::takeover::{self, Inheritance, Takeover};
use super::{memory, open_files};
use crate::api::{ApiArgs, ApiObjects, LateApi, RunningApi, SettingsObjects, is_held_by_another, is_without_store};
use crate::exit::{Exit, WrongUsage};
use crate::signals::{SignalWish, Signals};
use crate::terminal::print;

/// Runs a gateway, an API or both until they are asked to shut down.
pub(super) fn run(
    config: Config,
    api: &ApiArgs,
    settings: &impl ReloadableSettings,
    takeover: Takeover,
) -> Result<Exit> {
    let problems = if api.api_only { config.check_short_form() } else { config.check() };
    ensure_no_problems(&problems, settings.file())?;
    let inheritance = Inheritance::open(&config, takeover, api)?;
    open_files::raise_limit();
    // Requests to the gateway have threads of their own; these are for the API, the admin endpoint and signals.
    let threads = if api.data_dir.is_some() { cores() } else { 1 };
    let runtime = runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.context("cannot start a thread; see whether the machine's limits allow one more")?;
    log::init(&config.log)?;
    runtime.block_on(async {
        match &api.data_dir {
            None => run_gateway(config, None, settings, inheritance).await,
            Some(folder) if api.api_only => {
                run_api_only(&config, RunningApi::start(api, config.preset, folder, GovernedFlow::default()).await?)
                    .await
            }
            Some(folder) => {
                let api = ApiOfGateway::start(api, folder, &config, inheritance.predecessor.as_ref()).await?;
                run_gateway(config, Some(api), settings, inheritance).await
            }
        }
    })
}

/// The API in the process of a gateway.
struct ApiOfGateway {
    state: ApiState,
    /// The flow control of the gateway, when it has started.
    governed: GovernedFlow,
}

/// Whether the API has started.
enum ApiState {
    /// The API runs.
    Running(RunningApi),
    /// The API starts when its store can be opened; the gateway has a copy of the objects.
    Late(LateApi),
}

/// With so many seats or fewer, the suggested level for ordinary requests has one seat, and lends it out before anybody
/// asks for it.
const FEW_SEATS: u32 = 12;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, NonZero::get)
}

/// Starts a gateway with these objects, on sockets of its own.
pub(crate) async fn start_with(config: Config, objects: Box<dyn ObjectSource>) -> Result<Gateway> {
    Gateway::start(config, objects).await.map_err(classify)
}

/// Tells mistakes in the settings from failures of the machine.
fn classify(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen { .. }
        | StartError::ListenUnix { .. }
        | StartError::Name { .. }
        | StartError::ListenAdmin { .. }
        | StartError::Thread(_) => error.into(),
        _ => WrongUsage(error.to_string()).into(),
    }
}

/// Fails if there are problems: with all of them at once, a line each, with its place in the file of settings.
pub(super) fn ensure_no_problems(problems: &[Problem], file: Option<&Path>) -> Result<(), WrongUsage> {
    let place = |problem: &Problem| file.and_then(|file| Config::place_of(file, &problem.field));
    let line = |problem: &Problem| place(problem).map_or_else(|| problem.to_string(), |at| format!("{at}: {problem}"));
    let problems: Vec<String> = problems.iter().map(line).collect();
    if problems.is_empty() { Ok(()) } else { Err(WrongUsage(problems.join("\n"))) }
}

async fn run_gateway(
    config: Config,
    api: Option<(ApiOfGateway, ApiObjects)>,
    settings: &impl ReloadableSettings,
    Inheritance { sockets, predecessor }: Inheritance,
) -> Result<Exit> {
    let mut signals = Signals::listen()?;
    if config.preset == Preset::Kubernetes && config.objects.is_none() && config.concurrency().first() <= FEW_SEATS {
        tracing::warn!(
            concurrency = %config.concurrency(),
            "with so few seats and only the suggested objects, requests may wait for ten seconds at first; set `--objects`, \
             for example to deploy/objects.yaml"
        );
    }
    let (mut gateway, mut api) = match api {
        None => {
            let objects = objects::source(&config);
            (Gateway::start_on(config.clone(), objects, sockets).await.map_err(classify)?, None)
        }
        Some((api, objects)) => {
            let gateway = Gateway::start_on(config.clone(), Box::new(objects), sockets).await.map_err(classify)?;
            api.governed.set(gateway.flow().clone());
            (gateway, Some(api))
        }
    };
    open_files::warn_if_too_few(&config);
    memory::report(&config);
    takeover::release(predecessor).await;
    let mut offer = gateway.offer()?;
    announce(&gateway, &config);
    if let Some(ApiOfGateway { state: ApiState::Running(api), .. }) = &api {
        announce_api(api)?;
    }
    let end = reload::follow(&mut gateway, settings, &mut signals, &mut offer).await;
    let drain = gateway.config().timeouts.drain;
    match &end {
        End::Stop => tracing::info!("shutting down; finishing running requests (at most {drain:?})"),
        End::Taken(_) => tracing::info!("another process takes over; finishing running requests (at most {drain:?})"),
    }
    let stop = async {
        let drained = match end {
            End::Stop => {
                drop(offer);
                gateway.drain().await
            }
            End::Taken(successor) => {
                gateway.hand_over();
                drop(offer);
                successor.confirm();
                // The successor waits for the store. The objects that govern stay until the last request has ended.
                let stop_api = async {
                    if let Some(api) = api.take() {
                        api.stop().await;
                    }
                };
                tokio::join!(gateway.drain_rest(), stop_api).0
            }
        };
        if let Some(api) = api {
            api.stop().await;
        }
        report_drain(drained)
    };
    unless_insisted(stop, signals).await
}

// === impl ApiOfGateway ===

impl ApiOfGateway {
    /// Starts the API, and returns the source of the gateway's objects: if the store cannot be opened, that is the last copy. The
    /// gateway before this one has its store open until this one takes its place.
    async fn start(
        args: &ApiArgs,
        folder: &Path,
        config: &Config,
        predecessor: Option<&Predecessor>,
    ) -> Result<(Self, ApiObjects)> {
        let governed = GovernedFlow::default();
        match RunningApi::start(args, config.preset, folder, governed.clone()).await {
            Ok(mut api) => {
                api.take_over(&config.into()).await;
                let objects = ApiObjects::of(&api);
                Ok((Self { state: ApiState::Running(api), governed }, objects))
            }
            Err(error) if is_without_store(&error) || predecessor.is_some() && is_held_by_another(&error) => {
                let announce = |api: &RunningApi| {
                    if let Err(error) = announce_api(api) {
                        tracing::warn!("{error:#}");
                    }
                };
                let (objects, late) =
                    ApiObjects::without_store(args, folder, config, governed.clone(), error, announce)?;
                Ok((Self { state: ApiState::Late(late), governed }, objects))
            }
            Err(error) => Err(error),
        }
    }

    async fn stop(self) {
        match self.state {
            ApiState::Running(api) => api.stop().await,
            ApiState::Late(api) => api.stop().await,
        }
    }
}

/// Runs an API and nothing else.
async fn run_api_only(config: &Config, mut api: RunningApi) -> Result<Exit> {
    let mut signals = Signals::listen()?;
    api.take_over(&SettingsObjects::from(config)).await;
    announce_api(&api)?;
    loop {
        match signals.next().await {
            SignalWish::Stop => break,
            SignalWish::Reload => {
                tracing::info!("nothing to reload: tokens and certificates are reloaded when their files change");
            }
            SignalWish::Dump => tracing::info!("nothing to dump: an API alone records no requests"),
        }
    }
    let stop = async {
        api.stop().await;
        tracing::info!("stopped; every acknowledged write is in the store");
        Exit::Success
    };
    unless_insisted(stop, signals).await
}

/// Shuts down cleanly, unless there is a second signal.
async fn unless_insisted(stop: impl Future<Output = Exit>, mut signals: Signals) -> Result<Exit> {
    tokio::select! {
        exit = stop => Ok(exit),
        () = signals.insist() => {
            tracing::warn!("second signal; exiting immediately");
            Ok(Exit::Cut)
        }
    }
}

/// The one line that says that the API is ready, and where. Programs wait for it, too.
fn announce_api(api: &RunningApi) -> Result<()> {
    let (address, kubeconfig) = (api.address(), api.kubeconfig().display());
    print(format!("API ready on https://{address} (kubectl --kubeconfig {kubeconfig} get flowschemas)\n"))?;
    Ok(())
}

/// The one line that says that it is ready, and where.
fn announce(gateway: &Gateway, config: &Config) {
    let envoy_socket = match config.ext_proc.as_ref().map(|settings| &settings.address) {
        Some(ListenAddress::Unix(path)) => Some(path.as_path()),
        _ => None,
    };
    let socket = |path: &Path| format!("unix:{}", path.display());
    let unix = gateway.unix_sockets().filter(|path| Some(*path) != envoy_socket).map(socket);
    let listen: Vec<String> = gateway.addresses().iter().map(ToString::to_string).chain(unix).collect();
    let of_services = (config.services.iter())
        .flat_map(|(name, service)| service.upstream.iter().map(move |upstream| format!("{} ({name})", upstream.url)));
    let upstreams = config.upstreams.iter().map(|upstream| upstream.url.to_string());
    let upstreams: Vec<String> = of_services.chain(upstreams).collect();
    let admin = gateway.admin_address().map_or_else(|| "none".to_owned(), |address| address.to_string());
    let ext_proc = gateway.ext_proc_addresses().iter().map(ToString::to_string);
    let ext_proc: Vec<String> = ext_proc.chain(envoy_socket.map(socket)).collect();
    let mut does = Vec::new();
    if !upstreams.is_empty() {
        does.push(format!("listening on {}, forwarding to {}", listen.join(", "), upstreams.join(", ")));
    }
    if !ext_proc.is_empty() {
        does.push(format!("deciding for Envoy on {}", ext_proc.join(", ")));
    }
    let fleet =
        config.fleet.as_ref().map_or_else(String::new, |fleet| format!(" shared by the fleet {}", fleet.service));
    let seats = seats_of_all(config);
    tracing::info!("ready: {}, {seats}{fleet}, preset {}, admin on {admin}", does.join(", "), config.preset);
    let is_unsaid = config.concurrency.is_none()
        && (has_rest(config) || config.services.values().any(|service| service.concurrency.is_none()));
    if let (true, Some(bounds)) = (is_unsaid, config.concurrency().auto()) {
        tracing::info!(
            "`concurrency` is not set, so the gateway finds out how many requests the service can process at a time: it starts with {} \
             seats (or as many as were right before), and while requests wait it tries a few more and a few fewer, from {} to {}, and \
             keeps what brings the most good responses; if several gateways share the service, or you know the number, set `concurrency`",
            config.concurrency().first(),
            bounds.start(),
            bounds.end()
        );
    }
}

/// Whether there are requests that belong to no service.
fn has_rest(config: &Config) -> bool {
    config.services.is_empty() || !config.upstreams.is_empty() || config.ext_proc.is_some()
}

/// How many seats each service has.
fn seats_of_all(config: &Config) -> String {
    let of_services = config.services.keys().map(|name| format!("{} ({name})", seats(&config.concurrency_of(name))));
    let of_rest = has_rest(config).then(|| seats(&config.concurrency()));
    of_services.chain(of_rest).collect::<Vec<_>>().join(", ")
}

/// How many seats there are, and where they come from.
fn seats(concurrency: &Concurrency) -> String {
    match concurrency {
        Concurrency::Fixed(seats) => format!("{seats} seats"),
        Concurrency::Auto(bounds) => {
            format!("{} to {} seats, as many as the service turns out to have", bounds.start(), bounds.end())
        }
    }
}

fn report_drain(Drained { requests_cut }: Drained) -> Exit {
    if requests_cut == 0 {
        tracing::info!("stopped; all requests finished");
        return Exit::Success;
    }
    tracing::warn!("stopped; {requests_cut} requests had not finished in time and were cut off");
    Exit::Cut
}
