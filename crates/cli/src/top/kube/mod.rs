//! A kube-apiserver: its metrics and debug dumps, read again and again, as frames.

mod attribution;
mod dump;
mod exposition;
mod frames;
mod histogram;
mod scrape;

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep_until};

use super::source::{Update, Updates, check};
use crate::remote::{Link, Server};
use frames::{Dumps, Frames, Moment};
use scrape::Scrape;

/// Whether dumps are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DumpUse {
    #[default]
    Read,
    Leave,
}

/// The state of reading a server.
#[derive(Debug)]
pub(super) struct Kube {
    frames: Frames,
    /// When this was made, by both clocks: time must not go backwards.
    began: (Instant, SystemTime),
}

const METRICS: &str = "/metrics";
const LEVELS: &str = "/debug/api_priority_and_fairness/dump_priority_levels";
const REQUESTS: &str = "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1";
const TEXT: &str = "text/plain;version=0.0.4";

// === impl Kube ===

impl Kube {
    /// Reports a frame after each interval until the server does not respond, and why. `Ok` if nobody wants frames any more.
    pub(super) async fn follow(
        &mut self,
        servers: &[&Server],
        interval: Duration,
        dumps: DumpUse,
        updates: &Updates,
    ) -> Result<(), String> {
        // One connection for all requests: behind a load balancer, it stays with one server.
        let mut links = Vec::new();
        for server in servers {
            links.push(server.connect().await?);
        }
        let mut dumps = dumps;
        if dumps == DumpUse::Leave
            && updates.send(Update::Notice("the dumps are not read (--no-dumps)".to_owned())).await.is_err()
        {
            return Ok(());
        }
        loop {
            let due = Instant::now() + interval;
            let mut scrape = Scrape::default();
            for link in &mut links {
                scrape.add(read_metrics(link).await?);
            }
            let time_ms = self.now_ms();
            let read = match dumps {
                DumpUse::Leave => None,
                DumpUse::Read => match read_all_dumps(&mut links).await? {
                    Ok(read) => Some(read),
                    Err(notice) => {
                        dumps = DumpUse::Leave;
                        if updates.send(Update::Notice(notice)).await.is_err() {
                            return Ok(());
                        }
                        None
                    }
                },
            };
            let frame = self.frames.next(Moment { time_ms, scrape, dumps: read });
            if updates.send(Update::Frame(Box::new(frame))).await.is_err() {
                return Ok(());
            }
            sleep_until(due).await;
        }
    }

    fn now_ms(&self) -> u64 {
        let (instant, time) = self.began;
        let now = time + instant.elapsed();
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Default for Kube {
    fn default() -> Self {
        Self { frames: Frames::default(), began: (Instant::now(), SystemTime::now()) }
    }
}

async fn read_metrics(link: &mut Link<'_>) -> Result<Scrape, String> {
    let response = link.get(METRICS, TEXT).await?;
    check(response.status(), METRICS)?;
    let mut scrape = Scrape::default();
    for line in response.body().split(|byte| *byte == b'\n') {
        scrape.line(&String::from_utf8_lossy(line));
    }
    if scrape.is_empty() {
        return Err(format!(
            "{METRICS} has no metrics of flow control; is it a kube-apiserver, and is API Priority and Fairness on?"
        ));
    }
    Ok(scrape)
}

/// Reads the dumps of all servers; the inner error says why one of them has none.
async fn read_all_dumps(links: &mut [Link<'_>]) -> Result<Result<Dumps, String>, String> {
    let mut all = Dumps::default();
    for link in links {
        match read_dumps(link).await? {
            Ok(read) => {
                all.quiescing.extend(read.quiescing);
                all.requests.extend(read.requests);
            }
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(all))
}

/// Reads the dumps; the inner error says why they are not there.
///
/// A kube-apiserver holds a lock while it writes a dump (KW-6): each is read to its end before anything else is done.
async fn read_dumps(link: &mut Link<'_>) -> Result<Result<Dumps, String>, String> {
    let levels = link.get(LEVELS, TEXT).await?;
    let requests = link.get(REQUESTS, TEXT).await?;
    for (path, response) in [(LEVELS, &levels), (REQUESTS, &requests)] {
        if let Err(why) = check(response.status(), path) {
            return Ok(Err(why));
        }
    }
    Ok(Ok(Dumps::read(&String::from_utf8_lossy(levels.body()), &String::from_utf8_lossy(requests.body()))))
}

/// A recorded response of a real kube-apiserver.
#[cfg(test)]
pub(super) fn recorded(name: &str) -> String {
    use std::io::Read;
    let path = evenkeel_recorded::golden().join(format!("replay/{name}.txt.gz"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// The recorded server a second after it had counted a fortieth less of everything.
#[cfg(test)]
pub(super) fn recorded_frame() -> evenkeel_gateway::observe::frame::Frame {
    let metrics = recorded("metrics");
    let is_counter = |name: &str| ["_total", "_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end));
    let earlier = |line: &str| match line.rsplit_once(' ') {
        Some((series, value)) if !line.starts_with('#') && is_counter(series.split('{').next().unwrap_or_default()) => {
            format!("{series} {}\n", (value.parse::<f64>().unwrap() * 0.975).round())
        }
        _ => format!("{line}\n"),
    };
    let earlier: String = metrics.lines().map(earlier).collect();
    let moment = |time_ms, metrics: &str| {
        let mut scrape = Scrape::default();
        metrics.lines().for_each(|line| scrape.line(line));
        let dumps = Some(Dumps::read(&recorded("dump_priority_levels"), &recorded("dump_requests")));
        Moment { time_ms, scrape, dumps }
    };
    let mut frames = Frames::default();
    frames.next(moment(1_763_290_292_000, &earlier));
    frames.next(moment(1_763_290_293_000, &metrics))
}
