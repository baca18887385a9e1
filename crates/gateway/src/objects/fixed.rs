//! `Fixed`: objects that never change.

use evenkeel_engine::controller::Objects;

use super::{NextObjects, ObjectSource};

/// Objects that never change.
#[derive(Debug)]
pub struct Fixed {
    given: Option<Objects>,
}

// === impl Fixed ===

impl Fixed {
    /// A source of these objects and the mandatory levels.
    pub fn new(objects: Objects) -> Self {
        Self { given: Some(objects.with_mandatory_levels()) }
    }
}

impl ObjectSource for Fixed {
    fn next(&mut self) -> NextObjects<'_> {
        Box::pin(async move {
            match self.given.take() {
                Some(objects) => Ok(objects),
                None => std::future::pending().await,
            }
        })
    }
}
