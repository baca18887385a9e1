//! Identifies the senders of requests: [`evenkeel_identity`] with the gateway's HTTP client, which fetches the keys of issuers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderMap, Uri};

use crate::config::{IdentityConfig, UpstreamTls};
use crate::net::fetch::{FetchLimits, Fetcher};

pub use evenkeel_identity::{
    ClientCertificate, Denial, Denied, Identification, IdentityCounts, IdentityError, KeyResponse, KeyServer, Peer,
    PeerIdentity, Transport,
};

/// A server of keys that the gateway's client asks.
#[derive(Debug)]
struct FetchedKeyServer {
    target: String,
    fetcher: Fetcher,
}

/// A key set is a few kilobytes.
const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(10), bytes: 1 << 20 };

/// Sets the sources up, see [`Identification::open`]. Keys at URLs are fetched.
pub fn open(config: &IdentityConfig, counts: &IdentityCounts) -> Result<Arc<Identification>, IdentityError> {
    Identification::open_with(config, counts, &|url, ca| Ok(Box::new(FetchedKeyServer::new(url, ca)?)))
}

// === impl FetchedKeyServer ===

impl FetchedKeyServer {
    fn new(url: &Uri, ca: Option<&Path>) -> Result<Self, String> {
        let tls = UpstreamTls { ca: ca.map(Into::into), ..UpstreamTls::default() };
        let fetcher = Fetcher::new(url, &tls, "", LIMITS).map_err(|error| error.to_string())?;
        Ok(Self { target: url.path_and_query().map_or("/", PathAndQuery::as_str).to_owned(), fetcher })
    }
}

impl KeyServer for FetchedKeyServer {
    fn get(&self, headers: HeaderMap) -> KeyResponse<'_> {
        Box::pin(self.fetcher.get(&self.target, headers))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// What comes of a server that responds like this.
    async fn fetched(response: String) -> Result<u16, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys?a=1", listener.local_addr().unwrap()).parse().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::with_capacity(4096);
            stream.read_buf(&mut head).await.unwrap();
            let _ = stream.write_all(response.as_bytes()).await;
            String::from_utf8(head).unwrap()
        });
        let key_server = FetchedKeyServer::new(&url, None).unwrap();
        let response = key_server.get(HeaderMap::new()).await;
        assert!(server.await.unwrap().starts_with("GET /keys?a=1 HTTP/1.1\r\n"));
        response.map(|response| response.status().as_u16())
    }

    #[tokio::test]
    async fn only_whole_responses_of_a_limited_length_are_fetched() {
        let whole = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
        for (response, status) in [(whole("200 OK"), 200), (whole("500 Oops"), 500), (whole("302 Found"), 302)] {
            assert_eq!(fetched(response).await, Ok(status));
        }
        for wrong in [
            "no HTTP".to_owned(),
            String::new(),
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", " ".repeat((1 << 20) + 1)),
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_owned(),
        ] {
            let shown = wrong[..wrong.len().min(80)].to_owned();
            assert!(fetched(wrong).await.is_err(), "{shown}");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap()).parse().unwrap();
        drop(listener);
        let error = FetchedKeyServer::new(&url, None).unwrap().get(HeaderMap::new()).await.unwrap_err();
        assert!(error.starts_with("no connection: "), "{error}");
    }
}
