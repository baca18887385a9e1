//! `PeerIdentity`: finds out who sends the requests of one connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use evenkeel::identify::{Identify, Unidentified, anonymous};
use evenkeel_engine::User;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::config::AnonymousRequests;
use crate::identification::IdentificationStep;
use crate::sanitize_headers::Sender;
use crate::sources::Verdict;
use crate::{Denial, Identification, Peer};

/// Finds out who sends the requests of one connection. Facts about the connection itself are looked up once. Clones are cheap.
#[derive(Debug, Clone)]
pub struct PeerIdentity(Arc<KnownPeer>);

/// A connection, with the facts that hold for all its requests.
#[derive(Debug)]
struct KnownPeer {
    identification: Arc<Identification>,
    steps: Vec<IdentificationStep>,
    sender: Sender,
    address: IpAddr,
    /// When the certificate expires that the client has shown.
    expires: Option<SystemTime>,
}

/// A request that is not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// The reason.
    pub reason: Denial,
    /// Whether the credential is the certificate of the connection.
    is_certificate: bool,
}

// === impl PeerIdentity ===

impl PeerIdentity {
    pub(crate) fn new(
        identification: &Arc<Identification>,
        steps: Vec<IdentificationStep>,
        sender: Sender,
        peer: &Peer,
    ) -> Self {
        let expires = peer.certificate.as_ref().and_then(|certificate| certificate.not_after);
        let address = peer.address.ip().to_canonical();
        let identification = Arc::clone(identification);
        Self(Arc::new(KnownPeer { identification, steps, sender, address, expires }))
    }

    /// Removes the identity headers that the client has set, and sets them anew for the upstream, if the settings say so.
    pub fn sanitize_headers(&self, headers: &mut HeaderMap, user: &User) {
        self.0.identification.sanitizer.apply(headers, user, self.0.sender);
    }

    /// Whether the other end is a proxy that speaks for other clients.
    pub fn is_trusted_proxy(&self) -> bool {
        self.0.sender != Sender::Outsider
    }

    /// The address of the other end.
    pub fn address(&self) -> IpAddr {
        self.0.address
    }

    /// Where a request with these headers comes from: the address that a trusted proxy names, or that of the other end.
    pub fn client_address(&self, headers: &HeaderMap) -> IpAddr {
        let named = self.0.steps.iter().find_map(|step| match step {
            IdentificationStep::Forwarded(index, proxy) => {
                self.0.identification.sources.get(*index)?.forwarded_address(*proxy, headers)
            }
            _ => None,
        });
        named.map_or(self.0.address, |address| address.to_canonical())
    }

    /// Authenticates a request. A failure is counted by its reason.
    pub fn authenticate(&self, parts: &Parts) -> Result<Arc<User>, Denied> {
        let identification = &self.0.identification;
        match self.find(parts) {
            Ok(user) => Ok(user),
            Err(_) if identification.open_paths.contain(parts.uri.path()) => Ok(anonymous()),
            Err(denied) => {
                identification.counts.denied(denied.reason);
                Err(denied)
            }
        }
    }

    /// Asks the sources, one after the other.
    fn find(&self, parts: &Parts) -> Result<Arc<User>, Denied> {
        // TLS checks a certificate when a session begins, but connections last, and sessions are resumed.
        if self.0.expires.is_some_and(|expires| SystemTime::now() > expires) {
            return Err(Denied { reason: Denial::Expired, is_certificate: true });
        }
        let identification = &self.0.identification;
        let denied = |reason| Err(Denied { reason, is_certificate: false });
        let mut wrong: Option<(&HeaderName, Denial)> = None;
        for step in &self.0.steps {
            match step {
                IdentificationStep::Known(_) | IdentificationStep::Forwarded(..) if wrong.is_some() => {}
                IdentificationStep::Known(user) => return Ok(Arc::clone(user)),
                IdentificationStep::Forwarded(index, proxy) => {
                    let source = identification.sources.get(*index);
                    if let Some(user) = source.and_then(|source| source.forwarded_user(*proxy, &parts.headers)) {
                        return Ok(user);
                    }
                }
                IdentificationStep::Wrong(reason) => return denied(*reason),
                IdentificationStep::Ask(index) => {
                    let Some(source) = identification.sources.get(*index) else { continue };
                    let Some(header) = source.header() else { continue };
                    if wrong.is_some_and(|(other, _)| other != header) {
                        continue;
                    }
                    let reason = match source.ask(&parts.headers) {
                        Verdict::Known(user) => return Ok(user),
                        Verdict::Absent => continue,
                        Verdict::Wrong(reason) => reason,
                        Verdict::Undecided => Denial::KeysAwaited,
                    };
                    let known = wrong.map_or(reason, |(_, before)| before.max(reason));
                    wrong = Some((header, known));
                }
            }
        }
        match (identification.anonymous, wrong) {
            (AnonymousRequests::Allow, None) => Ok(anonymous()),
            (_, None) => denied(Denial::NoCredential),
            (_, Some((_, reason))) => denied(reason),
        }
    }
}

impl Identify for PeerIdentity {
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        self.authenticate(parts).map_err(Denied::response)
    }
}

// === impl Denied ===

impl Denied {
    /// The response to the request.
    pub fn response(self) -> Unidentified {
        self.reason.response(self.is_certificate)
    }
}
