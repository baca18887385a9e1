//! Names of OpenTelemetry's conventions for generative AI.

/// What requests are for, by how their paths end: those of the APIs of `OpenAI`, Anthropic and Ollama. The first that fits counts.
const OPERATIONS: [(&str, &str); 8] = [
    ("/chat/completions", CHAT),
    ("/completions", TEXT_COMPLETION),
    ("/responses", CHAT),
    ("/messages", CHAT),
    ("/chat", CHAT),
    ("/generate", TEXT_COMPLETION),
    ("/embeddings", EMBEDDINGS),
    ("/embed", EMBEDDINGS),
];

const CHAT: &str = "chat";
const TEXT_COMPLETION: &str = "text_completion";
const EMBEDDINGS: &str = "embeddings";

/// The name of what a request for this path does; `None` if the path is of none of the known APIs.
pub(super) fn operation(path: &str) -> Option<&'static str> {
    let path = path.trim_end_matches('/');
    OPERATIONS.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_operations() {
        for (path, expected) in [
            ("/v1/chat/completions", Some(CHAT)),
            ("/openai/deployments/big/chat/completions", Some(CHAT)),
            ("/v1/completions/", Some(TEXT_COMPLETION)),
            ("/v1/responses", Some(CHAT)),
            ("/v1/embeddings", Some(EMBEDDINGS)),
            ("/v1/messages", Some(CHAT)),
            ("/api/chat", Some(CHAT)),
            ("/api/generate", Some(TEXT_COMPLETION)),
            ("/api/embed", Some(EMBEDDINGS)),
            ("/api/embeddings", Some(EMBEDDINGS)),
            ("/v1/rerank", None),
            ("chat", None),
            ("/", None),
        ] {
            assert_eq!(operation(path), expected, "{path}");
        }
    }
}
