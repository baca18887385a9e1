//! Language models in the demo: a server that generates tokens in batches as real ones do, without a model, and a job and people who use it.

mod batch;
mod chat_load;
mod chat_report;
mod comparison;
mod model_api;
mod model_body;
mod model_server;

use super::any_port;

pub(crate) use comparison::ChatStage;
pub(crate) use model_server::run;
