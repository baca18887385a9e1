//! The signature algorithms that are accepted.

use ring::signature as ring;

/// An algorithm of signatures with a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

// === impl Algorithm ===

impl Algorithm {
    /// The algorithm of that name, if it is accepted.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" | "Ed25519" => Self::EdDsa,
            _ => return None,
        })
    }

    /// How signatures with keys of RSA are checked, if the algorithm has such keys.
    pub(super) fn rsa(self) -> Option<&'static ring::RsaParameters> {
        Some(match self {
            Self::Rs256 => &ring::RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &ring::RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &ring::RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &ring::RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &ring::RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &ring::RSA_PSS_2048_8192_SHA512,
            Self::Es256 | Self::Es384 | Self::EdDsa => return None,
        })
    }

    /// How signatures with keys that are a point of a curve are checked, if the algorithm has such keys.
    pub(super) fn curve(self) -> Option<&'static dyn ring::VerificationAlgorithm> {
        Some(match self {
            Self::Es256 => &ring::ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &ring::ECDSA_P384_SHA384_FIXED,
            Self::EdDsa => &ring::ED25519,
            _ => return None,
        })
    }

    /// How many bytes a point has, if the algorithm has such keys.
    pub(super) fn point_bytes(self) -> Option<usize> {
        match self {
            Self::Es256 => Some(1 + 2 * 32),
            Self::Es384 => Some(1 + 2 * 48),
            Self::EdDsa => Some(32),
            _ => None,
        }
    }
}
