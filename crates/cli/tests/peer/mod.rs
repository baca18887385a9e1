//! Both ends of a gateway: a service that answers when it is told to, and a client.

#![allow(dead_code, unreachable_pub, reason = "no test needs all of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::child::PATIENCE;

/// A service on a port of this machine. It answers at once, except on `/slow`.
pub struct Upstream {
    pub address: SocketAddr,
    /// One message for each request to `/slow` that has arrived.
    arrived: Receiver<()>,
    /// One message lets one such request go.
    release: Sender<()>,
}

// === impl Upstream ===

impl Upstream {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (arrival, arrived) = channel();
        let (release, released) = channel();
        let released = Arc::new(Mutex::new(released));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (arrival, released) = (arrival.clone(), Arc::clone(&released));
                thread::spawn(move || serve(&stream, &arrival, &released));
            }
        });
        Self { address, arrived, release }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until a request to `/slow` has arrived.
    pub fn slow_request(&self) {
        self.arrived.recv_timeout(PATIENCE).unwrap();
    }

    /// Answers one request to `/slow`.
    pub fn let_go(&self) {
        self.release.send(()).unwrap();
    }
}

fn serve(stream: &TcpStream, arrival: &Sender<()>, released: &Mutex<Receiver<()>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    while let Some(request) = lines.next() {
        lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        if path == "/slow" {
            // The test that waits for it says what went wrong.
            let _ = arrival.send(());
            let _ = released.lock().unwrap().recv_timeout(PATIENCE);
        }
        let body = format!("upstream saw {path}\n");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        if (&*stream).write_all((head + &body).as_bytes()).is_err() {
            break;
        }
    }
}

/// Sends a request on a connection of its own, whose response may never come.
pub fn send(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    stream
}

/// Asks for a path on a connection of its own: the status, and all after the head.
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    get_on(&TcpStream::connect(address).unwrap(), path)
}

/// The same on a connection that is there, which is closed afterwards.
pub fn get_on(mut stream: &TcpStream, path: &str) -> (u16, String) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = stream.peer_addr().unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    (status.unwrap_or_else(|| panic!("no status in {answer:?}")), body)
}

/// Whether a response with this status is there to be read.
pub fn has_status(stream: &TcpStream, status: u16) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut head = [0; 12];
    matches!(stream.peek(&mut head), Ok(12)) && head.ends_with(status.to_string().as_bytes())
}
