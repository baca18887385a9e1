//! `Credential`: the credential that a plugin has printed.

use evenkeel_api::meta::Time;
use serde::Deserialize;

use super::{KIND, ProtocolVersion};

/// A credential of a client, and when it expires.
#[derive(PartialEq)]
pub(crate) struct Credential {
    pub(crate) token: Option<String>,
    pub(crate) certificate: Option<ClientCertificate>,
    /// When it expires, in seconds since 1970. `None` for a credential that is good until the process ends.
    expires: Option<i64>,
}

/// A client certificate and its key, both in PEM.
#[derive(Clone, PartialEq)]
pub(crate) struct ClientCertificate {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// How long before its end a credential is not used any more, in seconds: clocks differ, and requests take time.
const MARGIN: i64 = 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Printed {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    status: Option<PrintedStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PrintedStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

// === impl Credential ===

impl Credential {
    /// Reads an `ExecCredential`. Errors end a sentence about the output; they quote nothing of it that could be a secret.
    pub(super) fn parse(output: &[u8], version: ProtocolVersion) -> Result<Self, String> {
        let printed: Printed = serde_json::from_slice(output)
            .map_err(|error| format!("is not an {KIND} in JSON (line {}, column {})", error.line(), error.column()))?;
        let Printed { api_version, kind, status } = printed;
        if kind != KIND {
            return Err(format!("is of the kind {kind:?}; it must be {KIND}"));
        }
        if api_version != version.to_string() {
            return Err(format!("has the apiVersion {api_version:?}, while the kubeconfig names {version}"));
        }
        let status = status.ok_or("has no `status`")?;
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        let certificate = match (text(status.client_certificate_data), text(status.client_key_data)) {
            (Some(certificate), Some(key)) => {
                Some(ClientCertificate { certificate: certificate.into_bytes(), key: key.into_bytes() })
            }
            (None, None) => None,
            (Some(_), None) => return Err("has a client certificate without its key".to_owned()),
            (None, Some(_)) => return Err("has the key of a client certificate, but no certificate".to_owned()),
        };
        let token = text(status.token);
        if token.is_none() && certificate.is_none() {
            return Err("has neither a token nor a client certificate".to_owned());
        }
        let expires = text(status.expiration_timestamp).map(|time| {
            time.parse().map(Time::unix_seconds).map_err(|error| format!("has a wrong expirationTimestamp: {error}"))
        });
        Ok(Self { token, certificate, expires: expires.transpose()? })
    }

    /// Whether it is not to be used any more at this time, in seconds since 1970.
    pub(crate) fn is_expired(&self, now: i64) -> bool {
        self.expires.is_some_and(|expires| now >= expires - MARGIN)
    }
}

/// Secrets reach no message.
impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("expires", &self.expires).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}
