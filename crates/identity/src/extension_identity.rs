//! `ExtensionIdentity`: identifies requests in a layer, by what the server has noted of their connections.

use std::fmt;
use std::sync::Arc;

use evenkeel::identify::{Identify, Unidentified};
use evenkeel_engine::User;
use http::StatusCode;
use http::request::Parts;

use crate::{Identification, Peer};

/// Identifies requests whose server has put the facts about the connection into an extension of type `T`. Made by
/// [`Identification::from_extension`].
pub struct ExtensionIdentity<T> {
    identification: Arc<Identification>,
    peer: fn(&T) -> Peer,
}

// === impl Identification ===

impl Identification {
    /// Identifies the requests of a service whose server puts the facts about a connection into their extensions, as axum and
    /// tonic do. A request without the extension gets a 500.
    ///
    /// A server that accepts its connections itself calls [`Identification::of`] once for each instead, and saves the work for each
    /// request.
    pub fn from_extension<T>(self: &Arc<Self>, peer: fn(&T) -> Peer) -> ExtensionIdentity<T> {
        ExtensionIdentity { identification: Arc::clone(self), peer }
    }
}

// === impl ExtensionIdentity ===

impl<T: Send + Sync + 'static> Identify for ExtensionIdentity<T> {
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        let Some(extension) = parts.extensions.get::<T>() else {
            return Err(Unidentified::new(StatusCode::INTERNAL_SERVER_ERROR, "no peer address found for request"));
        };
        self.identification.of((self.peer)(extension)).identify(parts)
    }
}

impl<T> fmt::Debug for ExtensionIdentity<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionIdentity").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::config::{AddressIdentity, ApiKeyIdentity, IdentityConfig, IdentitySource};

    #[test]
    fn a_key_counts_before_the_address_and_a_request_needs_its_extension() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "k-alice,alice,1").unwrap();
        let header = http::HeaderName::from_static("x-api-key");
        let key = IdentitySource::ApiKey(ApiKeyIdentity { header, file: file.path().to_owned() });
        let sources = vec![key, IdentitySource::Address(AddressIdentity::default())];
        let config = IdentityConfig { sources, ..IdentityConfig::default() };
        assert_eq!(config.check(false), []);
        let identify =
            Identification::open(&config).unwrap().from_extension(|address: &SocketAddr| Peer::new(*address));
        let name = |key: Option<&str>, address: Option<&str>| {
            let mut request = http::Request::new(());
            key.map(|key| request.headers_mut().insert("x-api-key", key.parse().unwrap()));
            address.map(|address| request.extensions_mut().insert::<SocketAddr>(address.parse().unwrap()));
            let found = identify.identify(&request.into_parts().0);
            found.map(|user| user.name.to_string()).map_err(|error| error.status.as_u16())
        };
        let from = Some("192.0.2.7:1000");
        assert_eq!(name(None, from), Ok("address:192.0.2.7".to_owned()));
        assert_eq!(name(Some("k-alice"), from), Ok("alice".to_owned()));
        assert_eq!(name(Some("forged"), from), Err(401));
        assert_eq!(name(Some("k-alice"), None), Err(500));
    }
}
