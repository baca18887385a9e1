//! The form of the gateway's own error responses, and which web pages may read them.

use evenkeel_api::Preset;
use serde::{Deserialize, Serialize};

/// The gateway's own error responses: 401, 403, 429, 502 to 504, and others.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ResponsesConfig {
    /// The form of their bodies. The default is `problem`, `llm` under the preset `llm`, and `status` under the preset `kubernetes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ResponseFormat>,
    /// The body of the format `template`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<ResponseTemplate>,
    /// Whether all responses have the fields `RateLimit` and `RateLimit-Policy`, which tell clients how much they may still take.
    pub rate_limit_fields: bool,
}

/// The form of an error response's body. gRPC calls get a status of gRPC, whatever this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResponseFormat {
    /// A `Status` object of Kubernetes.
    Status,
    /// Problem details (RFC 9457).
    Problem,
    /// Errors as the API of `OpenAI` has them, which its clients understand.
    OpenAi,
    /// Errors as the API of Anthropic has them, which its clients understand.
    Anthropic,
    /// Errors as the API that a request is for has them: `OpenAI`'s, Anthropic's or Ollama's, by its path and headers.
    Llm,
    /// A text of one's own.
    Template,
}

/// A body of one's own, with places for what happened: `{{status}}`, `{{title}}`, `{{message}}`, `{{reason}}`, `{{level}}` and
/// `{{retryAfterSeconds}}`.
///
/// Not `#[non_exhaustive]`: it is a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ResponseTemplate {
    /// The type of the body, by which values are escaped: JSON, HTML, XML or plain text.
    pub content_type: String,
    /// The body.
    pub body: String,
}

/// What web pages of other origins may do (CORS).
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CorsConfig {
    /// Origins whose pages may read the gateway's own error responses, as `https://app.example`; `*` is every origin. Responses of
    /// upstreams are passed on as they are.
    pub origins: Vec<String>,
    /// How preflight requests are treated, which browsers send without credentials.
    pub preflights: Preflights,
}

/// The treatment of preflight requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Preflights {
    /// Preflight requests have to be authenticated as other requests.
    #[default]
    Authenticate,
    /// Preflight requests are passed on as anonymous requests.
    Pass,
}

// === impl ResponsesConfig ===

impl ResponsesConfig {
    /// The form under a preset.
    pub fn format(&self, preset: Preset) -> ResponseFormat {
        self.format.unwrap_or(match preset {
            Preset::Plain => ResponseFormat::Problem,
            Preset::Llm => ResponseFormat::Llm,
            Preset::Kubernetes => ResponseFormat::Status,
        })
    }
}
