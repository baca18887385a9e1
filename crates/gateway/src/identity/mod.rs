//! Who sends a request: the sources of the settings, tried one after the other.
//!
//! A source that finds no credential of its kind leaves the question to the next one. A credential that is there and wrong
//! ends the search with 401: whoever shows a forged or expired token must not pass for somebody else, be it for nobody.
//! Only a source that looks at the same one may still know it, so that there can be two issuers of bearer tokens. Requests
//! to open paths need no credential, and a wrong one is ignored there.

mod address;
mod bearer;
mod cache;
mod certificate;
mod denial;
mod headers;
mod jwt;
mod naming;
mod open_paths;
mod peer;
mod sanitize_headers;
mod secret;
mod tokens;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use evenkeel::identify::{Identify, Unidentified, anonymous};
use evenkeel_engine::User;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::config::{AnonymousRequests, IdentityConfig, IdentitySource};
use crate::observe::log::Throttle;
use crate::observe::metrics::IdentityMetrics;
use headers::Headers;
use jwt::Jwts;
use sanitize_headers::{HeaderSanitizer, Sender};
use tokens::Tokens;

#[cfg(feature = "fuzzing")]
pub(crate) use jwt::Verifier;
pub(crate) use open_paths::OpenPaths;

pub use denial::Denial;
pub use peer::{ClientCertificate, Peer, Transport};

/// All ways to find out who is calling, shared by all workers.
#[derive(Debug)]
pub struct Identification {
    sources: Vec<Source>,
    anonymous: AnonymousRequests,
    open_paths: OpenPaths,
    sanitizer: HeaderSanitizer,
    metrics: IdentityMetrics,
    /// How often a denied request of a hosted service is worth a line.
    throttle: Mutex<Throttle>,
}

/// Finds out who sends the requests of one connection. Clones are cheap.
#[derive(Debug, Clone)]
pub struct PeerIdentity(Arc<OfPeer>);

/// The sources could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct IdentityError(
    /// What is wrong, where, and what to do.
    pub String,
);

/// What is known of a connection, looked up once.
#[derive(Debug)]
struct OfPeer {
    shared: Arc<Identification>,
    steps: Vec<Step>,
    sender: Sender,
    address: IpAddr,
    /// When the certificate expires that the client has shown.
    expires: Option<SystemTime>,
}

/// What to do for a request, in the order of the sources.
#[derive(Debug)]
enum Step {
    /// The connection tells who it is.
    Known(Arc<User>),
    /// The connection is a proxy's: this source of addresses looks at what it says of where the request comes from.
    Forwarded(usize, IpAddr),
    /// The connection has an invalid credential.
    Wrong(Denial),
    /// This source has to look at the request.
    Ask(usize),
}

#[derive(Debug)]
enum Source {
    Headers(Box<Headers>),
    Certificate(naming::Naming),
    Jwt(Jwts),
    Tokens(Tokens),
    ApiKey(HeaderName, Tokens),
    Address(Box<address::Addresses>),
}

/// A request that is not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) reason: Denial,
    /// Whether the credential is the certificate of the connection.
    is_certificate: bool,
}

/// What a source says of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// It is this one.
    Known(Arc<User>),
    /// There is no credential that this source could look at.
    Absent,
    /// There is one, and it is invalid.
    Wrong(Denial),
    /// There is one, but it cannot be checked yet: the keys of its issuer are being fetched.
    Undecided,
}

// === impl Identification ===

impl Identification {
    /// Sets the sources up, and reads the files that they name. Every file is looked after by a thread of its own.
    pub fn open(config: &IdentityConfig) -> Result<Arc<Self>, IdentityError> {
        Self::open_counted(config, &IdentityMetrics::default())
    }

    /// The same, and counts what happens.
    pub fn open_counted(config: &IdentityConfig, metrics: &IdentityMetrics) -> Result<Arc<Self>, IdentityError> {
        let sources = config.sources.iter().map(|source| Source::open(source, metrics));
        let sources = sources.collect::<Result<_, _>>().map_err(IdentityError)?;
        let open_paths = OpenPaths::new(&config.open_paths).map_err(IdentityError)?;
        Ok(Arc::new(Self {
            sources,
            anonymous: config.anonymous,
            open_paths,
            sanitizer: HeaderSanitizer::new(config),
            metrics: metrics.clone(),
            throttle: Mutex::default(),
        }))
    }

    /// For the requests of this connection.
    #[expect(clippy::needless_pass_by_value, reason = "the connection is of no use to anybody else")]
    pub fn of(self: &Arc<Self>, peer: Peer) -> PeerIdentity {
        let sources = self.sources.iter().enumerate();
        let steps = sources.filter_map(|(index, source)| self.step(source, index, &peer)).collect();
        let sender = self.sender(&peer);
        let expires = peer.certificate.as_ref().and_then(|certificate| certificate.not_after);
        let address = peer.address.ip().to_canonical();
        PeerIdentity(Arc::new(OfPeer { shared: Arc::clone(self), steps, sender, address, expires }))
    }

    /// What is to be done for the requests of this connection when it is this source's turn, if anything.
    fn step(&self, source: &Source, index: usize, peer: &Peer) -> Option<Step> {
        match source {
            Source::Headers(headers) => headers.trusts(peer).then_some(Step::Ask(index)),
            Source::Certificate(_) => Some(self.certificate_step(peer.certificate.as_deref()?)),
            Source::Address(addresses) if addresses.trusts(peer) => Some(Step::Forwarded(index, peer.address.ip())),
            Source::Address(addresses) => Some(Step::Known(addresses.user(peer.address.ip()))),
            Source::Jwt(_) | Source::Tokens(_) | Source::ApiKey(..) => Some(Step::Ask(index)),
        }
    }

    /// What a certificate comes to. One that a source does not believe may still be known to another that reads it.
    fn certificate_step(&self, shown: &ClientCertificate) -> Step {
        let known = self.sources.iter().find_map(|source| match source {
            Source::Certificate(naming) => certificate::user(naming, shown),
            _ => None,
        });
        known.map_or(Step::Wrong(Denial::Name), Step::Known)
    }

    /// Whether this is a proxy that speaks for other clients: it is trusted to say where requests come from.
    pub fn is_trusted_proxy(&self, peer: &Peer) -> bool {
        self.sender(peer) != Sender::Outsider
    }

    fn sender(&self, peer: &Peer) -> Sender {
        let any = |is: &dyn Fn(&Source) -> bool| self.sources.iter().any(is);
        if any(&|source| matches!(source, Source::Headers(headers) if headers.trusts(peer))) {
            Sender::TrustedProxy
        } else if any(&|source| matches!(source, Source::Address(addresses) if addresses.trusts(peer))) {
            Sender::Forwarder
        } else {
            Sender::Outsider
        }
    }
}

// === impl PeerIdentity ===

impl PeerIdentity {
    /// Takes out of a request what the upstream must not believe, and tells it who is calling if it shall know.
    pub fn sanitize_headers(&self, headers: &mut HeaderMap, user: &User) {
        self.0.shared.sanitizer.apply(headers, user, self.0.sender);
    }

    /// Whether the other end is a proxy that speaks for other clients.
    pub fn is_trusted_proxy(&self) -> bool {
        self.0.sender != Sender::Outsider
    }

    /// The address of the other end.
    pub(crate) fn address(&self) -> IpAddr {
        self.0.address
    }

    /// Where a request with these headers comes from: the address that a trusted proxy names, or that of the other end.
    pub(crate) fn client_address(&self, headers: &HeaderMap) -> IpAddr {
        let named = self.0.steps.iter().find_map(|step| match step {
            Step::Forwarded(index, proxy) => match self.0.shared.sources.get(*index) {
                Some(Source::Address(addresses)) => Some(addresses.client(*proxy, headers)),
                _ => None,
            },
            _ => None,
        });
        named.map_or(self.0.address, |address| address.to_canonical())
    }

    /// Authenticates a request. A failure is counted by its reason.
    pub(crate) fn authenticate(&self, parts: &Parts) -> Result<Arc<User>, Denied> {
        match self.find(parts) {
            Ok(user) => Ok(user),
            Err(_) if self.0.shared.open_paths.contain(parts.uri.path()) => Ok(anonymous()),
            Err(denied) => {
                self.0.shared.metrics.denied(denied.reason);
                Err(denied)
            }
        }
    }

    /// Whom the sources find.
    fn find(&self, parts: &Parts) -> Result<Arc<User>, Denied> {
        // TLS looks at it when a session begins, but connections last, and sessions are resumed.
        if self.0.expires.is_some_and(|expires| SystemTime::now() > expires) {
            return Err(Denied { reason: Denial::Expired, is_certificate: true });
        }
        let shared = &self.0.shared;
        let denied = |reason| Err(Denied { reason, is_certificate: false });
        let mut wrong: Option<(&HeaderName, Denial)> = None;
        for step in &self.0.steps {
            match step {
                Step::Known(_) | Step::Forwarded(..) if wrong.is_some() => {}
                Step::Known(user) => return Ok(Arc::clone(user)),
                Step::Forwarded(index, peer) => {
                    if let Some(Source::Address(addresses)) = shared.sources.get(*index) {
                        return Ok(addresses.forwarded_user(*peer, &parts.headers));
                    }
                }
                Step::Wrong(reason) => return denied(*reason),
                Step::Ask(index) => {
                    let Some(source) = shared.sources.get(*index) else { continue };
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
        match (shared.anonymous, wrong) {
            (AnonymousRequests::Allow, None) => Ok(anonymous()),
            (_, None) => denied(Denial::NoCredential),
            (_, Some((_, reason))) => denied(reason),
        }
    }
}

/// For services that are not proxied. Their requests are logged elsewhere, so that only the reason is logged here, and not
/// for every request.
impl Identify for PeerIdentity {
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        self.authenticate(parts).map_err(|denied| {
            if self.0.shared.throttle.lock().unwrap_or_else(PoisonError::into_inner).may_log() {
                let (reason, client) = (denied.reason.as_str(), self.0.address);
                tracing::warn!(reason, %client, path = parts.uri.path(), "a request is not authenticated");
            }
            denied.response()
        })
    }
}

// === impl Denied ===

impl Denied {
    /// The response to the request.
    pub(crate) fn response(self) -> Unidentified {
        self.reason.response(self.is_certificate)
    }
}

// === impl Verdict ===

#[cfg(test)]
impl Verdict {
    fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }
}

// === impl Source ===

impl Source {
    fn open(config: &IdentitySource, metrics: &IdentityMetrics) -> Result<Self, String> {
        Ok(match config {
            IdentitySource::TrustedHeaders(headers) => Self::Headers(Box::new(Headers::new(headers))),
            IdentitySource::ClientCertificate(certificate) => Self::Certificate(certificate::naming(certificate)),
            IdentitySource::Jwt(jwt) => Self::Jwt(Jwts::open(jwt, metrics.key_fetches())?),
            IdentitySource::Tokens(tokens) => Self::Tokens(Tokens::open(&tokens.file)?),
            IdentitySource::ApiKey(key) => Self::ApiKey(key.header.clone(), Tokens::open(&key.file)?),
            IdentitySource::Address(address) => Self::Address(Box::new(address::Addresses::new(address))),
        })
    }

    fn ask(&self, headers: &HeaderMap) -> Verdict {
        match self {
            Self::Headers(source) => source.ask(headers),
            Self::Jwt(jwts) => bearer::ask(headers, |token| jwts.ask(token)),
            Self::Tokens(tokens) => bearer::ask(headers, |token| tokens.ask(token)),
            Self::ApiKey(header, tokens) => tokens.ask_header(headers, header),
            Self::Certificate(_) | Self::Address(_) => Verdict::Absent,
        }
    }

    /// Where the credential is that this source looks at.
    fn header(&self) -> Option<&HeaderName> {
        match self {
            Self::Headers(headers) => Some(headers.user_header()),
            Self::Jwt(_) | Self::Tokens(_) => Some(&AUTHORIZATION),
            Self::ApiKey(header, _) => Some(header),
            Self::Certificate(_) | Self::Address(_) => None,
        }
    }
}
