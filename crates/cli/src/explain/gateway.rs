//! Asks a gateway for explanations.

use std::net::IpAddr;

use anyhow::{Context, Result, bail};
use evenkeel::explain::Explanation;
use evenkeel_gateway::observe::admin::TOKEN_VARIABLE;
use http::StatusCode;

use super::question::Question;
use crate::percent_encoding;
use crate::remote::Server;

/// An explanation has a line for each flow schema.
const ADMIN_PATH: &str = "/debug/explain";

/// A gateway's explanation of a request from this address.
pub(super) async fn explanation(gateway: &Server, question: &Question, from: IpAddr) -> Result<Explanation> {
    let url = gateway.url();
    let user = question.user();
    let mut query = format!("?method={}&url={}", question.method, encoded(&question.target.to_string()));
    query += &format!("&user={}", encoded(&user.name));
    for group in &user.groups {
        query += &format!("&group={}", encoded(group));
    }
    for (name, value) in &question.all_headers() {
        query += &format!("&header={}", encoded(&format!("{name}:{}", String::from_utf8_lossy(value.as_bytes()))));
    }
    query += &format!("&address={}", question.address.unwrap_or(from));
    let (status, body) = gateway.get(&format!("{ADMIN_PATH}{query}")).await?;
    match status {
        StatusCode::OK => {
            serde_json::from_slice(&body).with_context(|| format!("the response of {url} is not that of a gateway"))
        }
        StatusCode::UNAUTHORIZED => {
            bail!("{url} needs a token or rejects this one (401); set --token-file or the variable {TOKEN_VARIABLE}")
        }
        StatusCode::NOT_FOUND => bail!(
            "{url} has no {ADMIN_PATH}; name the admin endpoint of a gateway (`admin.address`, by default http://127.0.0.1:9901)"
        ),
        _ => bail!("{url}: {}", String::from_utf8_lossy(&body).trim_end()),
    }
}

/// A value of the query.
fn encoded(value: &str) -> String {
    percent_encoding::encoded(value, b"/")
}
