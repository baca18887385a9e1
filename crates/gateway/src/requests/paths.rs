//! Paths that can be spelt in several ways: what decisions see of them, and what the upstream gets.
//!
//! Decisions see the normal form ([`normal_path`]), and the upstream gets it too unless the settings say otherwise. An
//! encoded slash stays in it, since for most services it is a part of a name. Other services take it for a slash, so a
//! request with one costs what the dearer of both readings costs.

use std::borrow::Cow;

use evenkeel::Occupancy;
use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::{DigestError, NormalPath, decode_keeping_slashes, normal_path};
use http::Uri;
use http::request::Parts;
use http::uri::PathAndQuery;

use super::Requests;
use crate::config::Paths;

// === impl Requests ===

impl Requests {
    /// Puts the path into its normal form if that is what the upstream shall get. A path that is to be refused stays as
    /// it is: [`digest_path`](Self::digest_path) refuses it.
    pub(crate) fn normalise(&self, uri: &mut Uri) {
        if self.paths != Paths::Normalise {
            return;
        }
        let Ok(NormalPath { path: Cow::Owned(path), .. }) = normal_path(uri.path()) else { return };
        let target = with_query(&path, uri);
        let mut parts = std::mem::take(uri).into_parts();
        // Every text of this form is a target; if one were not, the original must not be sent in its place.
        parts.path_and_query = Some(target.parse().unwrap_or(PathAndQuery::from_static("/")));
        *uri = Uri::from_parts(parts).unwrap_or_default();
    }

    /// What a request asks for, however its path is spelt.
    pub(crate) fn digest_path<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError> {
        let normal = normal_path(parts.uri.path())?;
        match &normal.path {
            Cow::Borrowed(_) if !normal.has_encoded_slash => self.understand(&parts.method, target(&parts.uri)),
            _ => self.digest_spelling(parts, &normal),
        }
    }

    /// The same for a path that is not normal, or that can be read in two ways.
    fn digest_spelling(&self, parts: &Parts, normal: &NormalPath<'_>) -> Result<RequestInfo<'static>, DigestError> {
        let is_changed = matches!(normal.path, Cow::Owned(_));
        match self.paths {
            Paths::Reject if is_changed => {
                let problem = "has dot segments, slashes in a row or needless escapes; send it in its normal form";
                return Err(DigestError::Path { problem });
            }
            Paths::Reject if normal.has_encoded_slash => {
                return Err(DigestError::Path { problem: "has an encoded slash" });
            }
            // What the upstream makes of them is not known, and with a prefix they could lead out of it.
            Paths::AsIs if normal.had_dot_segments => {
                return Err(DigestError::Path { problem: "has dot segments; send it in its normal form" });
            }
            _ => {}
        }
        let read = |path: &str| {
            let target = with_query(path, &parts.uri);
            self.understand(&parts.method, &target).map(RequestInfo::into_owned)
        };
        let mut request = read(&normal.path)?;
        let mut others = Vec::new();
        if normal.has_encoded_slash {
            others.push(read(&normal_path(&normal.path.replace("%2F", "/"))?.path)?);
            if self.kubernetes.is_none() {
                request.path = Cow::Owned(decode_keeping_slashes(&normal.path)?.into_owned());
            }
        }
        if self.paths == Paths::AsIs && is_changed {
            others.push(read(parts.uri.path())?);
        }
        let mut cost = self.cost(parts, &request);
        for other in others {
            let other_cost = self.cost(parts, &other);
            if other_cost > cost {
                // The number of the route, which is all that the cost follows from.
                (cost, request.api_prefix) = (other_cost, other.api_prefix);
            }
        }
        Ok(request)
    }

    /// For comparing: a request that keeps its seats to the end is dearer than one that gives them back early.
    fn cost(&self, parts: &Parts, request: &RequestInfo<'_>) -> (bool, u32) {
        let keeps_seats = self.occupancy(parts, request) == Occupancy::ToTheEnd;
        (keeps_seats, self.rule(request).map_or(1, |rule| rule.work.max_seats()))
    }
}

/// The path and the query as they were sent.
fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", PathAndQuery::as_str)
}

fn with_query(path: &str, uri: &Uri) -> String {
    match uri.query() {
        Some(query) => [path, "?", query].concat(),
        None => path.to_owned(),
    }
}
