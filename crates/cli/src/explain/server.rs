//! Asks other servers: an API server for its objects, and a gateway for explanations.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use evenkeel::{Explanation, Objects};
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_api::{GROUP, Kind, Preset, Version};
use evenkeel_gateway::config::UpstreamTls;
use evenkeel_gateway::{FetchLimits, Fetcher};
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use tempfile::NamedTempFile;

use super::kubeconfig::{Access, Pem};
use super::question::Question;

/// All objects of a cluster are some hundred kilobytes.
const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), bytes: 64 << 20 };
/// An explanation has a line for each flow schema.
const ADMIN_PATH: &str = "/debug/explain";

/// A connection to a server, and the files that exist for as long as it does.
struct Server {
    url: String,
    path: String,
    fetcher: Fetcher,
    headers: HeaderMap,
    _files: Vec<NamedTempFile>,
}

/// The objects of an API server.
pub(super) async fn objects(access: &Access, preset: Preset) -> Result<Objects> {
    let server = Server::new(access)?;
    let mut objects = Vec::new();
    for kind in [Kind::PriorityLevelConfiguration, Kind::FlowSchema] {
        objects.extend(server.list(kind, preset).await?);
    }
    Ok(objects.into_iter().collect())
}

/// What a gateway says of a request.
pub(super) async fn explanation(url: &str, question: &Question, preset: Preset) -> Result<Explanation> {
    let server = Server::new(&Access { server: url.to_owned(), ..Access::default() })?;
    let user = question.user(preset);
    let mut query = format!("?method={}&url={}", question.method, encoded(&question.target.to_string()));
    query += &format!("&user={}", encoded(&user.name));
    for group in &user.groups {
        query += &format!("&group={}", encoded(group));
    }
    let (status, body) = server.get(&format!("{ADMIN_PATH}{query}")).await?;
    match status {
        StatusCode::OK => {
            serde_json::from_slice(&body).with_context(|| format!("{url} does not respond like a gateway"))
        }
        StatusCode::NOT_FOUND => bail!(
            "{url} has no {ADMIN_PATH}; name the admin endpoint of a gateway (`admin.address`, by default http://127.0.0.1:9901)"
        ),
        _ => bail!("{url}: {}", String::from_utf8_lossy(&body).trim_end()),
    }
}

// === impl Server ===

impl Server {
    fn new(access: &Access) -> Result<Self> {
        let url = access.server.trim_end_matches('/').to_owned();
        let uri: Uri = url.parse().with_context(|| format!("{url:?} is not a URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            bail!("{url:?} is not a URL; it must begin with http:// or https://");
        }
        let mut files = Vec::new();
        let mut path = |pem: &Option<Pem>| -> Result<_> {
            Ok(match pem {
                None => None,
                Some(Pem::File(path)) => Some(path.clone()),
                Some(Pem::Text(text)) => {
                    // Only its owner may read such a file.
                    let mut file = NamedTempFile::new().context("cannot write a temporary file")?;
                    file.write_all(text).context("cannot write a temporary file")?;
                    let path = file.path().to_owned();
                    files.push(file);
                    Some(path)
                }
            })
        };
        let tls = UpstreamTls {
            ca: path(&access.ca)?,
            certificate: path(&access.certificate)?,
            key: path(&access.key)?,
            server_name: access.server_name.clone(),
        };
        let fetcher = Fetcher::new(&uri, &tls, LIMITS).with_context(|| format!("cannot connect to {url}"))?;
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        if let Some(token) = &access.token {
            let mut value =
                HeaderValue::try_from(format!("Bearer {token}")).context("the token has invalid characters")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { url, path, fetcher, headers, _files: files })
    }

    async fn get(&self, target: &str) -> Result<(StatusCode, bytes::Bytes)> {
        let response = self.fetcher.get(&format!("{}{target}", self.path), self.headers.clone()).await;
        let response = response.map_err(|error| anyhow!("cannot ask {}: {error}", self.url))?;
        Ok((response.status(), response.into_body()))
    }

    /// All objects of a kind, in the newest version that the server has.
    async fn list(&self, kind: Kind, preset: Preset) -> Result<Vec<evenkeel_api::AnyObject>> {
        for version in Version::ALL {
            let target = format!("/apis/{GROUP}/{version}/{}", kind.resource());
            let (status, body) = self.get(&target).await?;
            match status {
                StatusCode::OK => {
                    let name = format!("{}{target}", self.url);
                    let read = Manifest::read_for(preset, &name, &body, Strictness::Lenient)?;
                    return Ok(read.entries.into_iter().map(|entry| entry.object).collect());
                }
                // An older server.
                StatusCode::NOT_FOUND => {}
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    bail!(
                        "{} does not allow to list {} ({status}); use a token or a certificate that may",
                        self.url,
                        kind.resource()
                    )
                }
                _ => bail!("cannot list {} of {}: the response has status {status}", kind.resource(), self.url),
            }
        }
        bail!("{} has no {GROUP}; is it the address of an API server?", self.url)
    }
}

/// A value in percent-encoding.
fn encoded(value: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    value.bytes().map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
