//! `KubernetesVersion`: the release whose objects are meant.

use std::fmt;
use std::str::FromStr;

/// A minor release of Kubernetes whose objects are known: 1.29 to 1.37.
///
/// ```
/// use evenkeel_api::bootstrap::KubernetesVersion;
///
/// let version: KubernetesVersion = "v1.33.2-eks-1a2b3c".parse().unwrap();
/// assert_eq!(version.to_string(), "1.33");
/// assert!("1.20".parse::<KubernetesVersion>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubernetesVersion {
    minor: u32,
}

/// The text names no release whose objects are known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version of Kubernetes that is known here; use {oldest} to {newest}", oldest = KubernetesVersion::OLDEST, newest = KubernetesVersion::NEWEST)]
pub struct UnknownKubernetesVersion(String);

// === impl KubernetesVersion ===

impl KubernetesVersion {
    /// The oldest release: the first with `flowcontrol.apiserver.k8s.io/v1`.
    pub const OLDEST: Self = Self { minor: 29 };
    /// The newest release.
    pub const NEWEST: Self = Self { minor: 37 };
    /// The first release without flow schemas for leader election by endpoints and configmaps.
    pub(super) const LEASES_ONLY: Self = Self { minor: 34 };

    /// All releases, the oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::OLDEST.minor..=Self::NEWEST.minor).map(|minor| Self { minor })
    }

    /// The release nearest to what a server says of itself, such as `v1.33.2-gke.1`; `None` if that is no version.
    pub fn nearest(text: &str) -> Option<Self> {
        let minor = minor(text)?;
        Some(Self { minor: minor.clamp(Self::OLDEST.minor, Self::NEWEST.minor) })
    }
}

/// The minor number of `1.33`, `v1.33` or `v1.33.2-eks-1a2b3c`.
fn minor(text: &str) -> Option<u32> {
    let rest = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let is_end = rest[end..].is_empty() || rest[end..].starts_with(['.', '-', '+']);
    rest[..end].parse().ok().filter(|_| is_end)
}

impl Default for KubernetesVersion {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

impl FromStr for KubernetesVersion {
    type Err = UnknownKubernetesVersion;

    fn from_str(text: &str) -> Result<Self, UnknownKubernetesVersion> {
        let found =
            minor(text).map(|minor| Self { minor }).filter(|found| (Self::OLDEST..=Self::NEWEST).contains(found));
        found.ok_or_else(|| UnknownKubernetesVersion(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_and_people_write_them() {
        for (text, minor) in [("1.29", 29), ("v1.33", 33), ("v1.33.2", 33), ("1.37.0-rc.1+abc", 37), ("v1.30-eks", 30)]
        {
            assert_eq!(text.parse(), Ok(KubernetesVersion { minor }), "{text}");
        }
        for text in ["", "1", "1.", "2.30", "1.28", "1.38", "1.3x", "1.30x", "v1.99999999999", "latest"] {
            let told = text.parse::<KubernetesVersion>().unwrap_err().to_string();
            assert_eq!(told, format!("{text:?} is not a version of Kubernetes that is known here; use 1.29 to 1.37"));
        }
        assert_eq!(KubernetesVersion::nearest("v1.38.0-alpha.1"), Some(KubernetesVersion::NEWEST));
        assert_eq!(KubernetesVersion::nearest("v1.20.1"), Some(KubernetesVersion::OLDEST));
        assert_eq!(KubernetesVersion::nearest("unknown"), None);
    }
}
