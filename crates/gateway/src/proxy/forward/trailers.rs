//! Trailers: only those are forwarded that cannot be mistaken for something else.

use std::sync::Arc;

use evenkeel_engine::User;
use http::HeaderMap;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderName, SET_COOKIE,
};

use super::fields::{goes_on, is_of_the_connection};
use crate::identity::PeerIdentity;

/// Cleans the trailers of a request. An upstream may take them for headers, so fields that are not trusted as headers must not be
/// in them either.
#[derive(Debug)]
pub(crate) struct TrailerGuard {
    pub(crate) identity: PeerIdentity,
    pub(crate) user: Arc<User>,
}

// === impl TrailerGuard ===

impl TrailerGuard {
    pub(crate) fn clean(&self, trailers: HeaderMap) -> HeaderMap {
        let trailers = keep(trailers, |name| goes_on(name) && is_harmless(name));
        let mut trusted = trailers.clone();
        self.identity.sanitize_headers(&mut trusted, &self.user);
        keep(trailers.clone(), |name| trusted.get_all(name).iter().eq(trailers.get_all(name)))
    }
}

/// The trailers of a response that go on.
pub(crate) fn sanitize_trailers(trailers: HeaderMap) -> HeaderMap {
    keep(trailers, |name| !is_of_the_connection(name) && is_harmless(name))
}

/// Whether a field means nothing to those who only read heads (RFC 9110, 6.5.1).
fn is_harmless(name: &HeaderName) -> bool {
    !matches!(
        *name,
        AUTHORIZATION | CACHE_CONTROL | CONTENT_ENCODING | CONTENT_LENGTH | CONTENT_TYPE | COOKIE | HOST | SET_COOKIE
    )
}

fn keep(mut headers: HeaderMap, is_kept: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let gone: Vec<HeaderName> = headers.keys().filter(|name| !is_kept(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
    headers
}
