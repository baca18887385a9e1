//! `Source`: one way to find out who sends a request, and its verdict on a credential.

mod address;
mod bearer;
mod cache;
mod certificate;
mod headers;
mod jwt;
mod naming;
mod secret;
mod tokens;

use std::net::IpAddr;
use std::sync::Arc;

use evenkeel_engine::User;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use crate::config::IdentitySource;
use crate::counts::IdentityCounts;
use crate::key_server::ConnectKeyServer;
use crate::{ClientCertificate, Denial, Peer};
use address::Addresses;
use headers::Headers;
use jwt::Jwts;
use naming::Naming;
use tokens::Tokens;

#[cfg(feature = "fuzzing")]
pub(crate) use jwt::Verifier;

/// One way to find out who sends a request.
#[derive(Debug)]
pub(crate) enum Source {
    Headers(Box<Headers>),
    Certificate(Naming),
    Jwt(Jwts),
    Tokens(Tokens),
    ApiKey(HeaderName, Tokens),
    Address(Box<Addresses>),
}

/// The verdict of a source on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// This user has sent the request.
    Known(Arc<User>),
    /// The request has no credential that this source could look at.
    Absent,
    /// The credential is invalid.
    Wrong(Denial),
    /// The credential cannot be checked yet: the keys of its issuer are being fetched.
    Undecided,
}

// === impl Source ===

impl Source {
    pub(crate) fn open(
        config: &IdentitySource,
        counts: &IdentityCounts,
        connect: ConnectKeyServer<'_>,
    ) -> Result<Self, String> {
        Ok(match config {
            IdentitySource::TrustedHeaders(headers) => Self::Headers(Box::new(Headers::new(headers))),
            IdentitySource::ClientCertificate(certificate) => Self::Certificate(certificate::naming(certificate)),
            IdentitySource::Jwt(jwt) => Self::Jwt(Jwts::open(jwt, counts, connect)?),
            IdentitySource::Tokens(tokens) => Self::Tokens(Tokens::open(&tokens.file)?),
            IdentitySource::ApiKey(key) => Self::ApiKey(key.header.clone(), Tokens::open(&key.file)?),
            IdentitySource::Address(address) => Self::Address(Box::new(Addresses::new(address))),
        })
    }

    /// The verdict on the headers of a request.
    pub(crate) fn ask(&self, headers: &HeaderMap) -> Verdict {
        match self {
            Self::Headers(source) => source.ask(headers),
            Self::Jwt(jwts) => bearer::ask(headers, |token| jwts.ask(token)),
            Self::Tokens(tokens) => bearer::ask(headers, |token| tokens.ask(token)),
            Self::ApiKey(header, tokens) => tokens.ask_header(headers, header),
            Self::Certificate(_) | Self::Address(_) => Verdict::Absent,
        }
    }

    /// The header with the credential that this source looks at.
    pub(crate) fn header(&self) -> Option<&HeaderName> {
        match self {
            Self::Headers(headers) => Some(headers.user_header()),
            Self::Jwt(_) | Self::Tokens(_) => Some(&AUTHORIZATION),
            Self::ApiKey(header, _) => Some(header),
            Self::Certificate(_) | Self::Address(_) => None,
        }
    }

    /// Whether this source takes the peer for a proxy whose identity headers are trusted.
    pub(crate) fn trusts_identity_from(&self, peer: &Peer) -> bool {
        matches!(self, Self::Headers(headers) if headers.trusts(peer))
    }

    /// Whether this source takes the peer for a proxy that is trusted to say where requests come from.
    pub(crate) fn trusts_origin_from(&self, peer: &Peer) -> bool {
        matches!(self, Self::Address(addresses) if addresses.trusts(peer))
    }

    /// The owner of a verified certificate, if this source reads certificates and accepts its names.
    pub(crate) fn owner(&self, certificate: &ClientCertificate) -> Option<Arc<User>> {
        match self {
            Self::Certificate(naming) => certificate::user(naming, certificate),
            _ => None,
        }
    }

    /// The client behind a trusted proxy, if this source knows clients by address.
    pub(crate) fn forwarded_user(&self, proxy: IpAddr, headers: &HeaderMap) -> Option<Arc<User>> {
        match self {
            Self::Address(addresses) => Some(addresses.forwarded_user(proxy, headers)),
            _ => None,
        }
    }

    /// The address of the client behind a trusted proxy, if this source knows clients by address.
    pub(crate) fn forwarded_address(&self, proxy: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        match self {
            Self::Address(addresses) => Some(addresses.client(proxy, headers)),
            _ => None,
        }
    }
}

// === impl Verdict ===

#[cfg(test)]
impl Verdict {
    fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }
}
