//! Many connections that have sent one request each and then wait: a process of its own, for it needs many open files.

use std::io::{self, BufRead, BufReader, Error, Read};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::contestant::TENANT_HEADER;
use crate::role::Role;
use crate::upstream::BODY;

/// It says so when all are connected.
const READY: &str = "ready";

/// More addresses than one, so that ports do not get scarce.
const ADDRESSES: usize = 8;

/// A crowd at an address. It goes away when this is dropped.
#[derive(Debug)]
pub(crate) struct Crowd(Child);

// === impl Crowd ===

impl Crowd {
    /// Returns when every connection has had its answer.
    pub(crate) fn gather(target: SocketAddr, connections: usize) -> io::Result<Self> {
        let mut command = Role::Crowd.command()?;
        command.arg(target.to_string()).arg(connections.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut crowd = Self(command.spawn()?);
        let mut line = String::new();
        if let Some(output) = crowd.0.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        if line.trim() == READY { Ok(crowd) } else { Err(Error::other(line.trim().to_owned())) }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What the process does: it connects, and stays until its input ends.
pub(crate) fn run() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or_else(|| Error::other("a crowd needs an address and a number"));
    let target: SocketAddr = next()?.parse().map_err(Error::other)?;
    let connections: usize = next()?.parse().map_err(Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut waiting = Vec::with_capacity(connections);
    runtime.block_on(async {
        for index in 0..connections {
            let stream = ask_once(target, index).await;
            waiting.push(stream.map_err(|error| Error::other(format!("connection {index}: {error}")))?);
        }
        io::Result::Ok(())
    })?;
    println!("{READY}");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// A connection on which one request has been answered.
pub(crate) async fn ask_once(target: SocketAddr, index: usize) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let last = u8::try_from(2 + index % ADDRESSES).map_err(Error::other)?;
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    let mut stream = socket.connect(target).await?;
    let request = format!("GET / HTTP/1.1\r\nHost: {target}\r\n{TENANT_HEADER}: polite\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::with_capacity(1024);
    while !answer.ends_with(BODY.as_bytes()) {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(Error::other("it was closed before its answer was complete"));
        }
    }
    Ok(stream)
}
