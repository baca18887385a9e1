//! `Question`: the request that is asked about.

use std::net::IpAddr;

use evenkeel::User;
use evenkeel_engine::implied_groups::ANONYMOUS;
use evenkeel_gateway::AskedModel;
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use evenkeel_apiserver::Verb;

/// A request, and who sends it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    pub(super) method: Method,
    pub(super) target: PathAndQuery,
    /// `None` if the user is not known.
    pub(super) user: Option<String>,
    pub(super) groups: Vec<String>,
    /// Whether the groups are all that the user has.
    pub(super) has_all_groups: bool,
    /// The headers, as far as they are known.
    pub(super) headers: HeaderMap,
    /// The host and the port of its URL, if it has them.
    pub(super) host: Option<Authority>,
    /// Where it came from, if it is known.
    pub(super) address: Option<IpAddr>,
    /// The language model that the body of the request names, if it is known.
    pub(super) model: Option<String>,
}

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

// === impl Question ===

impl Question {
    /// The request that the arguments `METHOD URL` or `URL` name. A word that is neither a path nor a URL is an error: it would
    /// be taken for a host, and the request for `/`.
    pub(super) fn named(method: Option<&str>, url: &str) -> Result<Self, String> {
        if method.is_none() && known_method(url).is_some() {
            return Err(format!("there is no path after {url}; write for example evenkeel explain {url} /orders"));
        }
        if !is_target(url) {
            return Err(format!("{url:?} is not a path; write it as /{url}"));
        }
        let method = method.map_or(Ok("GET"), |name| known_method(name).ok_or_else(|| unknown_method(name, url)));
        Self::new(method?, url, None, Vec::new())
    }

    /// A request with this method, to a URL or a path.
    pub(super) fn new(method: &str, url: &str, user: Option<String>, groups: Vec<String>) -> Result<Self, String> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| format!("{method:?} is not a method"))?;
        let without_fragment = url.split('#').next().unwrap_or_default();
        let is_path = without_fragment.starts_with('/');
        let uri = if is_path || without_fragment.contains("://") {
            without_fragment.parse::<Uri>()
        } else {
            // curl takes names without a scheme too.
            format!("http://{without_fragment}").parse()
        };
        let uri = uri.map_err(|error| format!("{url:?} is not a path or a URL: {error}"))?;
        let parts = uri.into_parts();
        let target = parts.path_and_query.unwrap_or(PathAndQuery::from_static("/"));
        let target = match target.path() {
            "" => format!("/{target}").parse().unwrap_or(PathAndQuery::from_static("/")),
            _ => target,
        };
        Ok(Self {
            method,
            target,
            user: user.filter(|user| !user.is_empty()),
            groups,
            has_all_groups: false,
            headers: HeaderMap::new(),
            host: parts.authority,
            address: None,
            model: None,
        })
    }

    /// The user with the groups that every server adds, unless all of them are known.
    pub(super) fn user(&self) -> User {
        let user = User::new(self.user.as_deref().unwrap_or(ANONYMOUS), self.groups.iter().map(String::as_str));
        if self.has_all_groups { user } else { user.with_implied_groups() }
    }

    /// The request as a gateway receives it.
    pub(super) fn parts(&self) -> Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.uri, parts.headers) =
            (self.method.clone(), Uri::from(self.target.clone()), self.all_headers());
        if let Some(model) = &self.model {
            parts.extensions.insert(AskedModel::new(model));
        }
        parts
    }

    /// The headers, with the host of the URL unless they have another one.
    pub(super) fn all_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        // A user before the host is for the client.
        let host = self.host.as_ref().and_then(|host| host.as_str().rsplit('@').next());
        if let Some(host) = host.and_then(|host| HeaderValue::from_str(host).ok())
            && !headers.contains_key(HOST)
        {
            headers.insert(HOST, host);
        }
        headers
    }
}

/// A header, as `NAME: VALUE`.
pub(super) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let read = text.split_once(':').and_then(|(name, value)| {
        Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, HeaderValue::from_str(value.trim()).ok()?))
    });
    read.ok_or_else(|| "write it as `NAME: VALUE`, for example `X-Plan: gold`".to_owned())
}

/// Whether a text is a path or a URL, and not the name of a resource.
pub(super) fn is_target(text: &str) -> bool {
    text.is_empty() || text.starts_with('/') || text.contains("://") || is_host_and_path(text)
}

/// The method of this name, in any case.
pub(super) fn known_method(name: &str) -> Option<&'static str> {
    METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(name))
}

fn unknown_method(name: &str, url: &str) -> String {
    let advice = match Verb::named(name) {
        Some(verb) => {
            format!("for a path, write {} {url}; for a resource, write for example {name} pods", verb.method())
        }
        None => format!(
            "use one of {}; for a method that your service adds, write `explain -- curl -X {name} {url}`",
            METHODS.join(", ")
        ),
    };
    format!("{name:?} is not an HTTP method; {advice}")
}

/// Whether a text is the host of a URL and a path, as `shop.example/orders` or `localhost:8080/orders`.
fn is_host_and_path(text: &str) -> bool {
    text.split_once('/').is_some_and(|(host, _)| host.contains(['.', ':']) || host == "localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_a_path_is_no_host() {
        let target =
            |method: Option<&str>, url: &str| Question::named(method, url).map(|asked| asked.target.to_string());
        for (url, path) in [
            ("/orders", "/orders"),
            ("/", "/"),
            ("https://shop.example", "/"),
            ("http://shop.example/orders?a=b", "/orders?a=b"),
            ("shop.example/orders", "/orders"),
            ("localhost:8080/orders", "/orders"),
            ("localhost/orders", "/orders"),
        ] {
            assert_eq!(target(None, url).as_deref(), Ok(path));
            assert_eq!(target(Some("POST"), url).as_deref(), Ok(path));
        }
        for url in ["orders", "orders/7", "orders.json", "gets"] {
            let fault = format!("\"{url}\" is not a path; write it as /{url}");
            assert_eq!(target(None, url), Err(fault.clone()));
            assert_eq!(target(Some("GET"), url), Err(fault));
        }
        for method in ["GET", "delete"] {
            let fault = format!("there is no path after {method}; write for example evenkeel explain {method} /orders");
            assert_eq!(target(None, method), Err(fault));
        }
        assert!(target(None, "").unwrap_err().starts_with("\"\" is not a path or a URL"));
    }

    #[test]
    fn methods_are_known_in_any_case_and_others_are_refused() {
        let asked = |method: &str| Question::named(Some(method), "/a").map(|asked| asked.method.to_string());
        assert_eq!([asked("get"), asked("Patch")], [Ok("GET".to_owned()), Ok("PATCH".to_owned())]);
        assert_eq!(
            asked("list").unwrap_err(),
            "\"list\" is not an HTTP method; for a path, write GET /a; for a resource, write for example list pods"
        );
        let told = asked("PURGE").unwrap_err();
        assert!(told.starts_with("\"PURGE\" is not an HTTP method; use one of GET, HEAD, POST"), "{told}");
        assert!(told.ends_with("write `explain -- curl -X PURGE /a`"), "{told}");
    }

    #[test]
    fn groups_that_every_server_adds_are_added() {
        let groups = |user: Option<&str>, given: &[&str]| {
            let given = given.iter().map(ToString::to_string).collect();
            let question = Question::new("GET", "/", user.map(ToOwned::to_owned), given).unwrap();
            let user = question.user();
            format!("{}: {}", user.name, user.groups.join(" "))
        };
        assert_eq!(groups(None, &[]), "system:anonymous: system:unauthenticated");
        assert_eq!(groups(Some("alice"), &["dev"]), "alice: dev system:authenticated");
        assert_eq!(groups(Some("alice"), &["system:authenticated"]), "alice: system:authenticated");
        assert_eq!(
            groups(Some("system:serviceaccount:a:b"), &[]),
            "system:serviceaccount:a:b: system:serviceaccounts system:serviceaccounts:a system:authenticated"
        );
    }

    #[test]
    fn wrong_urls_and_methods_are_named() {
        let fault = |method: &str, url: &str| Question::new(method, url, None, Vec::new()).unwrap_err();
        assert_eq!(fault("G T", "/"), "\"G T\" is not a method");
        assert!(fault("GET", "/a b").starts_with("\"/a b\" is not a path or a URL"));
        assert!(fault("GET", "").starts_with("\"\" is not a path or a URL"));
    }
}
