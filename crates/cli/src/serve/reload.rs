//! Settings that change while the gateway runs: the file is watched, and SIGHUP reloads it.

use std::path::Path;

use evenkeel_gateway::config::ConfigFile;
use evenkeel_gateway::sockets::{Offer, Successor};
use evenkeel_gateway::{Config, Gateway, Reconfigured};

use super::lifecycle::ensure_no_problems;
use crate::exit::WrongUsage;
use crate::signals::{SignalWish, Signals};

/// Where settings come from.
pub(super) trait ReloadableSettings {
    /// The settings that follow from the file, the flags and the defaults, as of now.
    fn read(&self) -> Result<Config, WrongUsage>;

    /// The file, if there is one.
    fn file(&self) -> Option<&Path>;
}

/// Why the settings are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The file has changed.
    Change,
    /// SIGHUP was sent, whose sender wants to see the result in the log.
    Signal,
}

/// Why the gateway ends.
#[derive(Debug)]
pub(super) enum End {
    /// The gateway is asked to stop.
    Stop,
    /// Another process accepts connections in its place.
    Taken(Successor),
}

/// Follows the settings until the gateway is asked to stop, or another process takes over.
pub(super) async fn follow(
    gateway: &mut Gateway,
    settings: &impl ReloadableSettings,
    signals: &mut Signals,
    offer: &mut Option<Offer>,
) -> End {
    let mut file = settings.file().map(ConfigFile::watch);
    // The settings that need a restart and were logged: once is enough.
    let mut told = Vec::new();
    loop {
        let reason = tokio::select! {
            wish = signals.next() => match wish {
                SignalWish::Stop => return End::Stop,
                SignalWish::Reload => Reason::Signal,
                SignalWish::Dump => {
                    gateway.dump_flight().await;
                    continue;
                }
            },
            () = changed(&mut file) => Reason::Change,
            successor = taken(offer) => return End::Taken(successor),
        };
        let outcome = reload(gateway, settings).await;
        tell(outcome, reason, &mut told);
    }
}

async fn taken(offer: &mut Option<Offer>) -> Successor {
    match offer {
        Some(offer) => offer.taken().await,
        None => std::future::pending().await,
    }
}

async fn changed(file: &mut Option<ConfigFile>) {
    match file {
        Some(file) => file.changed().await,
        None => std::future::pending().await,
    }
}

async fn reload(gateway: &mut Gateway, settings: &impl ReloadableSettings) -> Result<Reconfigured, String> {
    let read = settings.read().and_then(|config| ensure_no_problems(&config.check(), settings.file()).map(|()| config));
    match read {
        Ok(config) => gateway.reconfigure(config).await.map_err(|error| error.to_string()),
        Err(WrongUsage(problems)) => {
            gateway.note_settings_refused();
            Err(problems)
        }
    }
}

fn tell(outcome: Result<Reconfigured, String>, reason: Reason, told: &mut Vec<String>) {
    let Reconfigured { changed, needs_restart, .. } = match outcome {
        Ok(reconfigured) => reconfigured,
        Err(problems) => {
            // All problems in one line of the log.
            let problems = problems.replace('\n', "; ");
            tracing::error!("settings not reloaded; the previous settings stay in effect: {problems}");
            return;
        }
    };
    if !changed.is_empty() {
        tracing::info!("settings reloaded; changed: {}", changed.join(", "));
    }
    if !needs_restart.is_empty() && (reason == Reason::Signal || needs_restart != *told) {
        tracing::warn!("restart to apply: {}", needs_restart.join(", "));
    } else if changed.is_empty() && reason == Reason::Signal {
        tracing::info!("settings not changed; objects, keys and certificates are reloaded when their files change");
    }
    *told = needs_restart;
}
