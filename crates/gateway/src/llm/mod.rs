//! Traffic of language models: reads the facts in a request's body, and counts the tokens of its response (LM). No I/O: bytes
//! come in, counts come out, in constant memory whatever the bytes are.

mod first_tokens;
mod json_scan;
mod learnt_models;
mod llm_service;
mod model_counts;
mod request_facts;
mod response_reader;
mod token_count;
mod token_meter;
mod token_totals;
mod usage;
mod usage_filter;
mod usage_request;

pub(crate) use first_tokens::FirstTokenSeries;
pub(crate) use llm_service::LlmService;
pub(crate) use model_counts::ModelReading;
pub(crate) use request_facts::RequestFacts;
pub(crate) use token_count::{Tokens, whole};
pub(crate) use token_meter::{LlmRequest, TokenSource};
pub(crate) use token_totals::TokenSeries;
#[cfg(feature = "fuzzing")]
pub(crate) use usage_filter::UsageFilter;
pub(crate) use usage_request::{ASKS_FOR_USAGE, place_to_ask};
