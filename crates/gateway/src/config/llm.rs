//! `preset: llm`: what it sets where a settings file says nothing (LM-1, LM-6), and the settings that only it has.

use std::time::Duration;

use evenkeel::cost::CostUnit;
use evenkeel_api::Preset;
use serde::{Deserialize, Serialize};

use super::{Config, ResponseFormat, RouteConfig, Timeouts, WhenClientLeaves};

/// How the tokens of language models are counted. For routes with `cost: tokens`, which the preset `llm` has.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LlmConfig {
    /// How much a token of a prompt counts that the server had in its cache, from 0 to 1.
    pub cached_token_weight: f64,
    /// Whether the gateway changes requests: where a client of `OpenAI`'s chat or completions asks for a stream without its usage, the
    /// gateway asks for it, and the client does not get it.
    pub ask_for_usage: bool,
}

/// An API of language models: the path of its requests, and what they are about.
struct Api {
    path: &'static str,
    resource: &'static str,
}

const APIS: [Api; 9] = [
    // OpenAI's API, which many servers have.
    Api { path: "/v1/chat/completions", resource: "chat" },
    Api { path: "/v1/completions", resource: "completions" },
    Api { path: "/v1/responses", resource: "responses" },
    Api { path: "/v1/embeddings", resource: "embeddings" },
    // Anthropic.
    Api { path: "/v1/messages", resource: "messages" },
    // Ollama.
    Api { path: "/api/chat", resource: "chat" },
    Api { path: "/api/generate", resource: "completions" },
    Api { path: "/api/embed", resource: "embeddings" },
    Api { path: "/api/embeddings", resource: "embeddings" },
];

/// SDKs wait for minutes.
const QUEUE: Duration = Duration::from_secs(120);
/// A response that is no stream begins when its last token is there.
const RESPONSE: Duration = Duration::from_secs(600);
/// A stream may begin long before its first token.
const STALL: Duration = Duration::from_secs(600);
/// SDKs send the name of the model after the messages.
const REQUEST_BUFFER: usize = 1 << 20;

// === impl LlmConfig ===

impl Default for LlmConfig {
    fn default() -> Self {
        Self { cached_token_weight: 0.1, ask_for_usage: false }
    }
}

// === impl Config ===

impl Config {
    /// The default settings of a preset.
    pub fn for_preset(preset: Preset) -> Self {
        let mut config = Self { preset, ..Self::default() };
        config.fill_in(|_| false);
        config
    }

    /// Sets the settings for which the preset has other defaults, unless the file has them: `is_said` tells that of the name of a
    /// setting.
    pub(super) fn fill_in(&mut self, is_said: impl Fn(&str) -> bool) {
        if self.preset != Preset::Llm {
            return;
        }
        let Timeouts { queue, response, stall, .. } = &mut self.timeouts;
        for (field, setting, value) in [
            ("timeouts.queue", queue, QUEUE),
            ("timeouts.response", response, RESPONSE),
            ("timeouts.stall", stall, STALL),
        ] {
            if !is_said(field) {
                *setting = value;
            }
        }
        if !is_said("limits.requestBuffer") {
            // The share of one client in all buffers is the most that can be set.
            self.limits.request_buffer = REQUEST_BUFFER.min(self.limits.buffer_bytes_per_client());
        }
        self.responses.format.get_or_insert(ResponseFormat::Llm);
        self.requests.when_client_leaves.get_or_insert(WhenClientLeaves::Cancel);
        for api in APIS {
            if !self.requests.routes.iter().any(|route| route.path == api.path) {
                self.requests.routes.push(api.route());
            }
        }
    }
}

// === impl Api ===

impl Api {
    fn route(&self) -> RouteConfig {
        RouteConfig {
            resource: Some(self.resource.to_owned()),
            methods: vec!["POST".to_owned()],
            cost: Some(CostUnit::Tokens),
            ..RouteConfig::new(self.path)
        }
    }
}
