//! Paths that can be spelt in several ways: the form that decisions see, and the form that the upstream gets.
//!
//! Decisions see the normal form ([`normal_path`]), and the upstream gets it too unless the settings say otherwise. An
//! encoded slash stays in it, since for most services it is a part of a name. Other services take it for a slash, so a
//! request with one costs what the dearer of both readings costs, and is rejected if flow schemas tell the readings apart. The same goes for path parameters, where they are kept.

use std::borrow::Cow;

use evenkeel::digest::{Digest, Digested};
use evenkeel::service::Occupancy;
use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::{DigestError, PathParameters, decode_keeping_slashes, normal_path, normal_path_with};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Uri};

use super::{RequestRules, RouteMatch};
use crate::config::Paths;

/// The method and the URI of a request, kept apart from the request, so that the result of interpreting it can borrow from here.
#[derive(Debug)]
pub struct Target {
    method: Method,
    uri: Uri,
    /// The URI before its path was put into the normal form, if it was not in it.
    uri_as_sent: Option<Uri>,
    spelling: Result<Spelling, DigestError>,
}

/// How a path is spelt.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    /// The normal form, if the path is not in it.
    normal: Option<String>,
    has_encoded_slash: bool,
    has_parameters: bool,
    had_dot_segments: bool,
}

/// How the path is spelt, or why it is rejected.
pub(super) fn spelling(path: &str, parameters: PathParameters) -> Result<Spelling, DigestError> {
    let normal = normal_path_with(path, parameters)?;
    Ok(Spelling {
        has_encoded_slash: normal.has_encoded_slash,
        has_parameters: normal.has_parameters,
        had_dot_segments: normal.had_dot_segments,
        normal: match normal.path {
            Cow::Borrowed(_) => None,
            Cow::Owned(path) => Some(path),
        },
    })
}

// === impl Target ===

impl Target {
    /// The method of the request.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The path in its normal form; `None` if it is to be rejected.
    pub fn normal_path(&self) -> Option<&str> {
        let spelling = self.spelling.as_ref().ok()?;
        Some(spelling.normal.as_deref().unwrap_or(self.uri.path()))
    }

    /// The URI as the client has sent it, for logs.
    pub fn uri_as_sent(&self) -> &Uri {
        self.uri_as_sent.as_ref().unwrap_or(&self.uri)
    }
}

// === impl RequestRules ===

impl RequestRules {
    /// The target of the request with this head. Puts the path into its normal form if the upstream is to get that. A path that
    /// is to be rejected stays as it is.
    pub fn target(&self, parts: &mut Parts) -> Target {
        let mut spelling = spelling(parts.uri.path(), self.0.path_parameters);
        let mut uri_as_sent = None;
        if self.0.paths == Paths::Normalise
            && let Ok(spelling) = &mut spelling
            && let Some(path) = spelling.normal.take()
        {
            uri_as_sent = Some(parts.uri.clone());
            set_path(&mut parts.uri, &path);
        }
        Target { method: parts.method.clone(), uri: parts.uri.clone(), uri_as_sent, spelling }
    }

    /// Interprets a request. This is done once for each request.
    pub fn digest_target<'a>(&'a self, target: &'a Target) -> Result<Digested<'a, RouteMatch>, DigestError> {
        match &target.spelling {
            Ok(spelling) => self.digest_spelling(&target.method, &target.uri, spelling),
            Err(error) => Err(error.clone()),
        }
    }

    /// What a request asks for if the encoded slashes of its path are slashes, as some services have it. `None` if it has none, or if a route
    /// says what the path means as it is.
    pub fn with_plain_slashes(&self, target: &Target) -> Option<RequestInfo<'static>> {
        let spelling = target.spelling.as_ref().ok().filter(|spelling| spelling.has_encoded_slash)?;
        if self.0.kubernetes.is_some() {
            // There, an encoded slash is a slash already.
            return None;
        }
        let normal = spelling.normal.as_deref().unwrap_or(target.uri.path());
        let as_it_is = with_query(normal, &target.uri);
        if self.interpret(&target.method, &as_it_is).is_ok_and(|digested| digested.extra.is_route()) {
            return None;
        }
        let plain = normal_path(&normal.replace("%2F", "/")).ok()?.path.into_owned();
        let digested = self.interpret(&target.method, &with_query(&plain, &target.uri)).ok()?.info.into_owned();
        Some(digested)
    }

    /// What a request asks for whose path is spelt like this.
    pub(super) fn digest_spelling<'a>(
        &'a self,
        method: &Method,
        uri: &'a Uri,
        spelling: &Spelling,
    ) -> Result<Digested<'a, RouteMatch>, DigestError> {
        match spelling {
            Spelling { normal: None, has_encoded_slash: false, has_parameters: false, .. } => {
                self.interpret(method, path_and_query(uri))
            }
            _ => self.digest_unusual(method, uri, spelling),
        }
    }

    /// The same for a path that is not normal, or that can be read in two ways.
    fn digest_unusual(
        &self,
        method: &Method,
        uri: &Uri,
        spelling: &Spelling,
    ) -> Result<Digested<'static, RouteMatch>, DigestError> {
        let is_changed = spelling.normal.is_some();
        match self.0.paths {
            Paths::Reject if is_changed => {
                let problem = "has dot segments, slashes in a row, needless escapes or path parameters; send it in its normal form";
                return Err(DigestError::Path { problem });
            }
            Paths::Reject if spelling.has_encoded_slash => {
                return Err(DigestError::Path { problem: "has an encoded slash" });
            }
            // It is not known how the upstream resolves dot segments, and they could lead out of a prefix.
            Paths::AsIs if spelling.had_dot_segments => {
                return Err(DigestError::Path { problem: "has dot segments; send it in its normal form" });
            }
            _ => {}
        }
        let normal = spelling.normal.as_deref().unwrap_or(uri.path());
        let read = |path: &str| {
            let target = with_query(path, uri);
            let Digested { info, extra, .. } = self.interpret(method, &target)?;
            Ok::<_, DigestError>(Digested::new(info.into_owned(), extra))
        };
        let mut digested = read(normal)?;
        let mut others = Vec::new();
        if spelling.has_encoded_slash {
            others.push(read(&normal_path(&normal.replace("%2F", "/"))?.path)?);
            if self.0.kubernetes.is_none() {
                digested.info.path = Cow::Owned(decode_keeping_slashes(normal)?.into_owned());
            }
        }
        if spelling.has_parameters {
            others.push(read(&normal_path_with(normal, PathParameters::Strip)?.path)?);
        }
        if self.0.paths == Paths::AsIs && is_changed {
            others.push(read(uri.path())?);
        }
        let mut cost = self.cost(&digested);
        for other in others {
            let other_cost = self.cost(&other);
            if other_cost > cost {
                (cost, digested.extra) = (other_cost, other.extra);
            }
        }
        Ok(digested)
    }

    /// For comparing: a request that keeps its seats to the end is dearer than one that gives them back early, or takes none.
    fn cost(&self, digested: &Digested<'_, RouteMatch>) -> (bool, u32) {
        let seats = self.rule_of(digested.extra).map_or(1, |rule| rule.work.max_seats());
        let keeps_seats = seats > 0 && self.occupancy(digested) == Some(Occupancy::ToTheEnd);
        (keeps_seats, seats)
    }
}

/// Exchanges the path of a URI, and leaves the query as it is.
pub fn set_path(uri: &mut Uri, path: &str) {
    let target = with_query(path, uri);
    let mut parts = std::mem::take(uri).into_parts();
    // Every text of this form is a target; if one were not, the original must not be sent in its place.
    parts.path_and_query = Some(target.parse().unwrap_or(PathAndQuery::from_static("/")));
    *uri = Uri::from_parts(parts).unwrap_or_default();
}

/// The path and the query as they were sent.
fn path_and_query(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", PathAndQuery::as_str)
}

fn with_query(path: &str, uri: &Uri) -> String {
    match uri.query() {
        Some(query) => [path, "?", query].concat(),
        None => path.to_owned(),
    }
}
