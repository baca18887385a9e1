//! `LlmService`: the learnt figures of one service's models, and the tokens that its clients took.

use super::learnt_models::LearntModels;
use super::model_counts::ModelCounts;
use super::token_totals::TokenTotals;

/// Lasts as long as the service is in the settings.
#[derive(Debug, Default)]
pub(crate) struct LlmService {
    pub(super) learnt: LearntModels,
    pub(crate) totals: TokenTotals,
    pub(crate) models: ModelCounts,
}
