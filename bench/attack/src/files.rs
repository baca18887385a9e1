//! FIFOs in the place of files: nothing waits for their other ends.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use evenkeel_bars::Bar;
use evenkeel_process::free_address;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::Stage;
use crate::http1::{Reader, connect};
use crate::server::{SETTINGS, Server, program};
use crate::upstream::Upstream;

/// For the gateway to see the FIFO.
const NOTICED: Duration = Duration::from_secs(1);
/// Nothing is waited for longer.
const WAIT_MAX: Duration = Duration::from_secs(20);
const SECONDS_MAX: Bar = Bar::AtMost(5.0, "s");

/// As access log and as settings, when the gateway starts, reloads and ends.
pub(crate) fn fifos(stage: &mut Stage, attack: &str) -> Result<()> {
    let upstream = "upstreams: [{url: 'http://127.0.0.1:9'}]\n";
    let access_log = starting(|folder| {
        make_fifo(&folder.join("access.log"))?;
        Ok(fs::write(folder.join(SETTINGS), format!("{upstream}log: {{access: json, accessFile: access.log}}\n"))?)
    })?;
    stage.bars.add(format!("{attack}: start with an access log that nobody reads"), access_log, "s", SECONDS_MAX);
    let settings = starting(|folder| make_fifo(&folder.join(SETTINGS)))?;
    stage.bars.add(format!("{attack}: start with settings that nobody writes"), settings, "s", SECONDS_MAX);

    let (gateway, reload) = stage.runtime.block_on(async {
        let upstream = Upstream::start()?;
        let gateway = Server::gateway(upstream.address)?;
        let settings = gateway.folder.path().join(SETTINGS);
        let text = fs::read_to_string(&settings)?;
        replace_by_fifo(&settings)?;
        sleep(NOTICED).await;
        let next = gateway.folder.path().join("next.yaml");
        fs::write(&next, format!("{text}limits: {{bodyBytes: 1}}\n"))?;
        fs::rename(next, &settings)?;
        let start = Instant::now();
        let mut client = Reader::new(connect(Ipv4Addr::LOCALHOST, gateway.address()).await?);
        while client.exchange("POST /busy/1 HTTP/1.1\r\nHost: shop\r\nContent-Length: 2\r\n\r\nab").await?.is_success()
        {
            ensure!(start.elapsed() < WAIT_MAX, "the settings after a FIFO never take effect");
            sleep(NOTICED / 20).await;
        }
        let reload = start.elapsed().as_secs_f64();
        replace_by_fifo(&settings)?;
        sleep(NOTICED).await;
        anyhow::Ok((gateway, reload))
    })?;
    stage.bars.add(format!("{attack}: reload after a FIFO"), reload, "s", SECONDS_MAX);
    let start = Instant::now();
    gateway.end(&mut stage.endings)?;
    stage.bars.add(format!("{attack}: end while there is one"), start.elapsed().as_secs_f64(), "s", SECONDS_MAX);
    Ok(())
}

/// Starts a gateway; how many seconds it takes until it listens, or has ended with an error.
fn starting(prepare: impl FnOnce(&Path) -> Result<()>) -> Result<f64> {
    let folder = TempDir::new()?;
    prepare(folder.path())?;
    let address = free_address()?;
    let mut command = Command::new(program()?);
    command.args(["serve", "--admin-listen", "none", "--listen", &address.to_string(), "--config"]);
    command.arg(folder.path().join(SETTINGS)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().context("cannot start the server")?;
    let start = Instant::now();
    while child.try_wait()?.is_none() && TcpStream::connect(address).is_err() && start.elapsed() < WAIT_MAX {
        std::thread::sleep(NOTICED / 50);
    }
    let seconds = start.elapsed().as_secs_f64();
    child.kill()?;
    child.wait()?;
    Ok(seconds)
}

fn replace_by_fifo(path: &Path) -> Result<()> {
    fs::remove_file(path)?;
    make_fifo(path)
}

fn make_fifo(path: &Path) -> Result<()> {
    let made = Command::new("mkfifo").arg(path).status().context("cannot run `mkfifo`")?;
    ensure!(made.success(), "cannot make a FIFO at {}", path.display());
    Ok(())
}
