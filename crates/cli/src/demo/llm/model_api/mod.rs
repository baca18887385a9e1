//! The APIs of language models, as the sample server speaks them.

mod asked;
mod stream;
mod usage;
mod whole;

pub(super) use asked::Asked;

/// An API of language models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelApi {
    Chat,
    Completions,
    Responses,
    Embeddings,
    Messages,
    OllamaChat,
    OllamaGenerate,
    OllamaEmbed,
    /// The older of Ollama's two APIs for embeddings.
    OllamaEmbeddings,
}

/// The id of every response.
const ID: &str = "sample-1";

// === impl ModelApi ===

impl ModelApi {
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/v1/chat/completions" => Self::Chat,
            "/v1/completions" => Self::Completions,
            "/v1/responses" => Self::Responses,
            "/v1/embeddings" => Self::Embeddings,
            "/v1/messages" => Self::Messages,
            "/api/chat" => Self::OllamaChat,
            "/api/generate" => Self::OllamaGenerate,
            "/api/embed" => Self::OllamaEmbed,
            "/api/embeddings" => Self::OllamaEmbeddings,
            _ => return None,
        })
    }

    fn is_ollama(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaGenerate) || self.is_ollama_embedding()
    }

    fn is_ollama_embedding(self) -> bool {
        matches!(self, Self::OllamaEmbed | Self::OllamaEmbeddings)
    }

    pub(super) fn stream_type(self) -> &'static str {
        if self.is_ollama() { "application/x-ndjson" } else { "text/event-stream" }
    }
}

/// A text of so many tokens.
fn words(tokens: usize) -> String {
    "word ".repeat(tokens)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asked(api: ModelApi, body: &Value) -> Asked {
        Asked::read(api, body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_model_says_nothing_of_tokens_and_another_has_read_half_of_the_prompt() {
        for api in [ModelApi::Chat, ModelApi::Responses, ModelApi::Messages, ModelApi::OllamaChat] {
            let silent = asked(api, &json!({"model": "no-usage", "input": "x".repeat(40)}));
            let all = silent.response(5).to_string() + &silent.stream_end(5);
            assert!(!all.contains("_tokens") && !all.contains("eval_count"), "{all}");
        }
        let cached = asked(ModelApi::Chat, &json!({"model": "cached", "prompt": "x".repeat(80), "user": "ann"}));
        assert_eq!((cached.prompt_tokens, cached.cached_tokens, &*cached.tenant), (20, 10, "ann"));
        assert_eq!(cached.response(5)["usage"]["prompt_tokens_details"]["cached_tokens"], 10);
        let cached = asked(
            ModelApi::Messages,
            &json!({"model": "cached", "system": "x".repeat(80), "metadata": {"user_id": "bob"}}),
        );
        assert_eq!(
            cached.response(5)["usage"],
            json!({"input_tokens": 10, "cache_read_input_tokens": 10, "output_tokens": 5})
        );
        assert_eq!(cached.tenant, "bob");
    }

    #[test]
    fn both_embeddings_of_ollama_are_no_streams() {
        for (path, member) in [("/api/embed", "embeddings"), ("/api/embeddings", "embedding")] {
            let asked = asked(ModelApi::of(path).unwrap(), &json!({"model": "m", "prompt": "x"}));
            assert!(asked.is_embedding() && !asked.is_stream && asked.response(0)[member].is_array(), "{path}");
        }
    }
}
