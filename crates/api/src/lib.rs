//! The objects of API Priority and Fairness, as Evenkeel and Kubernetes share them.
//!
//! There are two kinds. A [`FlowSchema`](v1::FlowSchema) says which requests belong together and to which priority
//! level they go; a [`PriorityLevelConfiguration`](v1::PriorityLevelConfiguration) says how many seats a level has and
//! what happens when they are taken. Both come in four versions, of which [`v1`] is the hub: everything is converted to
//! it, and only it is validated, stored and used.
//!
//! | to | use |
//! |---|---|
//! | read a manifest, with everything that is wrong in it | [`decode::Manifest`] |
//! | read the body of a request | [`decode::parse_json`], [`decode::parse_yaml`], [`decode::Document::decode`] |
//! | write an object in another version | [`Object::in_version`] |
//! | fill in defaults, convert, validate | [`Defaulted`], [`Wire`], [`validate`] |
//! | make an object in Rust | [`v1::FlowSchema::builder`], [`v1::PriorityLevelConfiguration::builder`] |
//! | have a list of objects | [`List`], [`v1::FlowSchemaList`], [`v1::PriorityLevelConfigurationList`] |
//! | write or read Kubernetes' protobuf | [`Object::to_protobuf`], [`decode::parse_protobuf`], [`protobuf`] |
//! | have the objects that every server starts with | [`bootstrap`], [`Preset`] |
//! | know what an object chooses that Kubernetes does not have | [`annotations`] |
//! | know what fields there are, or get OpenAPI and JSON Schema | [`schema`] |
//!
//! Objects and their parts can be written as literals: all have a `Default`, so end them with `..Default::default()`, since
//! releases add the fields that Kubernetes adds.
//!
//! The crate does no I/O and knows no runtime. The feature `k8s-openapi` adds conversions to and from the types of the
//! crate of that name.
//!
//! ```
//! use evenkeel_api::decode::{Manifest, Strictness};
//! use evenkeel_api::{AnyObject, Version};
//!
//! let manifest = Manifest::read("tenants.yaml", b"
//! apiVersion: flowcontrol.apiserver.k8s.io/v1beta2
//! kind: PriorityLevelConfiguration
//! metadata:
//!   name: tenants
//! spec:
//!   type: Limited
//!   limited:
//!     assuredConcurrencyShares: 40
//!     limitResponse:
//!       type: Reject
//! ", Strictness::Strict)?;
//! let AnyObject::PriorityLevelConfiguration(level) = &manifest.entries[0].object else { unreachable!() };
//! assert_eq!(level.spec.limited.as_ref().unwrap().nominal_concurrency_shares, Some(40));
//! let text = serde_json::to_string(&level.in_version(Version::V1beta3))?;
//! assert!(text.contains(r#""nominalConcurrencyShares":40"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod any_object;
mod convert;
mod defaulting;
mod group;
mod list;
mod model_name;
mod object;
mod path;
mod preset;

pub mod annotations;
pub mod bootstrap;
pub mod build;
pub mod decode;
pub mod duration;
#[cfg(feature = "k8s-openapi")]
pub mod k8s_openapi;
pub mod meta;
pub mod protobuf;
pub mod schema;
pub mod short;
pub mod spelling;
pub mod v1;
pub mod v1beta1;
pub mod v1beta2;
pub mod v1beta3;
pub mod validate;

pub use any_object::AnyObject;
pub use convert::{HubSpec, Wire, WrittenIn};
pub use defaulting::Defaulted;
pub use group::{GROUP, Kind, UnknownKind, UnknownVersion, Version};
pub use list::List;
pub use model_name::model_namespace;
pub use object::{InVersion, Object, Spec};
pub use path::Path;
pub use preset::{Preset, UnknownPreset};

/// Tests the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
