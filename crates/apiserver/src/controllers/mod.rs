//! What the server does by itself: it looks after the bootstrap objects, and tells flow schemas that dangle.

pub(crate) mod bootstrap;
pub(crate) mod dangling;
