//! `Denial`: why a request was not authenticated. Logs and metrics name the reason, and never the credential.

use std::borrow::Cow;

use evenkeel::identify::Unidentified;
use http::StatusCode;

/// Why a request is not authenticated. The response is the same for most of them, so that an attacker learns nothing.
///
/// Of several sources that look at the same credential, the last in this order knows the most of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Denial {
    /// There is no credential, and anonymous requests are not allowed.
    NoCredential,
    /// The credential is not well-formed: sent twice, not UTF-8, too long, or no token at all.
    Malformed,
    /// No token file lists this token.
    UnknownToken,
    /// No key file lists this key.
    UnknownKey,
    /// No key that is known has signed the token.
    Signature,
    /// The token is of another issuer.
    Issuer,
    /// The token is for others.
    Audience,
    /// A claim of the token is missing or of the wrong type.
    Claims,
    /// The token is not good yet.
    NotYetValid,
    /// The token or the client certificate has expired.
    Expired,
    /// The name is not allowed: it is empty, has control characters in it, or begins with `system:`.
    Name,
    /// The keys of the issuer are being fetched. The response is 503.
    KeysAwaited,
}

const KEYS_AWAITED: &str = "the keys of the token's issuer are being fetched; try again";
const CERTIFICATE_EXPIRED: &str = "the client certificate has expired";

// === impl Denial ===

impl Denial {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::NoCredential,
        Self::Malformed,
        Self::UnknownToken,
        Self::UnknownKey,
        Self::Signature,
        Self::Issuer,
        Self::Audience,
        Self::Claims,
        Self::NotYetValid,
        Self::Expired,
        Self::Name,
        Self::KeysAwaited,
    ];

    /// The reason in logs, and the value of the label `reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoCredential => "no-credential",
            Self::Malformed => "malformed-credential",
            Self::UnknownToken => "unknown-token",
            Self::UnknownKey => "unknown-key",
            Self::Signature => "token-signature",
            Self::Issuer => "token-issuer",
            Self::Audience => "token-audience",
            Self::Claims => "token-claims",
            Self::NotYetValid => "not-yet-valid",
            Self::Expired => "expired",
            Self::Name => "name-not-allowed",
            Self::KeysAwaited => "issuer-keys-awaited",
        }
    }

    /// The response. It only says what the client has to act on.
    pub(crate) fn response(self, is_certificate: bool) -> Unidentified {
        let (status, message): (_, Cow<'static, str>) = match self {
            Self::KeysAwaited => (StatusCode::SERVICE_UNAVAILABLE, KEYS_AWAITED.into()),
            Self::Expired if is_certificate => (StatusCode::UNAUTHORIZED, CERTIFICATE_EXPIRED.into()),
            _ => return Unidentified::unauthorized(),
        };
        Unidentified::new(status, message)
    }
}
