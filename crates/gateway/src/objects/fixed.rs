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
    /// These.
    pub fn new(objects: Objects) -> Self {
        Self { given: Some(objects) }
    }

    /// Those that a Kubernetes server starts with: the mandatory and the suggested ones.
    pub fn bootstrap() -> Self {
        Self::new(Objects::bootstrap())
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
