//! The life of a gateway: it starts, serves until it is told to stop, and drains.

use std::future::Future;
use std::io::{self, Write};
use std::num::NonZero;

use anyhow::{Context, Result};
use evenkeel_api::Preset;
use evenkeel_gateway::config::Problem;
use evenkeel_gateway::objects::{self, ObjectSource};
use evenkeel_gateway::{Config, Drained, Gateway, StartError, log};
use tokio::runtime;

use super::open_files;
use crate::api::{ApiArgs, ApiObjects, RunningApi};
use crate::exit::{Exit, WrongUsage};
use crate::signals::{Signals, Wish};

/// Runs a gateway, an API or both until they are told to stop. `settings` reads the settings again when somebody asks for it.
pub(super) fn run(config: Config, api: &ApiArgs, settings: impl Fn() -> Result<Config, WrongUsage>) -> Result<Exit> {
    if !api.api_only {
        right(&config.check())?;
    }
    open_files::raise_limit();
    // Requests to the gateway have threads of their own; these are for the API, the operators' listener and signals.
    let threads = if api.data_dir.is_some() { cores() } else { 1 };
    let runtime = runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.context("cannot start a thread; see whether the machine's limits allow one more")?;
    log::init(&config.log)?;
    runtime.block_on(async {
        match &api.data_dir {
            None => live(config, None, settings).await,
            Some(folder) => {
                let running = RunningApi::start(api, config.preset, folder).await?;
                if api.api_only {
                    live_alone(&config, running).await
                } else {
                    live(config, Some(running), settings).await
                }
            }
        }
    })
}

/// With so many seats or fewer, the suggested level for ordinary requests has one seat, and lends it out before anybody
/// asks for it.
const FEW_SEATS: u32 = 12;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, NonZero::get)
}

/// Starts a gateway with the objects that its settings name.
async fn start(config: Config) -> Result<Gateway> {
    let objects = objects::source(&config);
    start_with(config, objects).await
}

pub(crate) async fn start_with(config: Config, objects: Box<dyn ObjectSource>) -> Result<Gateway> {
    Gateway::start(config, objects).await.map_err(classify)
}

/// What was said wrongly is told apart from what the machine refuses.
fn classify(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen { .. } | StartError::ListenForOperators { .. } | StartError::Thread(_) => error.into(),
        StartError::NoUpstream
        | StartError::Tls(_)
        | StartError::Identity(_)
        | StartError::Requests(_)
        | StartError::Objects(_) => WrongUsage(error.to_string()).into(),
    }
}

/// That there are no problems, or every one at once, a line each.
pub(super) fn right(problems: &[Problem]) -> Result<(), WrongUsage> {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    if problems.is_empty() { Ok(()) } else { Err(WrongUsage(problems.join("\n"))) }
}

async fn live(
    config: Config,
    mut api: Option<RunningApi>,
    settings: impl Fn() -> Result<Config, WrongUsage>,
) -> Result<Exit> {
    let mut signals = Signals::listen()?;
    open_files::warn_if_too_few(&config);
    if config.preset == Preset::Kubernetes && config.objects.is_none() && config.concurrency <= FEW_SEATS {
        tracing::warn!(
            concurrency = config.concurrency,
            "with so few seats and the suggested objects alone, requests may wait for ten seconds at first; name objects \
             with `--objects`, for example deploy/objects.yaml"
        );
    }
    let gateway = match &mut api {
        None => start(config.clone()).await?,
        Some(api) => {
            if let Some(path) = &config.objects {
                api.apply_manifests(path).await;
            }
            start_with(config.clone(), Box::new(ApiObjects(api.server().objects()))).await?
        }
    };
    announce(&gateway, &config);
    if let Some(api) = &api {
        announce_api(api)?;
    }
    while signals.next().await == Wish::Reload {
        compare(&config, settings());
    }
    tracing::info!("told to stop; finishing the requests that have begun, for at most {:?}", config.timeouts.drain);
    let stop = async {
        let drained = gateway.drain().await;
        if let Some(api) = api {
            api.stop().await;
        }
        farewell(drained)
    };
    or_at_once(stop, signals).await
}

/// Runs an API and nothing else.
async fn live_alone(config: &Config, mut api: RunningApi) -> Result<Exit> {
    let mut signals = Signals::listen()?;
    if let Some(path) = &config.objects {
        api.apply_manifests(path).await;
    }
    announce_api(&api)?;
    while signals.next().await == Wish::Reload {
        tracing::info!("tokens and certificates are read again when their files change; there is nothing else to do");
    }
    let stop = async {
        api.stop().await;
        tracing::info!("stopped; every write that was answered is in the store");
        Exit::Success
    };
    or_at_once(stop, signals).await
}

/// Stops in good order, unless it is told to stop a second time.
async fn or_at_once(stop: impl Future<Output = Exit>, mut signals: Signals) -> Result<Exit> {
    tokio::select! {
        exit = stop => Ok(exit),
        () = signals.insist() => {
            tracing::warn!("told to stop a second time; ending at once");
            Ok(Exit::Cut)
        }
    }
}

/// The one line that says that the API answers, and where. It is for programs that wait for it, too.
fn announce_api(api: &RunningApi) -> Result<()> {
    let (address, kubeconfig) = (api.address(), api.kubeconfig().display());
    writeln!(io::stdout(), "API ready on https://{address} (kubectl --kubeconfig {kubeconfig} get flowschemas)")
        .context("cannot write to standard output")
}

/// The one line that says that it is ready, and where.
fn announce(gateway: &Gateway, config: &Config) {
    let listen: Vec<String> = gateway.addresses().iter().map(ToString::to_string).collect();
    let upstreams: Vec<String> = config.upstreams.iter().map(|upstream| upstream.url.to_string()).collect();
    let admin = gateway.admin_address().map_or_else(|| "none".to_owned(), |address| address.to_string());
    tracing::info!(
        "ready: listening on {}, passing on to {}, {} seats, admin on {admin}",
        listen.join(", "),
        upstreams.join(", "),
        config.concurrency,
    );
}

/// What SIGHUP asks for: whether what is on the disk is right, and whether it is what runs.
fn compare(running: &Config, on_disk: Result<Config, WrongUsage>) {
    let checked = on_disk.and_then(|config| right(&config.check()).map(|()| config));
    match checked {
        Err(WrongUsage(problems)) => {
            // All of them in one line of the log.
            let problems = problems.replace('\n', "; ");
            tracing::error!("the settings on the disk are wrong; those that run stay: {problems}");
        }
        Ok(config) if config == *running => tracing::info!(
            "the settings have not changed; objects, keys and certificates are read again when their files change"
        ),
        Ok(_) => tracing::warn!("the settings on the disk have changed; restart to follow them"),
    }
}

fn farewell(Drained { requests_cut }: Drained) -> Exit {
    if requests_cut == 0 {
        tracing::info!("stopped; every request that had begun has ended");
        return Exit::Success;
    }
    tracing::warn!("stopped; {requests_cut} requests had not ended in time and were cut off");
    Exit::Cut
}
