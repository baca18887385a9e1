//! A hundred thousand requests, of which every other one is aborted at a random point: no seat is left behind.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::free_address;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Asked, Asking, counting};
use crate::contestant::{TENANT_HEADER, Task};

const REQUESTS: usize = 100_000;
const SEATS: usize = 20;
const LANES: usize = 128;
/// How long the service works on a request.
const WORK: Duration = Duration::from_millis(1);
/// A client leaves at most so long after it has sent its request: before, while and after it waits and runs.
const ABORT_MAX: Duration = Duration::from_millis(25);
/// Nothing takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn bars(bars: &mut Bars) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let admin = free_address()?;
    let (service, inside) = runtime.block_on(counting::start(WORK))?;
    let asking = Asking::start(Task::Protect { slots: SEATS }, service, Asked::Evenkeel { admin: Some(admin) })?;
    let target = asking.envoy.address;
    let (failed, left_over) = runtime.block_on(async {
        let lanes: JoinSet<usize> = (0..LANES).map(|lane| send(lane, target)).collect();
        let failed = lanes.join_all().await.iter().sum::<usize>();
        (failed, settled(admin).await)
    });
    bars.add(
        format!("{REQUESTS} requests, half of them aborted: seats taken and requests waiting in the end"),
        left_over,
        "",
        Bar::AtMost(0.0, ""),
    );
    bars.add(
        "the same: requests without a good response whose clients stayed",
        failed as f64,
        "",
        Bar::AtMost(0.0, ""),
    );
    let most = inside.take_most();
    bars.add("the same: at the service at a time, of clients that stayed", most, "", Bar::AtMost(SEATS as f64, ""));
    Ok(())
}

/// The requests of one lane, of which every other client leaves. Returns how many of the others got no good response.
async fn send(lane: usize, target: SocketAddr) -> usize {
    let mut random = fastrand::Rng::with_seed(lane as u64);
    let mut failed = 0;
    for number in 0..REQUESTS / LANES + usize::from(lane < REQUESTS % LANES) {
        let leaves = number % 2 == 0;
        let path = if leaves { "/leave" } else { counting::STAY };
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: x\r\n{TENANT_HEADER}: lane-{lane}\r\nConnection: close\r\n\r\n");
        let asked = async {
            let mut stream = TcpStream::connect(target).await?;
            stream.write_all(request.as_bytes()).await?;
            if leaves {
                sleep(ABORT_MAX.mul_f64(random.f64())).await;
                // With this, closing resets the connection.
                stream.set_zero_linger()?;
                return io::Result::Ok(true);
            }
            let mut response = String::new();
            stream.read_to_string(&mut response).await?;
            Ok(response.starts_with("HTTP/1.1 200 "))
        };
        failed += usize::from(!matches!(timeout(PATIENCE, asked).await, Ok(Ok(true))));
    }
    failed
}

/// The seats that are taken and the requests that wait, when nothing moves any more.
async fn settled(admin: SocketAddr) -> f64 {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = left_over(admin).await.unwrap_or(f64::NAN);
        if left == 0.0 || Instant::now() > until {
            return left;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

async fn left_over(admin: SocketAddr) -> io::Result<f64> {
    let mut stream = TcpStream::connect(admin).await?;
    stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    let names = ["apiserver_flowcontrol_current_executing_seats{", "apiserver_flowcontrol_current_inqueue_requests{"];
    let lines = page.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}
