//! `ClassificationTest`: a request, and the schema, level, flow and seats that are expected for it.

use serde::{Deserialize, Serialize};

use crate::finding::SourceLocation;
use crate::request::Request;

/// A test: `kind: ClassificationTest` of `evenkeel.dev/v1`.
///
/// Not `#[non_exhaustive]`: code that reads tests from a file makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassificationTest {
    /// The name of the test.
    pub name: String,
    /// The request.
    pub request: Request,
    /// The expected classification.
    pub expect: Expectation,
    /// Where the test is.
    pub place: SourceLocation,
}

/// The expected classification of a request. A field that is absent is not compared.
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
