//! `Asked`: the content of a request to a model.

use serde_json::Value;

use super::ModelApi;
use super::usage::UsageReport;

/// The content of a request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) api: ModelApi,
    pub(crate) model: String,
    pub(crate) is_stream: bool,
    pub(super) usage: UsageReport,
    /// The user that the body names; empty if it names none.
    pub(crate) tenant: String,
    pub(crate) prompt_tokens: usize,
    /// How many tokens of the prompt are in the server's cache.
    pub(crate) cached_tokens: usize,
    pub(crate) tokens: usize,
    /// The name of the request's first tool, if it has tools: the response calls it.
    pub(super) tool: Option<String>,
}

/// The length of a response without a limit, in tokens.
const TOKENS: usize = 64;
/// The names of two models: one never reports usage, the other has half of every prompt in its cache.
const WITHOUT_USAGE: &str = "no-usage";
const CACHED: &str = "cached";

// === impl Asked ===

impl Asked {
    /// Reads a request. Four characters are a token.
    pub(crate) fn read(api: ModelApi, body: &[u8]) -> Result<Self, String> {
        let body: Value = serde_json::from_slice(body).map_err(|error| format!("not JSON: {error}"))?;
        let number = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        let limits = [
            &body["max_tokens"],
            &body["max_completion_tokens"],
            &body["max_output_tokens"],
            &body["options"]["num_predict"],
        ];
        let text = [&body["messages"], &body["prompt"], &body["input"], &body["system"], &body["tools"]];
        let characters: usize = text.into_iter().map(characters).sum();
        let tool = &body["tools"][0];
        let tool = tool["function"]["name"].as_str().or(tool["name"].as_str());
        let model = body["model"].as_str().ok_or("`model` is missing")?.to_owned();
        let is_stream = !api.is_ollama_embedding() && body["stream"].as_bool().unwrap_or(api.is_ollama());
        let option = |name: &str| body["stream_options"][name].as_bool() == Some(true);
        let has_options = is_stream && matches!(api, ModelApi::Chat | ModelApi::Completions);
        let usage = if model == WITHOUT_USAGE {
            UsageReport::Nowhere
        } else if !has_options {
            UsageReport::AtTheEnd
        } else if option("continuous_usage_stats") {
            UsageReport::InEachChunk
        } else if option("include_usage") {
            UsageReport::AtTheEnd
        } else {
            UsageReport::Nowhere
        };
        let prompt_tokens = characters.div_ceil(4).max(1);
        let tenant = body["user"].as_str().or(body["metadata"]["user_id"].as_str());
        Ok(Self {
            api,
            is_stream,
            usage,
            tenant: tenant.unwrap_or_default().to_owned(),
            prompt_tokens,
            cached_tokens: if model == CACHED { prompt_tokens / 2 } else { 0 },
            model,
            tokens: limits.into_iter().find_map(number).unwrap_or(TOKENS),
            tool: tool.map(ToOwned::to_owned),
        })
    }

    /// Whether it generates anything.
    pub(crate) fn is_embedding(&self) -> bool {
        self.api == ModelApi::Embeddings || self.api.is_ollama_embedding()
    }
}

/// How many characters the texts in a value have.
fn characters(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.iter().map(characters).sum(),
        Value::Object(members) => members.values().map(characters).sum(),
        _ => 0,
    }
}
