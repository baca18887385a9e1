//! Restarts without a gap: a new process takes the place of the old one, or systemd keeps the socket.

use crate::child::{PATIENCE, Running, address_after, address_apart, evenkeel, run, text};
use crate::peer::{self, get};

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A service whose `/events` sends an event every few milliseconds, until the test ends the oldest such stream.
struct Service {
    address: SocketAddr,
    end_stream: std::sync::mpsc::Sender<()>,
}

/// Clients that send requests one after the other, each on a connection of its own, and what came of them.
struct Load {
    is_over: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    failures: Receiver<String>,
}

/// A client that reads events.
struct Events(BufReader<TcpStream>);

// === impl Service ===

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (end_stream, ended) = channel();
        let ended = Arc::new(Mutex::new(ended));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ended = Arc::clone(&ended);
                thread::spawn(move || serve(stream, &ended));
            }
        });
        Self { address, end_stream }
    }
}

fn serve(mut stream: TcpStream, ended: &Mutex<Receiver<()>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    while let Some(request) = lines.next() {
        lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
        let answer = if request.starts_with("GET /events ") {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            while ended.lock().unwrap().try_recv().is_err() {
                if stream.write_all(b"9\r\ndata: x\n\n\r\n").is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
            "0\r\n\r\n"
        } else {
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved"
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

// === impl Load ===

impl Load {
    fn start(gateway: SocketAddr, clients: usize) -> Self {
        let (is_over, served) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (failed, failures) = channel();
        for _ in 0..clients {
            let (is_over, served, failed) = (Arc::clone(&is_over), Arc::clone(&served), failed.clone());
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    match ask(gateway) {
                        Ok(()) => served.fetch_add(1, Ordering::Relaxed),
                        Err(failure) => return failed.send(failure).unwrap(),
                    };
                }
            });
        }
        Self { is_over, served, failures }
    }

    fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }

    /// Waits until so many more requests have been served.
    fn goes_on(&self, count: usize) {
        let (target, until) = (self.served() + count, Instant::now() + PATIENCE);
        while self.served() < target {
            self.no_failure();
            assert!(Instant::now() < until, "requests are not served");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn no_failure(&self) {
        if let Ok(failure) = self.failures.try_recv() {
            panic!("after {} requests: {failure}", self.served());
        }
    }

    /// Ends the load; how many requests were served, none of which failed.
    fn end(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let Self { served, failures, .. } = self;
        if let Some(failure) = failures.iter().next() {
            panic!("{failure}");
        }
        served.load(Ordering::Relaxed)
    }
}

/// A request on a connection of its own.
fn ask(gateway: SocketAddr) -> Result<(), String> {
    let mut stream = TcpStream::connect(gateway).map_err(|error| format!("cannot connect: {error}"))?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).map_err(|error| format!("cannot send: {error}"))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|error| format!("cannot read: {error}"))?;
    if answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("served") { Ok(()) } else { Err(answer) }
}

// === impl Events ===

impl Events {
    fn open(gateway: SocketAddr) -> Self {
        let stream = peer::send(gateway, "/events");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut events = Self(BufReader::new(stream));
        events.next();
        events
    }

    /// Waits for the next event.
    fn next(&mut self) {
        self.line(|line| line == "data: x\n");
    }

    /// Reads to the end, which must come in good order.
    fn end(mut self) {
        self.line(|line| line == "0\r\n");
    }

    fn line(&mut self, is_wanted: impl Fn(&str) -> bool) {
        let mut line = String::new();
        while !is_wanted(&line) {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream was cut");
        }
    }
}

/// Starts a gateway that takes the place of the one before.
fn take_over(gateway: &str, service: &Service, socket: &Path) -> Running {
    let upstream = format!("http://{}", service.address);
    let admin = gateway.rsplit_once(':').unwrap().0.to_owned() + ":9901";
    let mut command =
        evenkeel(&["serve", "--listen", gateway, "--admin-listen", &admin, "--upstream", &upstream, "--takeover"]);
    command.arg("--takeover-socket").arg(socket);
    let mut running = Running::spawn(&mut command);
    running.line_with("ready: ");
    running
}

/// Under load, and with a stream that stays open over each restart, no connection is refused and nothing is cut.
fn restart(times: usize) {
    let (folder, service) = (tempfile::tempdir().unwrap(), Service::start());
    let socket = folder.path().join("takeover.sock");
    let gateway = format!("{}:8080", address_apart());
    let address = gateway.parse().unwrap();
    let mut current = take_over(&gateway, &service, &socket);
    let load = Load::start(address, 4);
    for _ in 0..times {
        load.goes_on(20);
        let mut events = Events::open(address);
        let mut before = std::mem::replace(&mut current, take_over(&gateway, &service, &socket));
        before.line_with("another process takes over");
        events.next();
        load.goes_on(20);
        service.end_stream.send(()).unwrap();
        events.end();
        let (status, _) = before.end();
        assert!(status.success(), "{status} {}", before.rest());
    }
    assert!(load.end() > 40 * times);
    current.signal("TERM");
    assert!(current.end().0.success());
    assert!(!socket.exists());
}

#[test]
fn no_connection_is_refused_in_fifty_restarts() {
    restart(50);
}

#[test]
fn a_process_that_cannot_start_leaves_the_running_one_alone() {
    let (folder, service) = (tempfile::tempdir().unwrap(), Service::start());
    let socket = folder.path().join("takeover.sock");
    let gateway = format!("{}:8080", address_apart());
    let mut running = take_over(&gateway, &service, &socket);
    let wrong = folder.path().join("wrong.yaml").display().to_string();
    std::fs::write(&wrong, "kind: FlowSchema").unwrap();
    let upstream = format!("http://{}", service.address);
    let name = socket.display().to_string();
    let arguments = [
        "serve",
        "--listen",
        &gateway,
        "--upstream",
        &upstream,
        "--takeover",
        "--takeover-socket",
        &name,
        "--objects",
        &wrong,
    ];
    let output = run(&arguments);
    assert!(!output.status.success(), "{}", text(&output.stderr));
    running.line_with("a takeover failed; this gateway goes on");
    ask(gateway.parse().unwrap()).unwrap();
    // Without the flag, the address and the socket are in use.
    let output = run(&["serve", "--listen", &gateway, "--admin-listen", "none", "--upstream", &upstream]);
    assert!(text(&output.stderr).contains("is another program using it?"), "{}", text(&output.stderr));
    let apart = format!("{}:0", address_apart());
    let output = run(&[
        "serve",
        "--listen",
        &apart,
        "--admin-listen",
        "none",
        "--upstream",
        &upstream,
        "--takeover-socket",
        &name,
    ]);
    assert!(text(&output.stderr).contains("take over from it with `--takeover`"), "{}", text(&output.stderr));
}

#[test]
fn a_takeover_needs_a_socket_and_a_gateway() {
    let output = run(&["serve", "--upstream", "http://127.0.0.1:9", "--takeover"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("set `takeoverSocket` in the settings"), "{}", text(&output.stderr));
    let output = run(&["serve", "--api-only", "--takeover", "--takeover-socket", "/t", "--data-dir", "d"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there is no gateway with --api-only"), "{}", text(&output.stderr));
}

/// The store of the API is open in one process. The new one begins with the last copy of the objects, and opens the store when the old
/// one has closed it, which does not wait for its last request.
#[test]
fn the_store_of_the_api_is_taken_over_too() {
    let (folder, service) = (tempfile::tempdir().unwrap(), Service::start());
    let (socket, data) = (folder.path().join("takeover.sock"), folder.path().join("data"));
    let host = address_apart();
    let (gateway, api) = (format!("{host}:8080"), format!("{host}:6443"));
    let address = gateway.parse().unwrap();
    let upstream = format!("http://{}", service.address);
    let start = || {
        let arguments =
            ["serve", "--listen", &gateway, "--admin-listen", "none", "--upstream", &upstream, "--takeover"];
        let mut command = evenkeel(&arguments);
        command.arg("--takeover-socket").arg(&socket).arg("--data-dir").arg(&data).args(["--api-listen", &api]);
        let mut running = Running::spawn(&mut command);
        running.line_with("ready: ");
        running
    };
    let mut current = start();
    current.output_until("API ready on");
    let load = Load::start(address, 2);
    for _ in 0..3 {
        load.goes_on(10);
        let mut events = Events::open(address);
        let mut before = std::mem::replace(&mut current, start());
        before.line_with("another process takes over");
        // The old process still has a request.
        events.next();
        current.output_until("API ready on");
        TcpStream::connect(&api).unwrap();
        events.next();
        service.end_stream.send(()).unwrap();
        events.end();
        let (status, _) = before.end();
        assert!(status.success(), "{status} {}", before.rest());
    }
    load.end();
    current.signal("TERM");
    assert!(current.end().0.success());
}

/// A command that gets this listener as systemd would pass it.
fn activated(listener: &TcpListener, arguments: &[&str]) -> Command {
    let program = evenkeel(&[]).get_program().to_owned();
    let descriptor = listener.as_raw_fd();
    let script = format!("exec 3<&{descriptor} && LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\"");
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).arg(program).args(arguments).env_remove("RUST_LOG").env("NO_COLOR", "1");
    command
}

/// A listener whose descriptor children inherit.
fn inheritable(address: SocketAddr) -> TcpListener {
    let listener = TcpListener::bind(address).unwrap();
    rustix::io::fcntl_setfd(&listener, rustix::io::FdFlags::empty()).unwrap();
    listener
}

#[test]
fn connections_wait_in_the_socket_of_systemd_while_the_gateway_restarts() {
    let service = Service::start();
    let listener = inheritable(SocketAddr::from((address_apart(), 8080)));
    let address = listener.local_addr().unwrap();
    let (listen, upstream) = (address.to_string(), format!("http://{}", service.address));
    let arguments = ["serve", "--listen", &listen, "--admin-listen", "none", "--upstream", &upstream];
    let load = Load::start(address, 4);
    for _ in 0..3 {
        let mut gateway = Running::spawn(&mut activated(&listener, &arguments));
        let line = gateway.line_with("ready: ");
        assert_eq!(address_after(&line, "listening on "), address);
        load.goes_on(20);
        gateway.signal("TERM");
        let (status, _) = gateway.end();
        assert!(status.success(), "{status} {}", gateway.rest());
    }
    let mut gateway = Running::spawn(&mut activated(&listener, &arguments));
    gateway.line_with("ready: ");
    load.goes_on(20);
    load.end();
}

#[test]
fn a_socket_of_systemd_that_the_settings_do_not_name_is_an_error() {
    let listener = inheritable(SocketAddr::from((address_apart(), 0)));
    let address = listener.local_addr().unwrap();
    let apart = format!("{}:0", address_apart());
    let arguments = ["serve", "--listen", &apart, "--admin-listen", "none", "--upstream", "http://127.0.0.1:9"];
    let mut gateway = Running::spawn(&mut activated(&listener, &arguments));
    let (status, _) = gateway.end();
    assert_eq!(status.code(), Some(2));
    let said = gateway.rest();
    assert!(said.contains(&format!("systemd passed a socket that listens on {address}")), "{said}");
}

#[test]
fn the_admin_endpoint_is_taken_over_too() {
    let (folder, service) = (tempfile::tempdir().unwrap(), Service::start());
    let socket = folder.path().join("takeover.sock");
    let gateway = format!("{}:8080", address_apart());
    let admin: SocketAddr = gateway.replace(":8080", ":9901").parse().unwrap();
    let mut before = take_over(&gateway, &service, &socket);
    let events = Events::open(gateway.parse().unwrap());
    let _current = take_over(&gateway, &service, &socket);
    before.line_with("another process takes over");
    for _ in 0..10 {
        assert_eq!(get(admin, "/readyz").0, 200, "only the new process is asked");
    }
    service.end_stream.send(()).unwrap();
    events.end();
    assert!(before.end().0.success());
}
