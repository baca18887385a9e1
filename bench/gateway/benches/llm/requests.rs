//! Requests a second beside `LiteLLM`'s proxy, in front of a server that responds at once.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{Process, free_address, median};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::event_source::EventSource;
use crate::runtime;
use crate::server::{Server, folder};

const CONNECTIONS: usize = 16;
const WARM_UP: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(5);
const ROUNDS: usize = 3;
/// It reads much Python before it listens.
const LITELLM_START_MAX: Duration = Duration::from_secs(180);

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let source = EventSource::start(false)?;
    let upstream = source.process.address;
    let gateway = Server::gateway(upstream, "")?;
    let litellm = litellm(upstream)?;
    let runtime = runtime()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(runtime.block_on(per_second(gateway.address())));
        if let Some((process, _)) = &litellm {
            theirs.push(runtime.block_on(per_second(process.address)));
        }
    }
    let ours = median(ours);
    let Some(_) = litellm else {
        println!("LiteLLM is left out: it is not installed; `cargo xtask bench llm` tries to");
        bars.add("llm requests a second, evenkeel", ours, "", Bar::None);
        return Ok(());
    };
    let theirs = median(theirs);
    bars.add("llm requests a second, LiteLLM's proxy", theirs, "", Bar::None);
    bars.add("llm requests a second, evenkeel", ours, "", Bar::TimesAtLeast(20.0, theirs));
    Ok(())
}

/// The proxy of `LiteLLM` with two workers, if it is installed.
fn litellm(upstream: SocketAddr) -> io::Result<Option<(Process, TempDir)>> {
    let program: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-peers").join("bin/litellm");
    if !program.exists() {
        return Ok(None);
    }
    let (folder, address) = (folder()?, free_address()?);
    let file = folder.path().join("litellm.yaml");
    let parameters = format!("{{model: openai/m, api_base: 'http://{upstream}/v1', api_key: none}}");
    fs::write(&file, format!("model_list: [{{model_name: m, litellm_params: {parameters}}}]\n"))?;
    let mut command = Command::new(program);
    command.arg("--config").arg(file).args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
    command
        .args(["--num_workers", "2", "--telemetry", "False"])
        .env("LITELLM_LOG", "ERROR")
        // Nobody is authenticated by the gateway either, and it listens on loopback.
        .env("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY", "true")
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    let process = Process::start_within(&mut command, address, folder.path(), LITELLM_START_MAX)?;
    Ok(Some((process, folder)))
}

/// Responses with status 200 a second.
async fn per_second(target: SocketAddr) -> f64 {
    let served = Arc::<AtomicU64>::default();
    let mut clients = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let served = Arc::clone(&served);
        clients.spawn(async move {
            loop {
                // A connection that ends is replaced.
                if ask(target, &served).await.is_err() {
                    sleep(Duration::from_millis(20)).await;
                }
            }
        });
    }
    sleep(WARM_UP).await;
    let (start, before) = (Instant::now(), served.load(Ordering::Relaxed));
    sleep(WINDOW).await;
    let rate = (served.load(Ordering::Relaxed) - before) as f64 / start.elapsed().as_secs_f64();
    clients.shutdown().await;
    rate
}

async fn ask(target: SocketAddr, served: &AtomicU64) -> io::Result<()> {
    let mut stream = TcpStream::connect(target).await?;
    stream.set_nodelay(true)?;
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":1}"#;
    let length = body.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {target}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut read = Vec::with_capacity(8192);
    loop {
        stream.write_all(request.as_bytes()).await?;
        read.clear();
        while !is_complete(&read) {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        }
        served.fetch_add(u64::from(read.starts_with(b"HTTP/1.1 200 ")), Ordering::Relaxed);
    }
}

/// Whether this is a whole response.
fn is_complete(read: &[u8]) -> bool {
    let Some(head) = read.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
    match text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok()) {
        Some(length) => read.len() >= head + 4 + length,
        None => read.ends_with(b"0\r\n\r\n"),
    }
}
