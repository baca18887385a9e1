//! Listening sockets of other processes: systemd's, and those of the gateway whose place this process takes.

use anyhow::Result;
use evenkeel_gateway::Config;
use evenkeel_gateway::sockets::{InheritedSockets, Predecessor};

use crate::api::ApiArgs;
use crate::exit::WrongUsage;

/// Whether to take the place of a gateway that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takeover {
    No,
    Asked,
}

/// The sockets that other processes leave to this one.
#[derive(Debug, Default)]
pub(super) struct Inheritance {
    pub(super) sockets: InheritedSockets,
    /// The gateway that stops accepting when this one has started.
    pub(super) predecessor: Option<Predecessor>,
}

// === impl Inheritance ===

impl Inheritance {
    /// Call it before there are threads.
    pub(super) fn open(config: &Config, takeover: Takeover, api: &ApiArgs) -> Result<Self> {
        let mut sockets = InheritedSockets::from_systemd()?;
        if takeover == Takeover::No {
            return Ok(Self { sockets, predecessor: None });
        }
        if api.api_only {
            let why = "--takeover: there is no gateway with --api-only whose place could be taken; restart the API";
            return Err(WrongUsage(why.to_owned()).into());
        }
        let Some(path) = &config.takeover_socket else {
            let why = "--takeover: there is no socket to find the other gateway at; set `takeoverSocket` in the settings, or \
                       `--takeover-socket`, for both of them";
            return Err(WrongUsage(why.to_owned()).into());
        };
        let Some((predecessor, taken)) = Predecessor::ask(path)? else {
            return Ok(Self { sockets, predecessor: None });
        };
        sockets.extend(taken);
        Ok(Self { sockets, predecessor: Some(predecessor) })
    }
}

/// Tells the gateway before this one that it is no longer needed.
pub(super) async fn release(predecessor: Option<Predecessor>) {
    let Some(predecessor) = predecessor else { return };
    match tokio::task::spawn_blocking(move || predecessor.release()).await {
        Ok(Ok(())) => tracing::info!("took over from the gateway that ran before; it finishes its requests"),
        Ok(Err(error)) => tracing::warn!("{error}"),
        Err(error) => tracing::warn!(%error, "the gateway that ran before was not told to stop"),
    }
}
