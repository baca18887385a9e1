//! Tries the files of the container image without a container: in a root of their own that is read-only, as the user of the
//! image. An image for another architecture runs on QEMU.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::file_tree::FileTree;
use super::image::{BINARY, USER};
use crate::run::CommandLine;

/// From the start of the process until it is ready.
const READY_MS_MAX: u128 = 100;
/// The fastest start counts: others are slow because of what else the machine does.
const STARTS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(20);
/// A name that only the image's own `/etc/hosts` knows.
const UPSTREAM: &str = "upstream.test";
const HELLO: &str = "hello from upstream";
/// The first argument is the root, the others are the command in it.
const IN_READ_ONLY_ROOT: &str =
    "mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\" && exec chroot --userspec=";

/// The path of the emulator in the root of an image for another architecture.
const EMULATOR: &str = "qemu";

/// A root directory on disk that commands are run in.
struct Root<'a> {
    folder: &'a Path,
    is_emulated: bool,
}

/// A gateway, which is killed if nobody has stopped it.
struct Gateway(Child);

/// Whether images can be tried.
pub(crate) fn is_possible() -> Result<bool> {
    Ok(CommandLine::new("id").args(["-u"]).read()? == b"0\n")
}

/// How long the image takes until it is ready.
pub(crate) fn time_to_ready(image: &FileTree, folder: &Path) -> Result<Duration> {
    let root = Root::new(image, None, folder)?;
    let upstream = upstream()?;
    let mut fastest = Duration::MAX;
    for _ in 0..STARTS {
        fastest = fastest.min(root.serve(upstream)?);
    }
    root.has_certificate_authorities(upstream)?;
    ensure!(fastest.as_millis() <= READY_MS_MAX, "the image is ready after {fastest:?}; {READY_MS_MAX} ms is the bar");
    Ok(fastest)
}

/// Tries the image with this emulator of its architecture. How long it takes says nothing.
pub(crate) fn emulate(image: &FileTree, emulator: Vec<u8>, folder: &Path) -> Result<()> {
    let root = Root::new(image, Some(emulator), folder)?;
    let upstream = upstream()?;
    root.serve(upstream)?;
    root.has_certificate_authorities(upstream)
}

/// A service on this machine that says hello.
fn upstream() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let response =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{HELLO}", HELLO.len());
            // A client that has gone away notices nothing.
            let _ = stream.write_all(response.as_bytes());
        }
    });
    Ok(address)
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// The whole response to a request, or nothing while nobody listens.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    Some(response)
}

fn is_ok(response: Option<String>) -> bool {
    response.is_some_and(|response| response.starts_with("HTTP/1.1 200 "))
}

// === impl Root ===

impl<'a> Root<'a> {
    /// Writes the image to a folder, and the emulator if it needs one.
    fn new(image: &FileTree, emulator: Option<Vec<u8>>, folder: &'a Path) -> Result<Self> {
        let mut files = image.clone();
        files.file("etc/hosts", 0o644, format!("127.0.0.1 localhost\n127.0.0.1 {UPSTREAM}\n"));
        // A package runs where this file names modules that are not part of the binary. It must not look at it.
        files.file("etc/nsswitch.conf", 0o644, "hosts: absent\n");
        let is_emulated = emulator.is_some();
        if let Some(emulator) = emulator {
            files.file(EMULATOR, 0o755, emulator);
        }
        files.write_to(folder)?;
        Ok(Self { folder, is_emulated })
    }

    /// The image's binary, in the root.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        let script = format!("{IN_READ_ONLY_ROOT}{USER}:{USER} \"$@\"");
        command.args(["--mount", "sh", "-c", &script, "sh"]).arg(self.folder);
        if self.is_emulated {
            command.arg(format!("/{EMULATOR}"));
        }
        command.arg(format!("/{BINARY}")).args(arguments);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null());
        command
    }

    fn output(&self, arguments: &[&str]) -> Result<Output> {
        self.command(arguments).output().context("cannot run a command in the root of the image")
    }

    /// Starts a gateway, sends a request through it, and stops it. How long the gateway took to get ready.
    fn serve(&self, upstream: SocketAddr) -> Result<Duration> {
        let (listen, admin) = (free_address()?, free_address()?);
        let url = format!("http://{UPSTREAM}:{}", upstream.port());
        let (listen_flag, admin_flag) = (format!("--listen={listen}"), format!("--admin-listen={admin}"));
        let mut command = self.command(&["serve", "--upstream", &url, &listen_flag, &admin_flag]);
        let start = Instant::now();
        let mut gateway = Gateway(command.spawn().context("cannot start the image")?);
        while !is_ok(get(admin, "/readyz")) {
            if let Some(status) = gateway.0.try_wait()? {
                bail!("the gateway ended ({status})");
            }
            ensure!(start.elapsed() < PATIENCE, "the gateway is not ready after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(1));
        }
        let ready = start.elapsed();
        let response = get(listen, "/").unwrap_or_default();
        ensure!(response.ends_with(HELLO), "the gateway does not reach {UPSTREAM}: {response}");
        let health = self.output(&["health", &format!("http://{admin}")])?;
        ensure!(health.status.success(), "health check: {}", String::from_utf8_lossy(&health.stderr));
        gateway.stop()?;
        Ok(ready)
    }

    /// With them, it gets as far as the handshake, of which the service understands nothing.
    fn has_certificate_authorities(&self, upstream: SocketAddr) -> Result<()> {
        let output = self.output(&["health", &format!("https://{upstream}")])?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains("no TLS") && !said.contains("certificate authorities"), "TLS: {said}");
        Ok(())
    }
}

// === impl Gateway ===

impl Gateway {
    fn stop(&mut self) -> Result<()> {
        // By the shell, since a small system has no program `kill`.
        CommandLine::new("sh").args(["-c", &format!("kill -TERM {}", self.0.id())]).read()?;
        let status = self.0.wait()?;
        ensure!(status.success(), "the gateway did not stop in good order ({status})");
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The process has ended already if all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
