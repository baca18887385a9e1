//! Connections as the system knows them: streams, encrypted or not, and the limit of open files.

pub(crate) mod open_files;
mod stream;

pub(crate) use stream::{Rewound, Stream};
