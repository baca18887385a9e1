//! Streams of responses: their beginning, their pieces and their end.

use serde_json::{Value, json};

use super::usage::UsageReport;
use super::{Asked, ID, ModelApi, words};

// === impl Asked ===

impl Asked {
    /// The beginning of a stream.
    pub(crate) fn stream_start(&self) -> String {
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

    /// The next tokens of a stream, after `before` others. The first piece of a stream has fields of its own.
    pub(crate) fn stream_piece(&self, tokens: usize, before: usize) -> String {
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
    pub(crate) fn stream_end(&self, tokens: usize) -> String {
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
                last + if self.usage == UsageReport::Nowhere { "" } else { &usage } + "data: [DONE]\n\n"
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
                    UsageReport::Nowhere => Value::Null,
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
        if self.usage == UsageReport::InEachChunk {
            chunk["usage"] = self.usage(tokens);
        }
        data(&chunk)
    }
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

    fn events(stream: &str) -> Vec<Value> {
        stream.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
    }

    #[test]
    fn streams_say_how_many_tokens_they_have_where_they_are_asked_to() {
        let body = |options: Value| json!({"model": "m", "messages": [{"content": "x".repeat(38)}], "stream": true, "stream_options": options});
        let stream = |options: Value| {
            let asked = Asked::read(ModelApi::Chat, body(options).to_string().as_bytes()).unwrap();
            events(&(asked.stream_piece(3, 0) + &asked.stream_piece(2, 3) + &asked.stream_end(5)))
                .iter()
                .filter_map(|event| event["usage"]["completion_tokens"].as_u64())
                .collect::<Vec<_>>()
        };
        assert_eq!(stream(Value::Null), [0_u64; 0]);
        assert_eq!(stream(json!({"include_usage": true})), [5]);
        assert_eq!(stream(json!({"include_usage": true, "continuous_usage_stats": true})), [3, 5, 5, 5]);
    }
}
