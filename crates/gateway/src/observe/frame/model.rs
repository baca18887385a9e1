//! A language model in a frame.

use serde::{Deserialize, Serialize};

use super::{is_default, short};

/// A language model behind the gateway.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Model {
    /// The name of the model, as clients have it.
    pub name: String,
    /// The responses that it generates.
    #[serde(skip_serializing_if = "is_default")]
    pub running: u64,
    /// The tokens of prompts whose responses began in the interval, per second.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub prompt: f64,
    /// The tokens of responses, per second.
    #[serde(skip_serializing_if = "is_default", serialize_with = "short")]
    pub output: f64,
}
