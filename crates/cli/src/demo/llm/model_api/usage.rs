//! What responses say of their tokens.

use serde_json::{Value, json};

use super::{Asked, ModelApi};

/// Where a response says how many tokens it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageReport {
    Nowhere,
    AtTheEnd,
    /// At the end and in each chunk of a stream, as vLLM does on request.
    InEachChunk,
}

// === impl Asked ===

impl Asked {
    /// The usage of the APIs of `OpenAI`.
    pub(super) fn usage(&self, tokens: usize) -> Value {
        if self.usage == UsageReport::Nowhere {
            return Value::Null;
        }
        let prompt = self.prompt_tokens;
        let mut usage = match self.api {
            ModelApi::Responses => {
                json!({"input_tokens": prompt, "input_tokens_details": {"cached_tokens": self.cached_tokens}, "output_tokens": tokens,
                    "output_tokens_details": {"reasoning_tokens": 0}})
            }
            ModelApi::Embeddings => json!({"prompt_tokens": prompt}),
            _ => json!({"prompt_tokens": prompt, "completion_tokens": tokens,
                        "prompt_tokens_details": {"cached_tokens": self.cached_tokens}}),
        };
        usage["total_tokens"] = (prompt + if self.is_embedding() { 0 } else { tokens }).into();
        usage
    }

    /// The usage of Anthropic, which does not count cached tokens among the others.
    pub(super) fn anthropic_usage(&self, tokens: usize) -> Value {
        match self.usage {
            UsageReport::Nowhere => Value::Null,
            _ => json!({"input_tokens": self.prompt_tokens - self.cached_tokens,
                        "cache_read_input_tokens": self.cached_tokens, "output_tokens": tokens}),
        }
    }
}
