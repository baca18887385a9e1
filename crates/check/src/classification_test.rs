//! Tests of the classification: a request, and what is to become of it.

use serde::{Deserialize, Serialize};

use crate::finding::SourceLocation;
use crate::request::Request;

/// A test: `kind: ClassificationTest` of `evenkeel.dev/v1`.
///
/// Not `#[non_exhaustive]`: whoever reads tests from a file makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassificationTest {
    /// What it is called.
    pub name: String,
    /// The request.
    pub request: Request,
    /// What is to become of it.
    pub expect: Expectation,
    /// Where the test is.
    pub place: SourceLocation,
}

/// What is expected of a request. What is absent is not looked at.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Expectation {
    /// The flow schema.
    pub schema: Option<String>,
    /// The priority level.
    pub level: Option<String>,
    /// The distinguisher of the flow: a user or a namespace, or empty.
    pub flow: Option<String>,
    /// The seats that the request takes, by the estimate for a server without any objects.
    pub seats: Option<u32>,
}
