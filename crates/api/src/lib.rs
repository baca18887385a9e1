//! The objects of API Priority and Fairness.

mod any_object;
mod convert;
mod defaulting;
mod group;
mod object;

pub mod bootstrap;
pub mod build;
#[cfg(feature = "k8s-openapi")]
pub mod k8s_openapi;
pub mod meta;
pub mod schema;
pub mod v1;
pub mod v1beta1;
pub mod v1beta2;
pub mod v1beta3;

pub use any_object::AnyObject;
pub use convert::Wire;
pub use defaulting::Defaulted;
pub use group::{GROUP, Kind, UnknownKind, UnknownVersion, Version};
pub use object::{InVersion, Object, Spec};
