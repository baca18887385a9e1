//! The settings: who is calling ([`IdentityConfig`]), and what requests ask for and cost ([`RequestsConfig`]).
//!
//! Every field has a default, so that a file says only what is different. A name that is not known is a mistake.

mod check;
mod cidr;
mod cost_unit;
pub mod duration;
mod header;
mod hide_credentials;
mod keys_from;
mod requests;
mod sources;

pub use check::Problem;
pub use cidr::{Cidr, masked};
pub use hide_credentials::hide_credentials;
pub use keys_from::KeysFrom;
pub use requests::{
    PathParametersConfig, Paths, RequestIdFrom, RequestsConfig, RouteConfig, RouteTimeouts, WhenClientLeaves,
};
pub use sources::{
    AddressIdentity, AnonymousRequests, ApiKeyIdentity, CertificateIdentity, HeaderIdentity, IdentityConfig,
    IdentitySource, JwtIdentity, SystemNames, TokenIdentity,
};
