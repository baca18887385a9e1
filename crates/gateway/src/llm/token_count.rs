//! `TokenCount`: the tokens of one request, from its arrival to the end of its response.

use super::learnt_models::{LearntModels, TokenRates};
use super::request_facts::RequestFacts;
use super::response_reader::ResponseReader;

/// Counts the tokens of a request while its response passes.
#[derive(Debug)]
pub(crate) struct TokenCount {
    model: Box<str>,
    user: Box<str>,
    output_max: Option<f64>,
    rates: TokenRates,
    prompt_bytes: f64,
    /// Whether the prompt says how many tokens its bytes have: all of it is known, and is text.
    teaches_prompt: bool,
    response: Response,
}

/// The state of the response.
#[derive(Debug)]
enum Response {
    None,
    Read(Box<ResponseReader>),
    /// The response is compressed, or its tokens cannot be counted.
    Unreadable,
}

/// How many tokens a request has taken so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Tokens {
    /// The whole prompt.
    pub(crate) prompt: f64,
    /// The part of it that the server had in its cache.
    pub(crate) cached: f64,
    pub(crate) output: f64,
}

/// Limits of responses are often far from what they have: more than this is not assumed of an unknown model.
const OUTPUT_UNKNOWN: f64 = 1000.0;

/// A count, rounded: it may have been estimated.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are no more than some billions, and not below zero"
)]
pub(crate) fn whole(tokens: f64) -> u64 {
    tokens.round() as u64
}

// === impl Tokens ===

impl Tokens {
    /// The tokens of a response that arrives in these pieces.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn of_response<'a>(
        facts: &RequestFacts,
        content_type: &str,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Self {
        let learnt = LearntModels::default();
        let mut count = TokenCount::new(&learnt, facts, "", 0);
        count.begin_response(content_type, false);
        for piece in pieces {
            count.feed(piece);
        }
        count.end(&learnt);
        count.tokens()
    }

    /// Adds tokens.
    pub(super) fn add(&mut self, more: Self) {
        self.prompt += more.prompt;
        self.cached += more.cached;
        self.output += more.output;
    }

    /// The cost of the tokens, if a cached token counts so much.
    pub(crate) fn cost(&self, cached_weight: f64) -> f64 {
        self.prompt - self.cached.min(self.prompt) * (1.0 - cached_weight) + self.output
    }
}

// === impl TokenCount ===

impl TokenCount {
    /// For a request of this user whose body has so many bytes.
    pub(super) fn new(learnt: &LearntModels, facts: &RequestFacts, user: &str, prompt_bytes: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "exact up to some petabytes")]
        let prompt_bytes = prompt_bytes as f64;
        Self {
            model: facts.model.clone(),
            user: user.into(),
            output_max: facts.output_max,
            rates: learnt.rates(&facts.model, user),
            prompt_bytes,
            teaches_prompt: facts.is_text,
            response: Response::None,
        }
    }

    /// Looks the model's rates up again: something may have been learnt while the request waited.
    pub(super) fn look_up(&mut self, learnt: &LearntModels) {
        self.rates = learnt.rates(&self.model, &self.user);
    }

    /// How many tokens the prompt has, by its length.
    pub(super) fn prompt_expected(&self) -> f64 {
        self.prompt_bytes * self.rates.per_prompt_byte
    }

    /// How many tokens the response will have, if something is known of that.
    pub(super) fn output_expected(&self) -> Option<f64> {
        let output = self.rates.output?;
        Some(self.output_max.map_or(output, |most| output.min(most)))
    }

    /// The expected cost of the request, given the cost of requests of its kind.
    pub(super) fn cost_expected(&self, of_kind: Option<f64>) -> f64 {
        let prompt = self.prompt_expected();
        // The learnt length of the model's responses predicts better than the cost of requests of the kind, and that better than
        // a limit.
        match (self.output_expected(), of_kind) {
            (Some(output), _) => prompt + output,
            (None, Some(of_kind)) => self.output_max.map_or(of_kind, |most| of_kind.min(prompt + most)).max(prompt),
            (None, None) => prompt + self.output_max.map_or(0.0, |most| most.min(OUTPUT_UNKNOWN)),
        }
    }

    /// The response begins, with a body of this type. One that is encoded, as with gzip, is not read.
    pub(super) fn begin_response(&mut self, content_type: &str, is_encoded: bool) {
        let reader = if is_encoded { None } else { ResponseReader::new(content_type) };
        self.response = reader.map_or(Response::Unreadable, |reader| Response::Read(Box::new(reader)));
    }

    /// A piece of the response passes. Returns whether the response is counted at all.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> bool {
        let Response::Read(reader) = &mut self.response else { return false };
        reader.feed(bytes);
        true
    }

    /// Whether it is a stream of which some text is there.
    pub(super) fn has_first_token(&self) -> bool {
        matches!(&self.response, Response::Read(reader) if reader.is_stream() && reader.seen().events > 0)
    }

    /// The tokens so far. A response that cannot be read is assumed to be as long as others.
    pub(super) fn tokens(&self) -> Tokens {
        let seen = match &self.response {
            Response::Read(reader) => reader.seen(),
            Response::None => return Tokens { prompt: self.prompt_expected(), ..Tokens::default() },
            Response::Unreadable => {
                let output = self.output_expected().unwrap_or_default();
                return Tokens { prompt: self.prompt_expected(), cached: 0.0, output };
            }
        };
        let usage = &seen.usage;
        if self.is_whole_without_usage() {
            // Its length cannot be counted: it is a single event of any length.
            let output = self.output_expected().unwrap_or_default();
            return Tokens { prompt: self.prompt_expected(), cached: 0.0, output };
        }
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 events")]
        let since_usage = seen.events_since_usage as f64 * self.rates.per_event;
        Tokens {
            prompt: usage.prompt().unwrap_or_else(|| self.prompt_expected()),
            cached: usage.cached(),
            output: usage.output().unwrap_or_default() + since_usage,
        }
    }

    /// Whether the response is no stream, and its server has not said so far how many tokens there are.
    fn is_whole_without_usage(&self) -> bool {
        let Response::Read(reader) = &self.response else { return false };
        let usage = &reader.seen().usage;
        !reader.is_stream() && usage.prompt().is_none() && usage.output().is_none()
    }

    /// The response has come to its end: what its server reported is learnt, and how long it was.
    pub(super) fn end(&self, learnt: &LearntModels) {
        let Response::Read(reader) = &self.response else { return };
        let seen = reader.seen();
        if self.is_whole_without_usage() {
            return;
        }
        if let Some(prompt) = seen.usage.prompt().filter(|_| self.teaches_prompt) {
            learnt.learn_prompt(&self.model, self.prompt_bytes, prompt);
        }
        if let Some(output) = seen.usage.output().filter(|_| seen.events_since_usage == 0 && reader.is_stream()) {
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 events")]
            learnt.learn_events(&self.model, seen.events as f64, output);
        }
        learnt.learn_output(&self.model, &self.user, self.tokens().output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(learnt: &LearntModels, prompt_bytes: u64) -> TokenCount {
        let facts = RequestFacts { model: "m".into(), ..RequestFacts::default() };
        let mut count = TokenCount::new(learnt, &facts, "u", prompt_bytes);
        count.begin_response("text/event-stream", false);
        count
    }

    fn cost(count: &TokenCount) -> f64 {
        count.tokens().cost(0.1)
    }

    const EVENT: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
    const USAGE: &[u8] = b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":80,\"completion_tokens\":35,\
        \"prompt_tokens_details\":{\"cached_tokens\":50}}}\n\n";

    #[test]
    fn events_count_by_what_usage_has_taught() {
        let learnt = LearntModels::default();
        let mut first = count(&learnt, 400);
        assert_eq!(first.output_expected(), None);
        for _ in 0..10 {
            assert!(first.feed(EVENT));
        }
        assert!((cost(&first) - 110.0).abs() < 1e-9, "four bytes a token, a token an event: {}", cost(&first));
        first.feed(USAGE);
        assert!((cost(&first) - (30.0 + 5.0 + 35.0)).abs() < 1e-9, "{}", cost(&first));
        first.end(&learnt);
        // The next one does not say.
        let mut second = count(&learnt, 800);
        assert_eq!(second.output_expected(), Some(35.0));
        for _ in 0..10 {
            second.feed(EVENT);
        }
        assert!((cost(&second) - (160.0 + 35.0)).abs() < 1e-9, "{}", cost(&second));
        second.end(&learnt);
        assert!(
            (learnt.rates("m", "u").per_event - 3.5).abs() < 1e-9,
            "a stream without usage teaches nothing of events"
        );
    }

    #[test]
    fn what_cannot_be_read_costs_by_its_length_and_by_what_others_had() {
        let learnt = LearntModels::default();
        let mut encoded = count(&learnt, 400);
        encoded.begin_response("text/event-stream", true);
        assert!(!encoded.feed(EVENT));
        assert!((cost(&encoded) - 100.0).abs() < 1e-9);
        encoded.end(&learnt);
        assert_eq!(learnt.rates("m", "u"), TokenRates::UNKNOWN);
        learnt.learn_output("m", "u", 50.0);
        encoded.look_up(&learnt);
        assert!((cost(&encoded) - 150.0).abs() < 1e-9);
    }

    #[test]
    fn a_whole_response_without_usage_counts_as_others_and_teaches_nothing() {
        let learnt = LearntModels::default();
        learnt.learn_output("m", "u", 50.0);
        let mut whole = count(&learnt, 400);
        whole.begin_response("application/json", false);
        whole.feed(br#"{"choices":[{"index":0,"message":{"content":"a long text"}}]}"#);
        assert!((cost(&whole) - 150.0).abs() < 1e-9, "{}", cost(&whole));
        whole.end(&learnt);
        assert_eq!(learnt.rates("m", "u").output, Some(50.0));
        let mut embeddings = count(&learnt, 400);
        embeddings.begin_response("application/json", false);
        embeddings.feed(br#"{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#);
        assert!((cost(&embeddings) - 8.0).abs() < 1e-9, "embeddings have no output");
    }

    #[test]
    fn prompts_of_more_than_text_teach_nothing() {
        let learnt = LearntModels::default();
        let facts = RequestFacts { model: "m".into(), is_text: false, ..RequestFacts::default() };
        let mut count = TokenCount::new(&learnt, &facts, "u", 400_000);
        count.begin_response("text/event-stream", false);
        count.feed(EVENT);
        count.feed(USAGE);
        count.end(&learnt);
        assert!((learnt.rates("m", "u").per_prompt_byte - 0.25).abs() < 1e-9);
        assert_eq!(learnt.rates("m", "u").output, Some(35.0));
    }

    #[test]
    fn usage_in_the_middle_is_a_base_to_count_from() {
        let learnt = LearntModels::default();
        let mut count = count(&learnt, 0);
        count.feed(
            b"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n",
        );
        count.feed(b"data: {\"type\":\"content_block_delta\"}\n\n");
        assert!((cost(&count) - 12.0).abs() < 1e-9);
    }

    #[test]
    fn a_limit_counts_where_nothing_is_learnt() {
        let learnt = LearntModels::default();
        let expected = |output_max, of_kind| {
            let facts = RequestFacts { model: "m".into(), output_max, ..RequestFacts::default() };
            TokenCount::new(&learnt, &facts, "u", 400).cost_expected(of_kind)
        };
        for (output_max, of_kind, cost) in [
            (None, None, 100.0),
            (Some(50.0), None, 150.0),
            (Some(100_000.0), None, 1100.0),
            (None, Some(700.0), 700.0),
            (Some(50.0), Some(700.0), 150.0),
            (Some(50.0), Some(20.0), 100.0),
        ] {
            assert!((expected(output_max, of_kind) - cost).abs() < 1e-9, "{output_max:?} {of_kind:?}");
        }
    }

    #[test]
    fn a_limit_of_the_request_bounds_what_is_expected() {
        let learnt = LearntModels::default();
        learnt.learn_output("m", "u", 500.0);
        let facts = RequestFacts { model: "m".into(), output_max: Some(20.0), ..RequestFacts::default() };
        assert_eq!(TokenCount::new(&learnt, &facts, "u", 4).output_expected(), Some(20.0));
    }
}
