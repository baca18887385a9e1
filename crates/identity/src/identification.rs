//! `Identification`: the opened sources of the settings, and the steps of each connection through them.

use std::net::IpAddr;
use std::sync::Arc;

use evenkeel_engine::User;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};

use crate::config::{AnonymousRequests, IdentityConfig};
use crate::counts::IdentityCounts;
use crate::key_server::{ConnectKeyServer, no_key_server};
use crate::open_paths::OpenPaths;
use crate::peer_identity::PeerIdentity;
use crate::sanitize_headers::{HeaderSanitizer, Sender};
use crate::sources::Source;
use crate::{ClientCertificate, Denial, Peer};

/// All ways to find out who is calling. One value serves all connections of a program.
#[derive(Debug)]
pub struct Identification {
    pub(crate) sources: Vec<Source>,
    pub(crate) anonymous: AnonymousRequests,
    pub(crate) open_paths: OpenPaths,
    pub(crate) sanitizer: HeaderSanitizer,
    pub(crate) counts: IdentityCounts,
}

/// The sources could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
#[non_exhaustive]
pub struct IdentityError(
    /// The problem: where it is, what is wrong, and what to do.
    pub String,
);

/// A step in identifying the requests of a connection, in the order of the sources.
#[derive(Debug)]
pub(crate) enum IdentificationStep {
    /// The connection tells who the client is.
    Known(Arc<User>),
    /// The connection is a proxy's: the source of this index reads the address that the proxy names.
    Forwarded(usize, IpAddr),
    /// The connection has an invalid credential.
    Wrong(Denial),
    /// The source of this index has to look at the request.
    Ask(usize),
}

// === impl Identification ===

impl Identification {
    /// Sets the sources up, and reads the files that they name. Each file has a thread that reads it again when it changes.
    ///
    /// Keys at a URL need an HTTP client: see [`Identification::open_with`].
    pub fn open(config: &IdentityConfig) -> Result<Arc<Self>, IdentityError> {
        Self::open_with(config, &IdentityCounts::default(), &no_key_server)
    }

    /// The same, with counts that others can read, and with servers of keys.
    pub fn open_with(
        config: &IdentityConfig,
        counts: &IdentityCounts,
        connect: ConnectKeyServer<'_>,
    ) -> Result<Arc<Self>, IdentityError> {
        let sources = config.sources.iter().map(|source| Source::open(source, counts, connect));
        let sources = sources.collect::<Result<_, _>>().map_err(IdentityError)?;
        let open_paths = OpenPaths::new(&config.open_paths).map_err(IdentityError)?;
        Ok(Arc::new(Self {
            sources,
            anonymous: config.anonymous,
            open_paths,
            sanitizer: HeaderSanitizer::new(config),
            counts: counts.clone(),
        }))
    }

    /// Identifies the requests of this connection.
    #[expect(clippy::needless_pass_by_value, reason = "the connection is of no use to anybody else")]
    pub fn of(self: &Arc<Self>, peer: Peer) -> PeerIdentity {
        let sources = self.sources.iter().enumerate();
        let steps = sources.filter_map(|(index, source)| self.step(source, index, &peer)).collect();
        PeerIdentity::new(self, steps, self.sender(&peer), &peer)
    }

    /// The step of this source for the requests of this connection, if it has one.
    fn step(&self, source: &Source, index: usize, peer: &Peer) -> Option<IdentificationStep> {
        match source {
            Source::Headers(_) => source.trusts_identity_from(peer).then_some(IdentificationStep::Ask(index)),
            Source::Certificate(_) => Some(self.certificate_step(peer.certificate.as_deref()?)),
            Source::Address(_) if source.trusts_origin_from(peer) => {
                Some(IdentificationStep::Forwarded(index, peer.address.ip()))
            }
            Source::Address(addresses) => Some(IdentificationStep::Known(addresses.user(peer.address.ip()))),
            Source::Jwt(_) | Source::Tokens(_) | Source::ApiKey(..) => Some(IdentificationStep::Ask(index)),
        }
    }

    /// The step that follows from a certificate. A certificate that one source does not accept may still be known to another.
    fn certificate_step(&self, shown: &ClientCertificate) -> IdentificationStep {
        let known = self.sources.iter().find_map(|source| source.owner(shown));
        known.map_or(IdentificationStep::Wrong(Denial::Name), IdentificationStep::Known)
    }

    /// Whether a header of this name carries a credential, which belongs in no log.
    pub fn is_credential(&self, header: &str) -> bool {
        let is_key =
            |source: &Source| matches!(source, Source::ApiKey(name, _) if name.as_str().eq_ignore_ascii_case(header));
        let known = [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE];
        known.iter().any(|name| name.as_str().eq_ignore_ascii_case(header)) || self.sources.iter().any(is_key)
    }

    /// Whether the peer is a proxy that speaks for other clients: it is trusted to say where requests come from.
    pub fn is_trusted_proxy(&self, peer: &Peer) -> bool {
        self.sender(peer) != Sender::Outsider
    }

    fn sender(&self, peer: &Peer) -> Sender {
        if self.sources.iter().any(|source| source.trusts_identity_from(peer)) {
            Sender::TrustedProxy
        } else if self.sources.iter().any(|source| source.trusts_origin_from(peer)) {
            Sender::Forwarder
        } else {
            Sender::Outsider
        }
    }
}
