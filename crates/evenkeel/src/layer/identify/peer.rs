//! `PeerAddress`: users that are told apart by the address that they connect from.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_engine::User;
use http::StatusCode;
use http::request::Parts;

use super::{Identify, KNOWN_MAX, UNAUTHENTICATED, Unidentified};

/// Takes the address of the peer for the user. The server has put it into an extension of the request, of type `T`.
///
/// An IPv4 address is a user, such as `address:192.0.2.7`. So is a network of 64 bits of IPv6, such as `address:2001:db8:1:2::/64`: a
/// client has at least one of those, with as many addresses as it likes. These users are not authenticated.
///
/// **Behind a proxy or a load balancer, all clients have its address.** Identify them by what it says of them there.
///
/// axum puts a [`ConnectInfo`](https://docs.rs/axum/latest/axum/extract/struct.ConnectInfo.html) into its requests, if it is asked to
/// (a request without the extension gets a 500):
///
/// ```no_run
/// use std::net::SocketAddr;
///
/// use axum::extract::ConnectInfo;
/// use axum::{Router, routing::get};
/// use evenkeel::FlowControl;
/// use evenkeel::identify::PeerAddress;
///
/// #[tokio::main]
/// async fn main() -> std::io::Result<()> {
///     let flow = FlowControl::builder().server_concurrency(100).build();
///     let identify = PeerAddress::new(|info: &ConnectInfo<SocketAddr>| info.0.ip());
///     let app: Router = Router::new().route("/", get(async || "hello")).layer(flow.layer(identify));
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
///     axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
/// }
/// ```
///
/// The extension of tonic does not always have an address:
///
/// ```
/// use evenkeel::identify::PeerAddress;
/// use tonic::transport::server::TcpConnectInfo;
///
/// let identify = PeerAddress::new(|info: &TcpConnectInfo| info.remote_addr().map(|address| address.ip()));
/// ```
pub struct PeerAddress<T, R = IpAddr> {
    address: fn(&T) -> R,
    /// The users seen lately, so that the same one is not put together again for every request.
    known: Mutex<HashMap<IpAddr, Arc<User>>>,
}

// === impl PeerAddress ===

impl<T, R: Into<Option<IpAddr>>> PeerAddress<T, R> {
    /// Takes the address from extensions of this type.
    pub fn new(address: fn(&T) -> R) -> Self {
        Self { address, known: Mutex::default() }
    }
}

impl<T: Send + Sync + 'static, R: Into<Option<IpAddr>>> Identify for PeerAddress<T, R> {
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        let address = parts.extensions.get::<T>().and_then(|extension| (self.address)(extension).into());
        let Some(address) = address else {
            return Err(Unidentified::new(StatusCode::INTERNAL_SERVER_ERROR, "no peer address found for request"));
        };
        let client = client(address);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(user) = known.get(&client) {
            return Ok(Arc::clone(user));
        }
        let name = if client.is_ipv4() { format!("address:{client}") } else { format!("address:{client}/64") };
        let user = Arc::new(User::new(name, [UNAUTHENTICATED]));
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(client, Arc::clone(&user));
        Ok(user)
    }
}

impl<T, R> fmt::Debug for PeerAddress<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerAddress").finish_non_exhaustive()
    }
}

/// The part of an address that tells clients apart.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::layer::identify::without_system_names;

    fn parts(address: Option<&str>) -> Parts {
        let mut request = http::Request::new(());
        if let Some(address) = address {
            request.extensions_mut().insert::<SocketAddr>(address.parse().unwrap());
        }
        request.into_parts().0
    }

    #[test]
    fn each_address_and_each_network_of_ipv6_is_a_user() {
        let identify = PeerAddress::new(SocketAddr::ip);
        for (address, name) in [
            ("192.0.2.7:1000", "address:192.0.2.7"),
            ("[::ffff:192.0.2.7]:1000", "address:192.0.2.7"),
            ("[2001:db8:1:2:3:4:5:6]:1000", "address:2001:db8:1:2::/64"),
            ("[2001:db8:1:2::9]:1000", "address:2001:db8:1:2::/64"),
        ] {
            let user = identify.identify(&parts(Some(address))).unwrap();
            assert_eq!(*user, User::new(name, [UNAUTHENTICATED]), "{address}");
            // The names of Kubernetes' own parts are left out of users, but not what every unauthenticated user has.
            assert!(Arc::ptr_eq(&user, &without_system_names(Arc::clone(&user)).unwrap()));
        }
        assert_eq!(identify.known.lock().unwrap().len(), 2, "one user for each, however many requests it sends");
        assert_eq!(identify.identify(&parts(None)).unwrap_err().status, 500);
    }

    #[test]
    fn no_more_users_are_kept_than_there_is_a_limit() {
        let identify = PeerAddress::new(SocketAddr::ip);
        for number in 0..=u32::try_from(KNOWN_MAX).unwrap() {
            let address = SocketAddr::new(IpAddr::V4(number.into()), 1);
            identify.identify(&parts(Some(&address.to_string()))).unwrap();
        }
        assert_eq!(identify.known.lock().unwrap().len(), 1);
    }

    #[test]
    fn an_extension_without_an_address_is_none() {
        let identify = PeerAddress::new(|_: &SocketAddr| None);
        assert_eq!(identify.identify(&parts(Some("192.0.2.7:1000"))).unwrap_err().status, 500);
    }
}
