//! Sends requests of a tenant over as many connections as it takes, and writes down what came of them.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::contestant::TENANT_HEADER;

/// Longer than this nobody waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A tenant and where its requests go.
#[derive(Debug)]
pub(crate) struct Load {
    target: SocketAddr,
    tenant: HeaderValue,
    /// Connections without a request: every request takes one, and brings it back.
    idle: Mutex<Vec<SendRequest<Empty<Bytes>>>>,
    /// When requests have been served.
    served: Mutex<Vec<Instant>>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Served,
    TurnedAway,
}

// === impl Load ===

impl Load {
    pub(crate) fn new(target: SocketAddr, tenant: &'static str) -> Self {
        Self { target, tenant: HeaderValue::from_static(tenant), idle: Mutex::default(), served: Mutex::default() }
    }

    /// How many requests were served in this time.
    pub(crate) fn served(&self, from: Instant, until: Instant) -> usize {
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.iter().filter(|&&at| from <= at && at < until).count()
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&self) -> Ending {
        match timeout(PATIENCE, self.exchange()).await {
            Ok(Ok(StatusCode::OK)) => {
                self.served.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
                Ending::Served
            }
            _ => Ending::TurnedAway,
        }
    }

    async fn exchange(&self) -> io::Result<StatusCode> {
        let mut connection = match self.idle_connection() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await.map_err(Error::other)?;
        let mut request = Request::new(Empty::new());
        let host = HeaderValue::from_str(&self.target.to_string()).map_err(Error::other)?;
        request.headers_mut().insert(http::header::HOST, host);
        request.headers_mut().insert(TENANT_HEADER, self.tenant.clone());
        let response = connection.send_request(request).await.map_err(Error::other)?;
        let status = response.status();
        response.into_body().collect().await.map_err(Error::other)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(status)
    }

    /// One that the other side has not closed.
    fn idle_connection(&self) -> Option<SendRequest<Empty<Bytes>>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|connection| !connection.is_closed())
    }

    async fn connect(&self) -> io::Result<SendRequest<Empty<Bytes>>> {
        let stream = TcpStream::connect(self.target).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Error::other)?;
        // It ends with its sender; what breaks it is seen by the request.
        drop(tokio::spawn(connection));
        Ok(sender)
    }
}
