//! Asks other servers: an API server for its objects, and a gateway for explanations.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use evenkeel::explain::Explanation;
use evenkeel::objects::Objects;
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_api::{GROUP, Kind, Preset, Version};
use evenkeel_gateway::FetchLimits;
use evenkeel_gateway::observe::admin::TOKEN_VARIABLE;
use http::StatusCode;

use super::question::Question;
use crate::percent_encoding;
use crate::remote::{Access, Server};

/// All objects of a cluster are some hundred kilobytes.
pub(super) const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), bytes: 64 << 20 };
/// An explanation has a line for each flow schema.
const ADMIN_PATH: &str = "/debug/explain";

/// The objects of an API server.
pub(super) async fn objects(access: &Access, preset: Preset) -> Result<Objects> {
    let server = Server::new(access, LIMITS)?;
    let mut objects = Vec::new();
    for kind in [Kind::PriorityLevelConfiguration, Kind::FlowSchema] {
        objects.extend(list(&server, kind, preset).await?);
    }
    Ok(objects.into_iter().collect())
}

/// What a gateway says of a request.
pub(super) async fn explanation(gateway: &Server, question: &Question) -> Result<Explanation> {
    let url = gateway.url();
    let user = question.user();
    let mut query = format!("?method={}&url={}", question.method, encoded(&question.target.to_string()));
    query += &format!("&user={}", encoded(&user.name));
    for group in &user.groups {
        query += &format!("&group={}", encoded(group));
    }
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

/// All objects of a kind, in the newest version that the server has.
async fn list(server: &Server, kind: Kind, preset: Preset) -> Result<Vec<evenkeel_api::AnyObject>> {
    for version in Version::ALL {
        let target = format!("/apis/{GROUP}/{version}/{}", kind.resource());
        let (status, body) = server.get(&target).await?;
        match status {
            StatusCode::OK => {
                let name = format!("{}{target}", server.url());
                let read = Manifest::read_for(preset, &name, &body, Strictness::Lenient)?;
                return Ok(read.entries.into_iter().map(|entry| entry.object).collect());
            }
            // An older server.
            StatusCode::NOT_FOUND => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                bail!(
                    "{} does not allow listing {} ({status}); use a token or certificate with that permission",
                    server.url(),
                    kind.resource()
                )
            }
            _ => bail!("cannot list {} of {}: the response has status {status}", kind.resource(), server.url()),
        }
    }
    bail!("{} has no {GROUP}; is it the address of an API server?", server.url())
}

/// A value of the query.
fn encoded(value: &str) -> String {
    percent_encoding::encoded(value, b"/")
}
