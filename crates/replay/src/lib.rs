//! Replays recorded traffic: what would another configuration have done with yesterday's requests?

mod formats;
mod json;
mod record;
mod timestamp;
mod users;

pub use formats::{Damage, Format, Template, TemplateError};
pub use record::{Action, Outcome, Placed, Record, Stage};
pub use users::Users;
