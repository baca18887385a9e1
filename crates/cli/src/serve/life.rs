//! The life of a gateway: it starts, serves until it is told to stop, and drains.

use anyhow::{Context, Result};
use evenkeel_gateway::objects::{DirectorySource, Fixed, ObjectSource};
use evenkeel_gateway::{Config, Drained, Gateway, StartError, log};
use tokio::runtime;

use crate::exit::{Exit, WrongUsage};
use crate::signals::{Signals, Wish};

/// Runs a gateway until it is told to stop. `settings` reads the settings again when somebody asks for it.
pub(super) fn run(config: Config, settings: impl Fn() -> Result<Config, WrongUsage>) -> Result<Exit> {
    check(&config)?;
    // Requests have threads of their own; this one is for the operators' listener, the objects, and signals.
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.context("cannot start a thread; see whether the machine's limits allow one more")?;
    runtime.block_on(live(config, settings))
}

/// Starts a gateway with the objects that its settings name, and the log with it.
pub(crate) async fn start(config: Config) -> Result<Gateway> {
    log::init(&config.log)?;
    let objects: Box<dyn ObjectSource> = match &config.objects {
        Some(path) => Box::new(DirectorySource::new(path)),
        None => Box::new(Fixed::bootstrap()),
    };
    Gateway::start(config, objects).await.map_err(classify)
}

/// What was said wrongly is told apart from what the machine refuses.
fn classify(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen { .. } | StartError::Thread(_) => error.into(),
        StartError::NoUpstream | StartError::Tls(_) | StartError::Identity(_) | StartError::Objects(_) => {
            WrongUsage(error.to_string()).into()
        }
    }
}

/// Every problem at once, a line each.
fn check(config: &Config) -> Result<(), WrongUsage> {
    let problems: Vec<String> = config.check().iter().map(ToString::to_string).collect();
    if problems.is_empty() { Ok(()) } else { Err(WrongUsage(problems.join("\n"))) }
}

async fn live(config: Config, settings: impl Fn() -> Result<Config, WrongUsage>) -> Result<Exit> {
    let mut signals = Signals::listen()?;
    let gateway = start(config.clone()).await?;
    announce(&gateway, &config);
    while signals.next().await == Wish::Reload {
        compare(&config, settings());
    }
    tracing::info!("told to stop; finishing the requests that have begun, for at most {:?}", config.timeouts.drain);
    tokio::select! {
        drained = gateway.drain() => Ok(farewell(drained)),
        () = signals.insist() => {
            tracing::warn!("told to stop a second time; ending at once");
            Ok(Exit::Cut)
        }
    }
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
    match on_disk {
        Err(error) => tracing::error!("the settings on the disk are wrong; those that run stay: {error}"),
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
