//! Responses that are not streams.

use serde_json::{Value, json};

use super::usage::UsageReport;
use super::{Asked, ID, ModelApi, words};

// === impl Asked ===

impl Asked {
    /// A response that is not a stream.
    pub(crate) fn response(&self, tokens: usize) -> Value {
        let (text, usage) = (words(tokens), self.usage(tokens));
        let model = &self.model;
        match self.api {
            ModelApi::Chat => {
                let (message, reason) = match &self.tool {
                    Some(name) => {
                        let call = json!({"id": "call-1", "type": "function", "function": {"name": name, "arguments": "{\"city\":\"Oslo\"}"}});
                        (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
                    }
                    None => (json!({"role": "assistant", "content": text}), "stop"),
                };
                json!({"id": ID, "object": "chat.completion", "created": 1, "model": model, "usage": usage,
                       "choices": [{"index": 0, "message": message, "finish_reason": reason}]})
            }
            ModelApi::Completions => {
                json!({"id": ID, "object": "text_completion", "created": 1, "model": model, "usage": usage,
                "choices": [{"index": 0, "text": text, "finish_reason": "stop", "logprobs": null}]})
            }
            ModelApi::Responses => self.response_object("completed", &text, &usage),
            ModelApi::Embeddings => json!({"object": "list", "model": model,
                "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}], "usage": usage}),
            ModelApi::Messages => {
                let (content, reason) = match &self.tool {
                    Some(name) => (
                        json!([{"type": "tool_use", "id": "call-1", "name": name, "input": {"city": "Oslo"}}]),
                        "tool_use",
                    ),
                    None => (json!([{"type": "text", "text": text}]), "end_turn"),
                };
                json!({"id": ID, "type": "message", "role": "assistant", "model": model, "content": content,
                       "stop_reason": reason, "stop_sequence": null,
                       "usage": self.anthropic_usage(tokens)})
            }
            ModelApi::OllamaChat | ModelApi::OllamaGenerate => self.ollama(&text, Some(tokens)),
            ModelApi::OllamaEmbed => {
                json!({"model": model, "embeddings": [[0.25, -0.5]], "prompt_eval_count": self.prompt_tokens})
            }
            ModelApi::OllamaEmbeddings => json!({"embedding": [0.25, -0.5]}),
        }
    }

    pub(super) fn response_object(&self, status: &str, text: &str, usage: &Value) -> Value {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        json!({"id": ID, "object": "response", "created_at": 1, "model": self.model, "status": status, "usage": usage,
               "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
               "output": [{"id": "m", "type": "message", "role": "assistant", "status": status, "content": content}]})
    }

    /// A line of Ollama; the last line has the number of tokens.
    pub(super) fn ollama(&self, text: &str, tokens: Option<usize>) -> Value {
        let mut line = json!({"model": self.model, "created_at": "2026-01-01T00:00:00Z", "done": tokens.is_some()});
        if self.api == ModelApi::OllamaChat {
            line["message"] = json!({"role": "assistant", "content": text});
        } else {
            line["response"] = text.into();
        }
        if let Some(tokens) = tokens {
            line["done_reason"] = "stop".into();
            if self.usage != UsageReport::Nowhere {
                (line["prompt_eval_count"], line["eval_count"]) = (self.prompt_tokens.into(), tokens.into());
            }
        }
        line
    }
}
