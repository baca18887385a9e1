//! `PartsHead`: the head of a request, for flow schemas that match by headers.

use evenkeel_engine::HeadSource;
use http::request::Parts;

/// The head of a request that a layer has got.
pub(crate) struct PartsHead<'a>(pub(crate) &'a Parts);

// === impl PartsHead ===

impl HeadSource for PartsHead<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.0.headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        // Who knows which of several the service goes by?
        values.next().is_none().then_some(value)
    }

    fn address(&self) -> Option<&str> {
        None
    }
}
