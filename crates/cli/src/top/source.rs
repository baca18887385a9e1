//! Where frames come from: a gateway's stream, or the metrics and dumps of a kube-apiserver. Both are asked again when
//! they go away.

use std::time::Duration;

use evenkeel_gateway::FetchLimits;
use evenkeel_gateway::observe::frame::{Frame, PastLevel};
use http::StatusCode;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::kube::{self, Kube};
use super::queues::{self, Queue};
use super::stream;
use crate::remote::{Link, Server};

/// A report of a source.
#[derive(Debug)]
pub(super) enum Update {
    /// The past of a level, before the first frame.
    Past(PastLevel),
    /// The next frame.
    Frame(Box<Frame>),
    /// The queues in use, or why they are not known.
    Queues(Result<Vec<Queue>, String>),
    /// Something that is not shown, and why.
    Notice(String),
    /// The server does not respond; it is asked again after a while.
    Lost { why: String, retry_in: Duration },
}

/// Which kind of server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    Gateway,
    Kube { interval: Duration, dumps: kube::DumpUse },
}

/// The data that is shown besides frames, and has to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wanted {
    pub(super) queues: bool,
}

/// A server that is asked for frames.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) server: Server,
    /// API servers of the same cluster, whose frames are added to those of the first.
    pub(super) others: Vec<Server>,
    pub(super) kind: ServerKind,
}

/// The sender of updates. A slow screen holds the source up, and misses frames.
pub(super) type Updates = mpsc::Sender<Update>;

/// The reader of the updates is gone.
#[derive(Debug)]
pub(super) struct Gone;

/// The limits of responses that have an end. A large cluster has some ten megabytes of metrics.
pub(super) const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(15), bytes: 64 << 20 };
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(8);
/// A connection that lasted for so long is made again at once, without a notice.
const LASTING: Duration = Duration::from_secs(20);
const QUEUES_EVERY: Duration = Duration::from_secs(1);

// === impl Wanted ===

impl Wanted {
    /// Changes to what is wanted now, and says whether that is something else.
    pub(super) fn replace(wanted: &mut Self, now: Self) -> bool {
        std::mem::replace(wanted, now) != now
    }
}

// === impl Source ===

impl Source {
    /// The URL of the server, and how many others there are.
    pub(super) fn name(&self) -> String {
        let url = self.server.url();
        match self.others.len() {
            0 => url.to_owned(),
            1 => format!("{url} and another"),
            others => format!("{url} and {others} others"),
        }
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(&self.server).chain(&self.others)
    }

    /// Reports until the reader is gone.
    pub(super) async fn run(self, updates: Updates, mut wanted: watch::Receiver<Wanted>) {
        tokio::select! {
            Gone = self.frames(&updates) => {}
            Gone = self.queues(&updates, &mut wanted) => {}
        }
    }

    async fn frames(&self, updates: &Updates) -> Gone {
        let mut kube = Kube::default();
        let mut retry_in = RETRY_MIN;
        loop {
            let began = Instant::now();
            let Err(why) = (match self.kind {
                ServerKind::Gateway => stream::follow(&self.server, updates).await,
                ServerKind::Kube { interval, dumps } => {
                    let servers: Vec<_> = self.servers().collect();
                    kube.follow(&servers, interval, dumps, updates).await
                }
            }) else {
                return Gone;
            };
            // A connection that lasted was a good one, and servers end streams now and then.
            if began.elapsed() > LASTING {
                retry_in = RETRY_MIN;
                continue;
            }
            if updates.send(Update::Lost { why, retry_in }).await.is_err() {
                return Gone;
            }
            sleep(retry_in).await;
            retry_in = (retry_in * 2).min(RETRY_MAX);
        }
    }

    async fn queues(&self, updates: &Updates, wanted: &mut watch::Receiver<Wanted>) -> Gone {
        let every = match self.kind {
            ServerKind::Gateway => QUEUES_EVERY,
            ServerKind::Kube { interval, .. } => interval,
        };
        let mut links = Vec::new();
        loop {
            if wanted.wait_for(|wanted| wanted.queues).await.is_err() {
                return Gone;
            }
            let due = Instant::now() + every;
            let queues = self.ask_queues(&mut links).await;
            if updates.send(Update::Queues(queues)).await.is_err() {
                return Gone;
            }
            sleep_until(due).await;
        }
    }

    async fn ask_queues<'a>(&'a self, links: &mut Vec<Link<'a>>) -> Result<Vec<Queue>, String> {
        if links.is_empty() {
            for server in self.servers() {
                links.push(server.connect().await?);
            }
        }
        let mut queues = Vec::new();
        for link in links {
            let response = link.get(queues::PATH, "text/plain").await?;
            check(response.status(), queues::PATH)?;
            queues.push(queues::read(&String::from_utf8_lossy(response.body())));
        }
        Ok(queues::sum(queues))
    }
}

/// The error for a status that is not 200.
pub(super) fn check(status: StatusCode, path: &str) -> Result<(), String> {
    match status {
        StatusCode::OK => Ok(()),
        StatusCode::UNAUTHORIZED => Err(format!(
            "{path} needs a token, or rejects this one (401); set --token-file, or --context for a user of your kubeconfig"
        )),
        StatusCode::FORBIDDEN => {
            let advice = "grant the user `get` on this nonResourceURL (deploy/cluster-reader.yaml), or set --context or --token-file for another";
            Err(format!("{path} is forbidden (403); {advice}"))
        }
        StatusCode::NOT_FOUND => Err(format!("{path} does not exist (404); check the URL of the server")),
        status => Err(format!("{path} responds with status {status}")),
    }
}
