//! `GET /debug/explain`: where a request would go, and how long it would wait.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{RawQuery, State as Extract};
use axum::response::{IntoResponse, Response};
use evenkeel::identify::ClientAddress;
use evenkeel_engine::User;
use evenkeel_engine::digest::Query;
use evenkeel_identity::{AskedModel, Identification, Peer, Transport};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use tokio::sync::Semaphore;

use super::pages::AdminState;

pub(super) const PATH: &str = "/debug/explain";

/// The request that is asked about, as the query describes it.
#[derive(Debug, PartialEq)]
struct Question {
    method: Method,
    uri: Uri,
    user: User,
    headers: HeaderMap,
    /// The address that it comes from.
    address: IpAddr,
    /// The model that the body of the request names.
    model: Option<AskedModel>,
}

/// How many groups a user may have, and how many headers a request. More than this do not fit into a request head either.
const REPEATED_MAX: usize = 256;
const USAGE: &str = "use ?method=GET&url=/path&user=NAME&group=GROUP&header=NAME:VALUE&address=ADDRESS&model=NAME, with percent-encoded values; `group` \
                     and `header` may be repeated";

/// Explains one request at a time: the clauses of thousands of flow schemas take some milliseconds, and explanations are not
/// urgent.
static TURN: Semaphore = Semaphore::const_new(1);

pub(super) async fn explain(Extract(state): Extract<AdminState>, RawQuery(query): RawQuery) -> Response {
    let refused = |what: String| (StatusCode::BAD_REQUEST, format!("{what}; {USAGE}\n")).into_response();
    let question = match Question::read(Query::new(query.as_deref().unwrap_or_default())) {
        Ok(question) => question,
        Err(what) => return refused(what),
    };
    let _turn = TURN.acquire().await;
    let in_effect = state.admin().settings.get();
    let parts = question.parts(&in_effect.identification);
    let user = question.user;
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let flow = match in_effect.service_of(host, parts.uri.path()) {
        Some(service) => service.flow.clone(),
        None if in_effect.has_services() => {
            return refused("no service has the host and the path of the URL".to_owned());
        }
        None => state.admin().flow.clone(),
    };
    let rules = in_effect.rules;
    let explained = tokio::task::spawn_blocking(move || {
        rules.explain(&flow, &user, parts).map(|explanation| serde_json::to_vec_pretty(&explanation))
    });
    match explained.await {
        Ok(Ok(Ok(mut text))) => {
            text.push(b'\n');
            ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], text).into_response()
        }
        Ok(Err(error)) => refused(format!("the gateway would reject the request: {error}")),
        Ok(Ok(Err(_))) | Err(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "the explanation could not be written\n").into_response()
        }
    }
}

// === impl Question ===

impl Question {
    fn read(query: Query<'_>) -> Result<Self, String> {
        let (mut method, mut url, mut user, mut address, mut model) = (None, None, None, None, None);
        let (mut groups, mut headers) = (Vec::new(), HeaderMap::new());
        for (name, value) in query.pairs() {
            let slot = match &*name {
                "method" => &mut method,
                "url" => &mut url,
                "user" => &mut user,
                "address" => &mut address,
                "model" => &mut model,
                "group" if groups.len() < REPEATED_MAX => {
                    groups.push(value.into_owned());
                    continue;
                }
                "header" if headers.len() < REPEATED_MAX => {
                    let (name, value) = header(&value)?;
                    headers.append(name, value);
                    continue;
                }
                "group" | "header" => return Err(format!("there are more than {REPEATED_MAX} {name}s")),
                _ => return Err(format!("unknown parameter {name:?}")),
            };
            if slot.replace(value).is_some() {
                return Err(format!("the parameter {name:?} occurs twice"));
            }
        }
        let url: Cow<'_, str> = url.ok_or_else(|| "the parameter \"url\" is missing".to_owned())?;
        let uri = Uri::try_from(&*url).ok().filter(|uri| uri.path().starts_with('/'));
        let uri = uri.ok_or_else(|| format!("{url:?} is not a path or a URL"))?;
        let method = method.unwrap_or(Cow::Borrowed("GET"));
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| format!("{method:?} is not a method"))?;
        let address = address.as_deref().map(|text| text.parse().map_err(|_| format!("{text:?} is not an IP address")));
        let address = address.transpose()?.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let model = model.map(|name: Cow<'_, str>| AskedModel::new(&name));
        Ok(Self { method, uri, user: User::new(user.unwrap_or_default(), groups), headers, address, model })
    }

    /// The request as it would arrive. A trusted proxy says in its headers where it comes from.
    fn parts(&self, identification: &Arc<Identification>) -> Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.uri, parts.headers) = (self.method.clone(), self.uri.clone(), self.headers.clone());
        let host = self.uri.authority().map(Authority::as_str).and_then(|host| HeaderValue::from_str(host).ok());
        if let Some(host) = host
            && !parts.headers.contains_key(HOST)
        {
            parts.headers.insert(HOST, host);
        }
        let peer = Peer { address: SocketAddr::new(self.address, 0), transport: Transport::Plain, certificate: None };
        let address = identification.of(peer).client_address(&parts.headers);
        parts.extensions.insert(ClientAddress::from(address));
        if let Some(model) = &self.model {
            parts.extensions.insert(model.clone());
        }
        parts
    }
}

/// A header, as `NAME: VALUE`.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let read = text.split_once(':').and_then(|(name, value)| {
        Some((
            HeaderName::from_bytes(name.trim().as_bytes()).ok()?,
            HeaderValue::from_bytes(value.trim().as_bytes()).ok()?,
        ))
    });
    read.ok_or_else(|| format!("{text:?} is not a header; write it as `NAME: VALUE`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Question, String> {
        Question::read(Query::new(query))
    }

    #[test]
    fn questions_are_read_from_the_query() {
        let question = read("method=POST&url=%2Forders%3Fpage%3D2&user=alice&group=staff&group=dev").unwrap();
        assert_eq!((question.method, question.uri.to_string()), (Method::POST, "/orders?page=2".to_owned()));
        assert_eq!(question.user, User::new("alice", ["staff", "dev"]));
        let told = read("url=/&header=X-Plan%3A%20gold&header=x-plan:tin&address=10.0.0.7").unwrap();
        let plans: Vec<_> = told.headers.get_all("x-plan").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!((plans, told.address), (vec![&b"gold"[..], b"tin"], IpAddr::from([10, 0, 0, 7])));
        assert_eq!(read("url=/&model=org%2FBig").unwrap().model, Some(AskedModel::new("org/Big")));
        let least = read("url=https://shop.example/orders").unwrap();
        assert_eq!((least.method, least.uri.path(), least.user), (Method::GET, "/orders", User::default()));
        assert_eq!((least.headers.len(), least.address), (0, IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }

    #[test]
    fn faults_are_named() {
        let groups = "url=/&".to_owned() + &"group=g&".repeat(REPEATED_MAX + 1);
        let headers = "url=/&".to_owned() + &"header=a:b&".repeat(REPEATED_MAX + 1);
        for (query, what) in [
            ("", "the parameter \"url\" is missing"),
            ("url=/&url=/", "the parameter \"url\" occurs twice"),
            ("url=a b", "\"a b\" is not a path or a URL"),
            ("url=*", "\"*\" is not a path or a URL"),
            ("url=/&method=a b", "\"a b\" is not a method"),
            ("url=/&path=/", "unknown parameter \"path\""),
            ("url=/&header=x-plan", "\"x-plan\" is not a header; write it as `NAME: VALUE`"),
            ("url=/&header=a%20b:c", "\"a b:c\" is not a header; write it as `NAME: VALUE`"),
            ("url=/&address=localhost", "\"localhost\" is not an IP address"),
            ("url=/&address=::1&address=::1", "the parameter \"address\" occurs twice"),
            (&groups, "there are more than 256 groups"),
            (&headers, "there are more than 256 headers"),
        ] {
            assert_eq!(read(query).unwrap_err(), what);
        }
    }
}
