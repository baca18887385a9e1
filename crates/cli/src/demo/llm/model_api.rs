//! The APIs of language models, as the sample server speaks them: what is asked, and how responses look.

use serde_json::{Value, json};

/// An API.
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
}

/// What a request asks for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) api: ModelApi,
    pub(super) model: String,
    pub(super) is_stream: bool,
    /// Whether a stream ends with its usage.
    pub(super) with_usage: bool,
    pub(super) prompt_tokens: usize,
    pub(super) tokens: usize,
    /// The name of a tool, if the request has some: the response calls it.
    tool: Option<String>,
}

/// How long a response is that has no limit.
const TOKENS: usize = 64;
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
            _ => return None,
        })
    }

    fn is_ollama(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaGenerate | Self::OllamaEmbed)
    }

    pub(super) fn stream_type(self) -> &'static str {
        if self.is_ollama() { "application/x-ndjson" } else { "text/event-stream" }
    }
}

// === impl Asked ===

impl Asked {
    /// Reads a request. Four characters are a token.
    pub(super) fn read(api: ModelApi, body: &[u8]) -> Result<Self, String> {
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
        Ok(Self {
            api,
            model: body["model"].as_str().ok_or("`model` is missing")?.to_owned(),
            is_stream: body["stream"].as_bool().unwrap_or(api.is_ollama() && api != ModelApi::OllamaEmbed),
            with_usage: !matches!(api, ModelApi::Chat | ModelApi::Completions)
                || body["stream_options"]["include_usage"].as_bool() == Some(true),
            prompt_tokens: characters.div_ceil(4).max(1),
            tokens: limits.into_iter().find_map(number).unwrap_or(TOKENS),
            tool: tool.map(ToOwned::to_owned),
        })
    }

    /// Whether it generates anything.
    pub(super) fn is_embedding(&self) -> bool {
        matches!(self.api, ModelApi::Embeddings | ModelApi::OllamaEmbed)
    }

    /// A response that is no stream.
    pub(super) fn response(&self, tokens: usize) -> Value {
        let (prompt, text) = (self.prompt_tokens, words(tokens));
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens});
        let usage_in_out = json!({"input_tokens": prompt, "output_tokens": tokens, "total_tokens": prompt + tokens});
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
            ModelApi::Responses => self.response_object("completed", &text, &usage_in_out),
            ModelApi::Embeddings => json!({"object": "list", "model": model,
                "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}],
                "usage": {"prompt_tokens": prompt, "total_tokens": prompt}}),
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
                       "usage": {"input_tokens": prompt, "output_tokens": tokens}})
            }
            ModelApi::OllamaChat | ModelApi::OllamaGenerate => self.ollama(&text, Some(tokens)),
            ModelApi::OllamaEmbed => json!({"model": model, "embeddings": [[0.25, -0.5]], "prompt_eval_count": prompt}),
        }
    }

    fn response_object(&self, status: &str, text: &str, usage: &Value) -> Value {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        json!({"id": ID, "object": "response", "created_at": 1, "model": self.model, "status": status, "usage": usage,
               "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
               "output": [{"id": "m", "type": "message", "role": "assistant", "status": status, "content": content}]})
    }

    /// A line of Ollama; with the number of tokens, the last one.
    fn ollama(&self, text: &str, tokens: Option<usize>) -> Value {
        let mut line = json!({"model": self.model, "created_at": "2026-01-01T00:00:00Z", "done": tokens.is_some()});
        if self.api == ModelApi::OllamaChat {
            line["message"] = json!({"role": "assistant", "content": text});
        } else {
            line["response"] = text.into();
        }
        if let Some(tokens) = tokens {
            line["done_reason"] = "stop".into();
            (line["prompt_eval_count"], line["eval_count"]) = (self.prompt_tokens.into(), tokens.into());
        }
        line
    }

    /// What a stream begins with.
    pub(super) fn stream_start(&self) -> String {
        let model = &self.model;
        match self.api {
            ModelApi::Chat => self.chunk(&json!({"role": "assistant", "content": ""}), None),
            ModelApi::Responses => {
                let response = json!({"id": ID, "object": "response", "created_at": 1, "model": model, "status": "in_progress",
                    "output": [], "usage": null, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []});
                event(
                    "response.created",
                    &json!({"type": "response.created", "sequence_number": 0, "response": response}),
                )
            }
            ModelApi::Messages => {
                let message = json!({"id": ID, "type": "message", "role": "assistant", "model": model, "content": [],
                    "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": self.prompt_tokens, "output_tokens": 1}});
                let block = match &self.tool {
                    Some(name) => json!({"type": "tool_use", "id": "call-1", "name": name, "input": {}}),
                    None => json!({"type": "text", "text": ""}),
                };
                event("message_start", &json!({"type": "message_start", "message": message}))
                    + &event(
                        "content_block_start",
                        &json!({"type": "content_block_start", "index": 0, "content_block": block}),
                    )
                    + &event("ping", &json!({"type": "ping"}))
            }
            _ => String::new(),
        }
    }

    /// Some tokens of a stream; the first of it have something that the others have not.
    pub(super) fn stream_piece(&self, tokens: usize, is_first: bool) -> String {
        let text = words(tokens);
        match (self.api, &self.tool) {
            (ModelApi::Chat, Some(name)) if is_first => {
                let call = json!({"index": 0, "id": "call-1", "type": "function", "function": {"name": name, "arguments": "{\"city\":\"Oslo\"}"}});
                self.chunk(&json!({"tool_calls": [call]}), None)
            }
            (ModelApi::Chat, Some(_)) => {
                self.chunk(&json!({"tool_calls": [{"index": 0, "function": {"arguments": " "}}]}), None)
            }
            (ModelApi::Chat, None) => self.chunk(&json!({"content": text}), None),
            (ModelApi::Completions, _) => {
                data(&json!({"id": ID, "object": "text_completion", "created": 1, "model": self.model,
                "choices": [{"index": 0, "text": text, "finish_reason": null}]}))
            }
            (ModelApi::Responses, _) => event(
                "response.output_text.delta",
                &json!({"type": "response.output_text.delta",
                "sequence_number": 1, "item_id": "m", "output_index": 0, "content_index": 0, "delta": text, "logprobs": []}),
            ),
            (ModelApi::Messages, Some(_)) => {
                let json = if is_first { "{\"city\":\"Oslo\"}" } else { " " };
                event(
                    "content_block_delta",
                    &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json}}),
                )
            }
            (ModelApi::Messages, None) => event(
                "content_block_delta",
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            ),
            (_, _) => format!("{}\n", self.ollama(&text, None)),
        }
    }

    /// What a stream ends with.
    pub(super) fn stream_end(&self, tokens: usize) -> String {
        let prompt = self.prompt_tokens;
        match self.api {
            ModelApi::Chat | ModelApi::Completions => {
                let reason = if self.tool.is_some() { "tool_calls" } else { "stop" };
                let last =
                    if self.api == ModelApi::Chat { self.chunk(&json!({}), Some(reason)) } else { String::new() };
                let usage =
                    json!({"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens});
                let object = if self.api == ModelApi::Chat { "chat.completion.chunk" } else { "text_completion" };
                let usage = data(
                    &json!({"id": ID, "object": object, "created": 1, "model": self.model, "choices": [], "usage": usage}),
                );
                last + if self.with_usage { &usage } else { "" } + "data: [DONE]\n\n"
            }
            ModelApi::Responses => {
                let usage = json!({"input_tokens": prompt, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens,
                    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": prompt + tokens});
                let response = self.response_object("completed", &words(tokens), &usage);
                event(
                    "response.completed",
                    &json!({"type": "response.completed", "sequence_number": 2, "response": response}),
                )
            }
            ModelApi::Messages => {
                let reason = if self.tool.is_some() { "tool_use" } else { "end_turn" };
                event("content_block_stop", &json!({"type": "content_block_stop", "index": 0}))
                    + &event(
                        "message_delta",
                        &json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": tokens}}),
                    )
                    + &event("message_stop", &json!({"type": "message_stop"}))
            }
            _ => format!("{}\n", self.ollama("", Some(tokens))),
        }
    }

    fn chunk(&self, delta: &Value, reason: Option<&str>) -> String {
        data(&json!({"id": ID, "object": "chat.completion.chunk", "created": 1, "model": self.model,
                     "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}))
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

fn words(tokens: usize) -> String {
    "word ".repeat(tokens)
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn event(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}
