//! `AllowedOrigins`: which web pages may read the gateway's own error responses (CORS).

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Method};

/// Which web pages may read error responses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum AllowedOrigins {
    /// Only those of the same origin; the responses do not mention it.
    #[default]
    None,
    Any,
    These(Vec<HeaderValue>),
}

/// The headers that pages may read beside the body.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "retry-after, x-request-id, x-evenkeel-level, x-evenkeel-reason, x-evenkeel-expected-wait",
);
const ANY: HeaderValue = HeaderValue::from_static("*");

/// Whether a request only asks whether another one may be sent (Fetch, 4.8).
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

// === impl AllowedOrigins ===

impl AllowedOrigins {
    /// Reads the origins of the settings. Errors have the place in the list.
    pub(crate) fn new(origins: &[String]) -> Result<Self, (usize, String)> {
        if origins.iter().any(|origin| origin == "*") {
            return Ok(Self::Any);
        }
        let read = |(index, origin): (usize, &String)| {
            let fault = || {
                let why = format!(
                    "{origin:?} is not an origin; write scheme, host and port, as `https://app.example`, or `*`"
                );
                (index, why)
            };
            let (scheme, rest) = origin.split_once("://").ok_or_else(fault)?;
            let is_host = rest.parse::<http::uri::Authority>().is_ok_and(|host| !host.as_str().contains('@'));
            let is_lower = !origin.bytes().any(|byte| byte.is_ascii_uppercase());
            let is_scheme =
                !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            if !is_host || !is_lower || !is_scheme {
                return Err(fault());
            }
            HeaderValue::from_str(origin).map_err(|_| fault())
        };
        let read: Vec<HeaderValue> = origins.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(if read.is_empty() { Self::None } else { Self::These(read) })
    }

    /// The origin of a request with these headers, if its page may read the response.
    pub(super) fn of(&self, request: &HeaderMap) -> Option<HeaderValue> {
        match self {
            Self::None => None,
            Self::Any => request.get(ORIGIN).map(|_| ANY),
            Self::These(allowed) => request.get(ORIGIN).filter(|origin| allowed.contains(origin)).cloned(),
        }
    }

    /// Lets the pages of this origin read a response. Caches are told that it depends on the origin, also where there is none.
    pub(super) fn apply(&self, origin: Option<HeaderValue>, response: &mut HeaderMap) {
        if *self != Self::None {
            response.append(VARY, HeaderValue::from_static("origin"));
        }
        let Some(origin) = origin else { return };
        response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        if origin != ANY {
            response.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(origins: &[&str]) -> Result<AllowedOrigins, (usize, String)> {
        AllowedOrigins::new(&origins.iter().map(|origin| (*origin).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn origins_are_compared_as_a_whole() {
        let request = |origin: &str| HeaderMap::from_iter([(ORIGIN, origin.parse().unwrap())]);
        let allowed = read(&["https://app.example", "http://localhost:3000"]).unwrap();
        assert_eq!(allowed.of(&request("https://app.example")).unwrap(), "https://app.example");
        for other in ["https://app.example.evil", "http://app.example", "https://app.example:8443", "null"] {
            assert_eq!(allowed.of(&request(other)), None, "{other}");
        }
        assert_eq!(allowed.of(&HeaderMap::new()), None);
        assert_eq!(read(&["*"]).unwrap().of(&request("null")), Some(ANY));
        assert_eq!(read(&[]).unwrap(), AllowedOrigins::None);
    }

    #[test]
    fn caches_tell_origins_apart() {
        for (allowed, varies) in [(&["https://app.example"][..], true), (&["*"], true), (&[], false)] {
            let allowed = read(allowed).unwrap();
            for request in [HeaderMap::new(), HeaderMap::from_iter([(ORIGIN, "https://app.example".parse().unwrap())])]
            {
                let mut response = HeaderMap::new();
                allowed.apply(allowed.of(&request), &mut response);
                assert_eq!(
                    response.get(VARY).is_some_and(|names| names == "origin"),
                    varies,
                    "{allowed:?} {request:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_an_origin_is_refused() {
        for origin in
            ["app.example", "https://app.example/", "https://App.example", "https://", "https://a@b", "://a", ""]
        {
            let (index, why) = read(&["https://fine.example", origin]).unwrap_err();
            assert!(index == 1 && why.contains("is not an origin; write scheme, host and port"), "{origin} {why}");
        }
    }
}
