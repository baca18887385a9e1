//! Background controllers: one restores the bootstrap objects, one writes the condition `Dangling`.

pub(crate) mod bootstrap;
pub(crate) mod dangling;
