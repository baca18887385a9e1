//! The formats that a client wants and sends: `Accept`, `Content-Type`, `pretty` (API-78, API-87 to API-94).

mod accept;
mod content_type;
mod pretty;
#[cfg(test)]
mod tests;
mod wanted;

pub(crate) use content_type::{BodyFormat, PatchType, body_format, patch_type};
pub(crate) use wanted::{Asked, DiscoveryShape, MetaVersion, ResponseKind, SPOKEN, Shape, Wanted};

#[cfg(test)]
pub(crate) use tests::recorded_headers;
