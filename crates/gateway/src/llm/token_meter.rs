//! `TokenMeter`: counts the tokens of a request for the flow control.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use evenkeel::cost::{CostMeter, CountCost, Counted};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;

use super::llm_service::LlmService;
use super::model_counts::RunningResponse;
use super::request_facts::RequestFacts;
use super::token_count::{TokenCount, Tokens};
use super::usage_filter::UsageFilter;

/// A request to a language model. It goes with the request to the flow control, and to the logs.
pub(crate) struct LlmRequest {
    service: Arc<LlmService>,
    pub(crate) facts: RequestFacts,
    arrived: Instant,
    prompt_bytes: u64,
    cached_weight: f64,
    user: Box<str>,
    /// Whether a meter counts its tokens: its flow schema may count costs in another unit.
    is_metered: AtomicBool,
    /// Whether the gateway has asked for the usage of its stream. The client has not asked, and does not get it.
    asks_for_usage: AtomicBool,
    /// The tokens that it has taken so far, once a response has begun.
    tokens: Mutex<Option<Tokens>>,
}

/// Makes meters for requests that have been read.
#[derive(Debug)]
pub(crate) struct TokenSource;

/// Counts the tokens of one request.
struct TokenMeter {
    request: Arc<LlmRequest>,
    count: TokenCount,
    stage: Stage,
    /// The response, once it has begun.
    running: Option<RunningResponse>,
    /// The filter of a stream with usage that its client has not asked for.
    filter: Option<Box<UsageFilter>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is no response yet.
    Asked,
    /// The model generates a response.
    Generating,
    /// There is nothing to count: the server has refused.
    Refused,
    Ended,
}

// === impl LlmRequest ===

impl LlmRequest {
    /// A request of this user that has arrived now, and whose body has so many bytes. Cached tokens count this much.
    pub(crate) fn new(
        service: &Arc<LlmService>,
        facts: RequestFacts,
        prompt_bytes: u64,
        cached_weight: f64,
        user: &str,
    ) -> Self {
        Self {
            service: Arc::clone(service),
            facts,
            arrived: Instant::now(),
            prompt_bytes,
            cached_weight,
            user: user.into(),
            is_metered: AtomicBool::new(false),
            asks_for_usage: AtomicBool::new(false),
            tokens: Mutex::default(),
        }
    }

    /// Whether its tokens are counted, and its client is charged for them.
    pub(crate) fn is_metered(&self) -> bool {
        self.is_metered.load(Ordering::Relaxed)
    }

    /// The gateway asks for the usage of its stream.
    pub(crate) fn ask_for_usage(&self) {
        self.asks_for_usage.store(true, Ordering::Relaxed);
    }

    /// The tokens that it has taken so far; `None` if there is no response.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has left before there was a response, while the server worked on the request: the request costs its prompt.
    pub(crate) fn leave_before_response(&self) -> f64 {
        let rates = self.service.learnt.rates(&self.facts.model, &self.user);
        #[expect(clippy::cast_precision_loss, reason = "exact up to some petabytes")]
        let tokens = Tokens { prompt: self.prompt_bytes as f64 * rates.per_prompt_byte, ..Tokens::default() };
        self.set_tokens(tokens);
        tokens.cost(self.cached_weight)
    }

    fn set_tokens(&self, tokens: Tokens) {
        *self.tokens.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
    }
}

impl fmt::Debug for LlmRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmRequest").field("facts", &self.facts).field("tokens", &self.tokens()).finish_non_exhaustive()
    }
}

// === impl TokenSource ===

impl CountCost for TokenSource {
    fn arrive(&self, parts: &Parts) -> Option<Box<dyn CostMeter>> {
        let request = Arc::clone(parts.extensions.get::<Arc<LlmRequest>>()?);
        let count = TokenCount::new(&request.service.learnt, &request.facts, &request.user, request.prompt_bytes);
        request.is_metered.store(true, Ordering::Relaxed);
        Some(Box::new(TokenMeter { request, count, stage: Stage::Asked, running: None, filter: None }))
    }
}

// === impl TokenMeter ===

impl TokenMeter {
    fn learnt(&self) -> &super::learnt_models::LearntModels {
        &self.request.service.learnt
    }

    /// Tells the tokens so far to whoever asks for them, and returns their cost.
    fn note_tokens(&mut self) -> f64 {
        let tokens = self.count.tokens();
        self.request.set_tokens(tokens);
        if let Some(running) = &mut self.running {
            running.set(tokens);
        }
        tokens.cost(self.request.cached_weight)
    }
}

impl CostMeter for TokenMeter {
    fn expect(&mut self, learnt: Option<f64>) -> Option<f64> {
        self.count.look_up(&self.request.service.learnt);
        Some(self.count.cost_expected(learnt))
    }

    fn begin(&mut self, status: StatusCode, headers: &mut HeaderMap) -> Counted {
        if !status.is_success() {
            self.stage = Stage::Refused;
            return Counted::Nothing;
        }
        self.stage = Stage::Generating;
        let is_encoded = headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::to_str).and_then(Result::ok).unwrap_or_default();
        // A stream with a declared length cannot get shorter.
        let asks_for_usage = self.request.asks_for_usage.load(Ordering::Relaxed);
        let may_filter = asks_for_usage && !is_encoded && !headers.contains_key(CONTENT_LENGTH);
        if may_filter && content_type.starts_with("text/event-stream") {
            self.filter = Some(Box::new(UsageFilter::new()));
        }
        self.count.begin_response(content_type, is_encoded);
        self.running = Some(self.request.service.models.begin(&self.request.facts.model));
        Counted::InAll(self.note_tokens())
    }

    fn progress(&mut self, frame: &mut Frame<Bytes>) -> Counted {
        let Some(data) = frame.data_ref().filter(|_| self.stage == Stage::Generating) else { return Counted::Nothing };
        if !self.count.feed(data) {
            return Counted::Nothing;
        }
        if let Some(running) = self.running.as_mut().filter(|running| !running.has_first_token())
            && self.count.has_first_token()
        {
            running.note_first_token(self.request.arrived.elapsed());
        }
        if let Some(filter) = &mut self.filter {
            let passed = filter.pass(data.clone());
            *frame = Frame::data(passed);
        }
        Counted::InAll(self.note_tokens())
    }

    fn end(&mut self) -> Counted {
        if self.stage != Stage::Generating {
            return Counted::Nothing;
        }
        self.count.end(self.learnt());
        Counted::Exactly(self.note_tokens())
    }
}

impl Drop for TokenMeter {
    fn drop(&mut self) {
        self.request.is_metered.store(false, Ordering::Relaxed);
        // A response that was cut off has taken the tokens that were generated.
        if let Some(tokens) = self.request.tokens() {
            self.stage = Stage::Ended;
            self.request.service.totals.add(&self.request.facts.model, &self.request.user, tokens);
        }
    }
}
