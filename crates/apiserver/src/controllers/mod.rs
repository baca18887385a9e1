//! Background controllers: one restores the bootstrap objects, one writes the condition `Dangling`, one finishes deletions.

pub(crate) mod bootstrap;
pub(crate) mod dangling;
pub(crate) mod garbage;
