//! `PartsHead`: the head of a request, for flow schemas that match by headers.

use std::net::IpAddr;

use evenkeel_engine::HeadSource;
use http::request::Parts;

/// The address of a request's client, as an extension of the request: for flow schemas that tell flows apart by it. Without it, the
/// user stands for the address.
///
/// ```
/// use evenkeel::identify::ClientAddress;
///
/// let address = ClientAddress::from(std::net::IpAddr::from([192, 0, 2, 7]));
/// let request = http::Request::builder().extension(address).body(()).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAddress(Box<str>);

// === impl ClientAddress ===

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(address.to_canonical().to_string().into())
    }
}

/// The head of a request as flow schemas see it: its headers, and the [`ClientAddress`] among its extensions. A layer decides by this one.
///
/// ```
/// use evenkeel::digest::PartsHead;
/// use evenkeel_engine::RequestHead;
///
/// let (parts, ()) = http::Request::builder().header("X-Plan", "gold").body(()).unwrap().into_parts();
/// let head = PartsHead::new(&parts);
/// assert_eq!(RequestHead::borrowed(&head).header("x-plan"), Some("gold"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PartsHead<'a>(pub(crate) &'a Parts);

// === impl PartsHead ===

impl<'a> PartsHead<'a> {
    /// The head of this request.
    pub fn new(parts: &'a Parts) -> Self {
        Self(parts)
    }
}

impl HeadSource for PartsHead<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.0.headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        // With several values, it is not known which one the service would use.
        values.next().is_none().then_some(value)
    }

    fn address(&self) -> Option<&str> {
        self.0.extensions.get::<ClientAddress>().map(|address| &*address.0)
    }
}
