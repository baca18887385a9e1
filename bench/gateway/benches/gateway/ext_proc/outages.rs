//! Evenkeel is killed and started again under load, in both failure modes of Envoy: what becomes of requests is what the documentation says, and nothing hangs.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{Process, free_address};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::counting::{self, Inside};
use super::folder;
use crate::contestant::{TENANT_HEADER, Task};
use crate::envoy::{self, Filter};
use crate::evenkeel;

const SEATS: usize = 20;
/// Clients, each of which sends its next request when it has the response to the last one.
const CLIENTS: usize = 64;
const WORK: Duration = Duration::from_millis(10);
/// A client that gets an error waits so long.
const BACK_OFF: Duration = Duration::from_millis(20);
/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);
const OUTAGES: usize = 3;
/// Evenkeel is there for so long, and then it is away for so long.
const THERE: Duration = Duration::from_secs(2);
const AWAY: Duration = Duration::from_secs(1);
/// After a change, for so long nothing is said of which requests came before it.
const SETTLING: Duration = Duration::from_millis(200);

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
struct Ended {
    sent: Instant,
    at: Instant,
    /// None if the connection broke, or nothing came within the patience.
    status: Option<u16>,
}

/// A time in which Evenkeel was there, or away, and how many requests were at the service in it.
#[derive(Debug, Clone, Copy)]
struct Phase {
    is_there: bool,
    from: Instant,
    until: Instant,
    inside_most: f64,
}

pub(super) fn bars(bars: &mut Bars) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for allow in [false, true] {
        let (ended, phases) = runtime.block_on(outages(allow))?;
        report(bars, allow, &ended, &phases);
    }
    Ok(())
}

async fn outages(failure_mode_allow: bool) -> io::Result<(Vec<Ended>, Vec<Phase>)> {
    let (gateway, folders) = (free_address()?, [folder()?, folder()?]);
    let (service, inside) = counting::start(WORK).await?;
    let start = || start_gateway(gateway, folders[0].path());
    let mut process = start()?;
    let filter = Filter::ExtProc { gateway, failure_mode_allow };
    let envoy = envoy::start(Task::PassOn, &filter, None, service, folders[1].path())?;
    let target = envoy.address;
    let until = Instant::now() + (THERE + AWAY) * u32::try_from(OUTAGES).unwrap_or(u32::MAX) + THERE;
    let clients: JoinSet<Vec<Ended>> = (0..CLIENTS).map(|number| client(number, target, until)).collect();
    let mut phases = vec![phase(true, THERE, &inside).await];
    for _ in 0..OUTAGES {
        process.kill()?;
        phases.push(phase(false, AWAY, &inside).await);
        // It takes some milliseconds, for which the clients wait too.
        process = tokio::task::block_in_place(start)?;
        phases.push(phase(true, THERE, &inside).await);
    }
    let ended = clients.join_all().await.concat();
    drop((process, envoy));
    Ok((ended, phases))
}

fn start_gateway(address: SocketAddr, folder: &Path) -> io::Result<Process> {
    evenkeel::start_for_envoy(Task::Protect { slots: SEATS }, address, None, folder)
}

/// Lets some time pass.
async fn phase(is_there: bool, length: Duration, inside: &Arc<Inside>) -> Phase {
    sleep(SETTLING).await;
    let from = Instant::now();
    inside.take_most();
    sleep(length.saturating_sub(SETTLING)).await;
    Phase { is_there, from, until: Instant::now(), inside_most: inside.take_most() }
}

async fn client(number: usize, target: SocketAddr, until: Instant) -> Vec<Ended> {
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: x\r\n{TENANT_HEADER}: client-{number}\r\nConnection: close\r\n\r\n",
        counting::STAY
    );
    let mut all = Vec::new();
    while Instant::now() < until {
        let sent = Instant::now();
        let asked = async {
            let mut stream = TcpStream::connect(target).await?;
            stream.write_all(request.as_bytes()).await?;
            let mut response = String::new();
            stream.read_to_string(&mut response).await?;
            io::Result::Ok(response)
        };
        let response = timeout(PATIENCE, asked).await.ok().and_then(Result::ok);
        let status = response.and_then(|text| text.get("HTTP/1.1 ".len()..)?.get(..3)?.parse().ok());
        all.push(Ended { sent, at: Instant::now(), status });
        if status != Some(200) {
            sleep(BACK_OFF).await;
        }
    }
    all
}

fn report(bars: &mut Bars, allow: bool, ended: &[Ended], phases: &[Phase]) {
    let mode = format!("failure_mode_allow: {allow}, killed {OUTAGES} times");
    let count = |wanted: &dyn Fn(&Ended) -> bool| ended.iter().filter(|request| wanted(request)).count() as f64;
    let within = |request: &Ended, is_there: bool| {
        phases.iter().any(|phase| phase.is_there == is_there && phase.from <= request.sent && request.at <= phase.until)
    };
    let expected: &[u16] = if allow { &[200] } else { &[200, 500] };
    let unexpected = count(&|request| !request.status.is_some_and(|status| expected.contains(&status)));
    let responses = if allow { "200" } else { "200 or 500" };
    bars.add(format!("{mode}: requests"), ended.len() as f64, "", Bar::None);
    bars.add(format!("{mode}: requests without a response of {responses}"), unexpected, "", Bar::AtMost(0.0, ""));
    let longest = ended.iter().map(|request| (request.at - request.sent).as_secs_f64()).fold(0.0, f64::max);
    bars.add(format!("{mode}: the longest request"), longest * 1e3, "ms", Bar::AtMost(1000.0, "ms"));
    let away = count(&|request| within(request, false));
    let (wrong, name) = if allow { (500, "500 instead of 200") } else { (200, "200 instead of 500") };
    let wrong = count(&|request| within(request, false) && request.status == Some(wrong));
    bars.add(format!("{mode}: requests while Evenkeel is away"), away, "", Bar::None);
    bars.add(format!("{mode}: of those, {name}"), wrong, "", Bar::AtMost(0.0, ""));
    let failed = count(&|request| within(request, true) && request.status != Some(200));
    bars.add(format!("{mode}: requests not served while Evenkeel is there"), failed, "", Bar::AtMost(0.0, ""));
    let most = |is_there: bool| {
        let of_phase = phases.iter().filter(|phase| phase.is_there == is_there);
        of_phase.map(|phase| phase.inside_most).fold(0.0, f64::max)
    };
    let bar = Bar::AtMost(SEATS as f64, "");
    bars.add(format!("{mode}: at the service at a time, Evenkeel there ({SEATS} seats)"), most(true), "", bar);
    let bar = if allow { Bar::None } else { Bar::AtMost(0.0, "") };
    bars.add(format!("{mode}: at the service at a time, Evenkeel away"), most(false), "", bar);
}
