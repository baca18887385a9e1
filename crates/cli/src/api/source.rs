//! The objects of the API as what governs the gateway's traffic.

use evenkeel_apiserver::ObjectStream;
use evenkeel_gateway::objects::{NextObjects, ObjectSource, ObjectsError};

/// The objects of an API.
#[derive(Debug)]
pub(crate) struct ApiObjects(pub(crate) ObjectStream);

// === impl ApiObjects ===

impl ObjectSource for ApiObjects {
    fn next(&mut self) -> NextObjects<'_> {
        Box::pin(async {
            match self.0.next().await {
                Some(state) => Ok(state.objects),
                None => {
                    // The process is about to end: those that govern stay until then.
                    std::future::pending::<()>().await;
                    Err(ObjectsError("the store is closed".to_owned()))
                }
            }
        })
    }
}
