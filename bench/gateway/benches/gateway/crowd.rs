//! Many connections that have sent one request each and then wait: a process of its own, for it needs many open files.

use std::io::{self, BufRead, BufReader, Error, Read};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::certificate::{self, Certificate};
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
    /// Returns when every connection has had its response. With a certificate, the connections are those of TLS.
    pub(crate) fn gather(target: SocketAddr, tls: Option<&Certificate>, connections: usize) -> io::Result<Self> {
        let mut command = Role::Crowd.command()?;
        command.arg(target.to_string()).arg(connections.to_string()).args(tls.map(|files| &files.chain));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
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
    let tls = next().ok().map(|file| connector(&file)).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut waiting = Vec::with_capacity(connections);
    runtime.block_on(async {
        for index in 0..connections {
            let stream = match &tls {
                None => ask_once(target, index).await.map(Idle::Plain),
                Some(connector) => ask_once_over_tls(connector, target, index).await,
            };
            waiting.push(stream.map_err(|error| Error::other(format!("connection {index}: {error}")))?);
        }
        io::Result::Ok(())
    })?;
    println!("{READY}");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// A connection that waits.
#[expect(dead_code, reason = "they are only kept open")]
enum Idle {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

/// Trusts the certificate in this file, and nothing else.
fn connector(file: &str) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file).map_err(Error::other)?).map_err(Error::other)?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A connection on which one request has had its response.
pub(crate) async fn ask_once(target: SocketAddr, index: usize) -> io::Result<TcpStream> {
    let mut stream = connect(target, index).await?;
    ask(&mut stream, target).await?;
    Ok(stream)
}

async fn ask_once_over_tls(connector: &TlsConnector, target: SocketAddr, index: usize) -> io::Result<Idle> {
    let name = ServerName::try_from(certificate::NAME).map_err(Error::other)?;
    let mut stream = connector.connect(name, connect(target, index).await?).await?;
    ask(&mut stream, target).await?;
    Ok(Idle::Tls(Box::new(stream)))
}

async fn connect(target: SocketAddr, index: usize) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let last = u8::try_from(2 + index % ADDRESSES).map_err(Error::other)?;
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    // A handshake of TLS is several small messages, which would wait for each other's acknowledgements.
    socket.set_nodelay(true)?;
    socket.connect(target).await
}

async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), target: SocketAddr) -> io::Result<()> {
    let request = format!("GET / HTTP/1.1\r\nHost: {target}\r\n{TENANT_HEADER}: polite\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = Vec::with_capacity(1024);
    while !response.ends_with(BODY.as_bytes()) {
        if stream.read_buf(&mut response).await? == 0 {
            return Err(Error::other("it was closed before its response was complete"));
        }
    }
    Ok(())
}
