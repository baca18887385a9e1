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
    /// The older of the two.
    OllamaEmbeddings,
}

/// Where a response says how many tokens it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    Nowhere,
    AtTheEnd,
    /// And in each chunk of a stream, as vLLM does if it is asked.
    InEachChunk,
}

/// The content of a request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) api: ModelApi,
    pub(super) model: String,
    pub(super) is_stream: bool,
    usage: Usage,
    /// Who asks, as far as the body says; else nothing.
    pub(super) tenant: String,
    pub(super) prompt_tokens: usize,
    /// How many of these the server has read before.
    pub(super) cached_tokens: usize,
    pub(super) tokens: usize,
    /// The name of a tool, if the request has some: the response calls it.
    tool: Option<String>,
}

/// How long a response is that has no limit.
const TOKENS: usize = 64;
const ID: &str = "sample-1";
/// A model that never says how many tokens a response has, and one that has read half of every prompt before.
const WITHOUT_USAGE: &str = "no-usage";
const CACHED: &str = "cached";

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
        let model = body["model"].as_str().ok_or("`model` is missing")?.to_owned();
        let is_stream = !api.is_ollama_embedding() && body["stream"].as_bool().unwrap_or(api.is_ollama());
        let option = |name: &str| body["stream_options"][name].as_bool() == Some(true);
        let has_options = is_stream && matches!(api, ModelApi::Chat | ModelApi::Completions);
        let usage = if model == WITHOUT_USAGE {
            Usage::Nowhere
        } else if !has_options {
            Usage::AtTheEnd
        } else if option("continuous_usage_stats") {
            Usage::InEachChunk
        } else if option("include_usage") {
            Usage::AtTheEnd
        } else {
            Usage::Nowhere
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
    pub(super) fn is_embedding(&self) -> bool {
        self.api == ModelApi::Embeddings || self.api.is_ollama_embedding()
    }

    /// The usage of the APIs of `OpenAI`.
    fn usage(&self, tokens: usize) -> Value {
        if self.usage == Usage::Nowhere {
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
    fn anthropic_usage(&self, tokens: usize) -> Value {
        match self.usage {
            Usage::Nowhere => Value::Null,
            _ => json!({"input_tokens": self.prompt_tokens - self.cached_tokens,
                        "cache_read_input_tokens": self.cached_tokens, "output_tokens": tokens}),
        }
    }

    /// A response that is no stream.
    pub(super) fn response(&self, tokens: usize) -> Value {
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
            if self.usage != Usage::Nowhere {
                (line["prompt_eval_count"], line["eval_count"]) = (self.prompt_tokens.into(), tokens.into());
            }
        }
        line
    }

    /// The beginning of a stream.
    pub(super) fn stream_start(&self) -> String {
        let model = &self.model;
        match self.api {
            ModelApi::Chat => self.chunk(&json!({"role": "assistant", "content": ""}), None, 0),
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
                    "stop_reason": null, "stop_sequence": null, "usage": self.anthropic_usage(1)});
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

    /// Some tokens of a stream, after so many others; the first of it have something that the others have not.
    pub(super) fn stream_piece(&self, tokens: usize, before: usize) -> String {
        let (is_first, so_far) = (before == 0, before + tokens);
        let text = words(tokens);
        match (self.api, &self.tool) {
            (ModelApi::Chat, Some(name)) if is_first => {
                let call = json!({"index": 0, "id": "call-1", "type": "function", "function": {"name": name, "arguments": "{\"city\":\"Oslo\"}"}});
                self.chunk(&json!({"tool_calls": [call]}), None, so_far)
            }
            (ModelApi::Chat, Some(_)) => {
                self.chunk(&json!({"tool_calls": [{"index": 0, "function": {"arguments": " "}}]}), None, so_far)
            }
            (ModelApi::Chat, None) => self.chunk(&json!({"content": text}), None, so_far),
            (ModelApi::Completions, _) => self.with_usage_so_far(
                json!({"id": ID, "object": "text_completion", "created": 1, "model": self.model,
                       "choices": [{"index": 0, "text": text, "finish_reason": null}]}),
                so_far,
            ),
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

    /// The end of a stream.
    pub(super) fn stream_end(&self, tokens: usize) -> String {
        match self.api {
            ModelApi::Chat | ModelApi::Completions => {
                let reason = if self.tool.is_some() { "tool_calls" } else { "stop" };
                let last = if self.api == ModelApi::Chat {
                    self.chunk(&json!({}), Some(reason), tokens)
                } else {
                    String::new()
                };
                let object = if self.api == ModelApi::Chat { "chat.completion.chunk" } else { "text_completion" };
                let usage = data(
                    &json!({"id": ID, "object": object, "created": 1, "model": self.model, "choices": [], "usage": self.usage(tokens)}),
                );
                last + if self.usage == Usage::Nowhere { "" } else { &usage } + "data: [DONE]\n\n"
            }
            ModelApi::Responses => {
                let response = self.response_object("completed", &words(tokens), &self.usage(tokens));
                event(
                    "response.completed",
                    &json!({"type": "response.completed", "sequence_number": 2, "response": response}),
                )
            }
            ModelApi::Messages => {
                let reason = if self.tool.is_some() { "tool_use" } else { "end_turn" };
                let usage = match self.usage {
                    Usage::Nowhere => Value::Null,
                    _ => json!({"output_tokens": tokens}),
                };
                event("content_block_stop", &json!({"type": "content_block_stop", "index": 0}))
                    + &event(
                        "message_delta",
                        &json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": usage}),
                    )
                    + &event("message_stop", &json!({"type": "message_stop"}))
            }
            _ => format!("{}\n", self.ollama("", Some(tokens))),
        }
    }

    fn chunk(&self, delta: &Value, reason: Option<&str>, so_far: usize) -> String {
        let chunk = json!({"id": ID, "object": "chat.completion.chunk", "created": 1, "model": self.model,
                           "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        self.with_usage_so_far(chunk, so_far)
    }

    /// An event of a stream that has had so many tokens.
    fn with_usage_so_far(&self, mut chunk: Value, tokens: usize) -> String {
        if self.usage == Usage::InEachChunk {
            chunk["usage"] = self.usage(tokens);
        }
        data(&chunk)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(api: ModelApi, body: &Value) -> Asked {
        Asked::read(api, body.to_string().as_bytes()).unwrap()
    }

    fn events(stream: &str) -> Vec<Value> {
        stream.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
    }

    #[test]
    fn streams_say_how_many_tokens_they_have_where_they_are_asked_to() {
        let body = |options: Value| json!({"model": "m", "messages": [{"content": "x".repeat(38)}], "stream": true, "stream_options": options});
        let stream = |options: Value| {
            let asked = asked(ModelApi::Chat, &body(options));
            events(&(asked.stream_piece(3, 0) + &asked.stream_piece(2, 3) + &asked.stream_end(5)))
                .iter()
                .filter_map(|event| event["usage"]["completion_tokens"].as_u64())
                .collect::<Vec<_>>()
        };
        assert_eq!(stream(Value::Null), [0_u64; 0]);
        assert_eq!(stream(json!({"include_usage": true})), [5]);
        assert_eq!(stream(json!({"include_usage": true, "continuous_usage_stats": true})), [3, 5, 5, 5]);
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
