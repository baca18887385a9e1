//! The log says why requests fail: upstream, kind of failure and request ID, without a line for each request.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use crate::child::{PATIENCE, Running, address_after, address_apart};

/// A server that reads the head of each request, and then does something with the connection.
fn upstream(act: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                act(stream);
            });
        }
    });
    address
}

fn start(folder: &TempDir, upstream: SocketAddr) -> (Running, SocketAddr) {
    let settings = format!(
        "listen: [{{address: 127.0.0.1:0}}]\nadmin: {{address: null}}\nworkers: 1\n\
         upstreams: [{{url: 'http://{upstream}'}}]\ntimeouts: {{response: 200ms}}\n"
    );
    let path = folder.path().join("evenkeel.yaml");
    fs::write(&path, settings).unwrap();
    let mut gateway = Running::start(&["serve", "--config", path.to_str().unwrap()]);
    let address = address_after(&gateway.line_with("ready: "), "listening on ");
    (gateway, address)
}

/// Sends a request with this ID, and waits for the end of the response.
fn ask(address: SocketAddr, id: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: {id}\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn the_log_says_why_requests_fail() {
    let refused = SocketAddr::from((address_apart(), 9));
    let half = |mut stream: TcpStream| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").unwrap();
    let silent = |mut stream: TcpStream| drop(stream.read(&mut [0]));
    for (upstream, kind, status, error) in [
        (refused, "connect", "502", "Connection refused (os error 111)"),
        (upstream(drop), "cut", "502", "the upstream closed the connection before it responded"),
        (upstream(half), "cut", "200", "the upstream closed the connection in the middle of a response"),
        (upstream(silent), "timeout", "504", "the upstream did not respond in time"),
    ] {
        let folder = TempDir::new().unwrap();
        let (mut gateway, address) = start(&folder, upstream);
        let response = ask(address, "mine-1");
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{kind}: {response}");
        let line = gateway.line_with("an upstream failed");
        let fields = format!("upstream=\"{upstream}\" kind=\"{kind}\" request_id=\"mine-1\" error={error}");
        assert!(line.contains(" WARN ") && line.ends_with(&fields), "{line}\nhas not\n{fields}");
    }
}

#[test]
fn not_every_request_that_fails_has_a_line() {
    let folder = TempDir::new().unwrap();
    let (mut gateway, address) = start(&folder, upstream(drop));
    let began = Instant::now();
    for number in 0..30 {
        assert!(ask(address, &format!("mine-{number}")).starts_with("HTTP/1.1 502 "));
    }
    gateway.insist("TERM");
    let said = gateway.rest();
    let lines = said.lines().filter(|line| line.contains("an upstream failed")).count();
    // One in ten seconds.
    let most = 1 + usize::try_from(began.elapsed().as_secs() / 10).unwrap();
    assert!((1..=most).contains(&lines), "{lines} lines, and at most {most} are good:\n{said}");
}
