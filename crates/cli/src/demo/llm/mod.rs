//! Language models in the demo: a server that generates tokens in batches as real ones do, without a model.

mod batch;
mod model_api;
mod model_body;
mod model_server;

pub(crate) use model_server::run;
