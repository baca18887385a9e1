//! Where an etcd is and how to talk to it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{Error, HistoryLimits};

/// Where an etcd is and how to talk to it.
///
/// ```
/// use evenkeel_store::EtcdConfig;
///
/// let config: EtcdConfig = "etcd://10.0.0.1:2379,10.0.0.2:2379".parse()?;
/// assert_eq!(config.endpoints, ["10.0.0.1:2379", "10.0.0.2:2379"]);
/// assert_eq!(config.prefix, "/registry");
/// # Ok::<(), evenkeel_store::Error>(())
/// ```
///
/// Not `#[non_exhaustive]`, so that literals can end with `..EtcdConfig::new(endpoints)`. End them so: releases add fields.
#[derive(Debug, Clone)]
pub struct EtcdConfig {
    /// Members of the cluster, each as `host:port`. One that cannot be reached is passed over.
    pub endpoints: Vec<String>,
    /// The prefix of all keys. It should be used by Evenkeel alone: every change under the prefix is sent to us.
    pub prefix: String,
    /// How to encrypt; `None` for plain text.
    pub tls: Option<EtcdTls>,
    /// User and password, for an etcd that needs them.
    pub login: Option<EtcdLogin>,
    /// No call takes longer than this in all, whatever it tries.
    pub call_deadline: Duration,
    /// A member that does not respond within this time is skipped.
    pub attempt_deadline: Duration,
    /// How much of the history is kept in memory.
    pub history: HistoryLimits,
}

/// Certificates for talking to etcd, all as PEM.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Clone, Default)]
pub struct EtcdTls {
    /// The authority that has signed the servers' certificates.
    pub ca: Vec<u8>,
    /// Our own certificate and its key, if the servers want to see one.
    pub identity: Option<EtcdIdentity>,
    /// The name that the servers' certificates have, if it is not the host of the endpoint.
    pub server_name: Option<String>,
}

/// A certificate and its key, as PEM.
///
/// Not `#[non_exhaustive]`: it is a certificate and its key.
#[derive(Clone)]
pub struct EtcdIdentity {
    /// The certificate.
    pub certificate: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
}

/// A user of etcd.
///
/// Not `#[non_exhaustive]`: it is a name and a password.
#[derive(Clone)]
pub struct EtcdLogin {
    /// The user's name.
    pub user: String,
    /// The user's password.
    pub password: String,
}

/// The prefix that Kubernetes uses.
const PREFIX: &str = "/registry";
const PLAIN: &str = "etcd://";

// === impl EtcdConfig ===

impl EtcdConfig {
    /// The members at these places, in plain text, and everything else as it usually is.
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: PREFIX.to_owned(),
            tls: None,
            login: None,
            call_deadline: Duration::from_secs(8),
            attempt_deadline: Duration::from_secs(2),
            history: HistoryLimits::default(),
        }
    }
}

/// `etcd://host:port,host:port` with an optional `/prefix`. Secrets are not part of it, because command lines can be seen
/// by everybody on a machine.
impl FromStr for EtcdConfig {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let usage = |problem: String| Error::Location(format!("{problem}: use etcd://host:port,host:port/prefix"));
        let rest = text.strip_prefix(PLAIN).ok_or_else(|| usage(format!("{text:?} does not begin with {PLAIN}")))?;
        let (members, prefix) = rest.split_once('/').map_or((rest, None), |(members, prefix)| (members, Some(prefix)));
        if members.contains('@') {
            return Err(usage("do not put a user and a password into the URL, where others can see them".to_owned()));
        }
        for member in members.split(',') {
            let port = member.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
            if port.is_none_or(|port| port.parse::<u16>().is_err()) {
                return Err(usage(format!("{member:?} is not a host and a port")));
            }
        }
        let mut config = Self::new(members.split(','));
        if let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) {
            config.prefix = format!("/{prefix}");
        }
        Ok(config)
    }
}

impl fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdTls").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

impl fmt::Debug for EtcdIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdIdentity").finish_non_exhaustive()
    }
}

impl fmt::Debug for EtcdLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdLogin").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_has_members_and_perhaps_a_prefix() {
        let config: EtcdConfig = "etcd://a:1,[::1]:2/evenkeel/main".parse().unwrap();
        assert_eq!(config.endpoints, ["a:1", "[::1]:2"]);
        assert_eq!(config.prefix, "/evenkeel/main");
        assert_eq!("etcd://a:1/".parse::<EtcdConfig>().unwrap().prefix, "/registry");
    }

    #[test]
    fn a_location_that_makes_no_sense_is_refused_in_words() {
        let problem = |text: &str| text.parse::<EtcdConfig>().unwrap_err().to_string();
        let usage = "use etcd://host:port,host:port/prefix";
        assert_eq!(problem("http://a:1"), format!(r#""http://a:1" does not begin with etcd://: {usage}"#));
        assert_eq!(problem("etcd://a"), format!(r#""a" is not a host and a port: {usage}"#));
        assert_eq!(problem("etcd://a:1,"), format!(r#""" is not a host and a port: {usage}"#));
        assert_eq!(problem("etcd://:1"), format!(r#"":1" is not a host and a port: {usage}"#));
        assert_eq!(
            problem("etcd://me:secret@a:1"),
            format!("do not put a user and a password into the URL, where others can see them: {usage}")
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut config = EtcdConfig::new(["a:1"]);
        config.login = Some(EtcdLogin { user: "me".to_owned(), password: "secret".to_owned() });
        let identity = EtcdIdentity { certificate: b"secret".to_vec(), key: b"secret".to_vec() };
        config.tls = Some(EtcdTls { identity: Some(identity), ..EtcdTls::default() });
        assert!(!format!("{config:?}").contains("secret"));
    }
}
