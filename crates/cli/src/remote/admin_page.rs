//! Pages of a gateway's admin endpoint, for tools.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use evenkeel_gateway::observe::admin::TOKEN_VARIABLE;
use http::StatusCode;
use serde::de::DeserializeOwned;

use super::Server;

/// Reads a page. Every status but 200 is an error.
pub(crate) async fn page(gateway: &Server, path: &str) -> Result<Bytes> {
    let (status, body) = gateway.get(path).await?;
    accepted(gateway, status, body)
}

/// Reads a page of JSON that every gateway has: a server without it is another one. `query` begins with `?`, or is empty.
pub(crate) async fn json_page<T: DeserializeOwned>(gateway: &Server, path: &str, query: &str) -> Result<T> {
    let (status, body) = gateway.get(&format!("{path}{query}")).await?;
    if status == StatusCode::NOT_FOUND {
        bail!(
            "{} has no {path}; name the admin endpoint of a gateway (`admin.address`, by default http://127.0.0.1:9901)",
            gateway.url()
        );
    }
    parsed(gateway, &accepted(gateway, status, body)?)
}

/// The content of a page of JSON.
pub(crate) fn parsed<T: DeserializeOwned>(gateway: &Server, page: &[u8]) -> Result<T> {
    serde_json::from_slice(page).with_context(|| format!("the response of {} is not that of a gateway", gateway.url()))
}

fn accepted(gateway: &Server, status: StatusCode, body: Bytes) -> Result<Bytes> {
    let url = gateway.url();
    match status {
        StatusCode::OK => Ok(body),
        StatusCode::UNAUTHORIZED => {
            bail!("{url} needs a token or rejects this one (401); set --token-file or the variable {TOKEN_VARIABLE}")
        }
        _ => bail!("{url}: {}", String::from_utf8_lossy(&body).trim_end()),
    }
}
