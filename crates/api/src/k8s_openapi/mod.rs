//! Conversions to and from the types of the `k8s-openapi` crate, with the feature `k8s-openapi`.
//!
//! `From` is there in both directions for the objects of version `v1`, their lists and their parts, so that they can
//! be given to a client such as kube-rs, and taken from one. This crate picks no Kubernetes version: the program
//! that turns the feature on does, with one of that crate's own features.
//!
//! ```
//! use evenkeel_api::v1;
//! use k8s_openapi::api::flowcontrol::v1 as k8s;
//!
//! let ours = v1::FlowSchema::builder("batch").priority_level("workload-low").by_user().build();
//! let theirs = k8s::FlowSchema::from(ours.clone());
//! assert_eq!(theirs.metadata.name.as_deref(), Some("batch"));
//! assert_eq!(v1::FlowSchema::from(theirs), ours);
//! ```
//!
//! Nothing of ours is lost on the way to theirs and back, except that their times end a day before ours, in the
//! evening of 9999-12-30. What is lost of theirs means nothing to the API: `metadata.namespace` and
//! `metadata.selfLink`, fractions of a second, and whether an empty text, list, map or status was there or not.

mod flow_schema;
mod list;
mod member;
mod meta;
mod priority_level;

/// Writes down that two types mean the same, member by member, and how each member goes from one to the other: one
/// of the modules of [`member`]. What stands behind `..` is filled in for members that only theirs has.
macro_rules! same_type {
    ($Ours:ty = $Theirs:ty { $($ours:ident = $theirs:ident: $how:ident,)+ $(..$rest:expr)? }) => {
        impl From<$Ours> for $Theirs {
            fn from(ours: $Ours) -> Self {
                Self { $($theirs: crate::k8s_openapi::member::$how::into_theirs(ours.$ours),)+ $(..$rest)? }
            }
        }

        impl From<$Theirs> for $Ours {
            fn from(theirs: $Theirs) -> Self {
                Self { $($ours: crate::k8s_openapi::member::$how::into_ours(theirs.$theirs),)+ }
            }
        }
    };
}

/// The same for a whole object, given the type of its specification: some Kubernetes versions require it, some do not.
macro_rules! same_object {
    ($Ours:ty = $Theirs:ty, $Spec:ty) => {
        impl From<$Ours> for $Theirs {
            fn from(ours: $Ours) -> Self {
                let spec = crate::k8s_openapi::member::Present::present(<$Spec>::from(ours.spec));
                let status = (ours.status != crate::v1::Status::default()).then(|| ours.status.into());
                Self { metadata: ours.metadata.into(), spec, status }
            }
        }

        impl From<$Theirs> for $Ours {
            fn from(theirs: $Theirs) -> Self {
                let spec = crate::k8s_openapi::member::Present::<$Spec>::or_default(theirs.spec);
                let mut ours = Self::new(theirs.metadata.into(), spec.into());
                ours.status = theirs.status.map(Into::into).unwrap_or_default();
                ours
            }
        }
    };
}

use {same_object, same_type};
