//! `Usage`: how many tokens a server says that a request took (LM-4).

use super::json_scan::{Key, Scalar};

/// The tokens of a request, as its server reports them; a later report replaces an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Usage {
    /// The tokens of the prompt, with or without the cached ones: that depends on the API.
    input: Option<f64>,
    /// The part of `input` that was cached.
    cached_in_input: f64,
    /// Cached tokens that `input` leaves out (Anthropic).
    cache_read: f64,
    /// Tokens that `input` leaves out, and that were put into the cache (Anthropic).
    cache_creation: f64,
    output: Option<f64>,
}

/// More tokens than this are not believed.
const TOKENS_MAX: f64 = 1e9;

// === impl Usage ===

impl Usage {
    /// Takes a number of a report. Whether it says how many tokens the response has so far.
    pub(super) fn note(&mut self, path: &[Key], value: Scalar<'_>) -> bool {
        let Scalar::Number(tokens) = value else { return false };
        if !(0.0..=TOKENS_MAX).contains(&tokens) {
            return false;
        }
        let of_usage = match path {
            // Reports are at the top, in `response` (OpenAI's responses) or in `message` (the start of Anthropic's).
            [Key::Usage, of_usage @ ..] | [Key::Response | Key::Message, Key::Usage, of_usage @ ..] => of_usage,
            [Key::PromptEvalCount] => &[Key::PromptTokens],
            [Key::EvalCount] => &[Key::CompletionTokens],
            _ => return false,
        };
        match of_usage {
            [Key::PromptTokens | Key::InputTokens] => self.input = Some(tokens),
            [Key::PromptTokensDetails | Key::InputTokensDetails, Key::CachedTokens] => self.cached_in_input = tokens,
            [Key::CacheReadInputTokens] => self.cache_read = tokens,
            [Key::CacheCreationInputTokens] => self.cache_creation = tokens,
            [Key::CompletionTokens | Key::OutputTokens] => {
                self.output = Some(tokens);
                return true;
            }
            _ => {}
        }
        false
    }

    /// The whole prompt, if it is known.
    pub(crate) fn prompt(&self) -> Option<f64> {
        Some(self.input? + self.cache_read + self.cache_creation)
    }

    /// The part of the prompt that the server had in its cache.
    pub(crate) fn cached(&self) -> f64 {
        self.cache_read + self.cached_in_input.min(self.input.unwrap_or_default())
    }

    /// The response so far, if it is known.
    pub(crate) fn output(&self) -> Option<f64> {
        self.output
    }
}
