//! `FromSettings`: the objects that levels and matches of the settings stand for.

use evenkeel_engine::controller::Objects;

use super::{Fixed, NextObjects, ObjectSource};

/// The objects that levels and matches of the settings stand for. When the settings change, the gateway follows them.
#[derive(Debug)]
pub struct FromSettings(Fixed);

// === impl FromSettings ===

impl FromSettings {
    /// A source that begins with these objects and the mandatory levels.
    pub fn new(objects: Objects) -> Self {
        Self(Fixed::new(objects))
    }
}

impl ObjectSource for FromSettings {
    fn next(&mut self) -> NextObjects<'_> {
        self.0.next()
    }

    fn follows_settings(&self) -> bool {
        true
    }
}
