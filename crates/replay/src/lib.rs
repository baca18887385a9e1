//! Replays recorded traffic: what would another configuration have done with yesterday's requests?
//!
//! [`Input`] opens a log of any kind and splits it, [`Format`] makes a [`Record`] of each line, and [`Replay`] puts the
//! records together, classifies the requests, and lets them arrive at a simulated server for each configuration. The [`Report`]
//! has what became of each flow. Memory does not depend on the length of the log.
//!
//! Requests keep their arrival times, and hold their seats for as long as they did. Facts that a log does not have are counted in
//! [`Notes`].

mod assumed;
mod clock;
mod damage;
mod decide_again;
mod flight;
mod flight_notes;
mod flight_workload;
mod flows;
mod formats;
mod incident;
mod input;
mod interpret;
mod join;
mod json;
mod logged_head;
mod object_numbers;
mod order;
mod record;
mod replay;
mod report;
mod routes;
mod side;
mod timeline;
mod timestamp;
mod truth;
mod users;

pub use damage::{Damaged, DamagedLine};
pub use decide_again::{Agreement, decide_again};
pub use flight::{borrowing_of, newcomer_wait_of, objects_of, preset_of};
pub use flight_workload::workload_of;
pub use flows::{Flow, FlowName, Recorded, Replayed};
pub use formats::{Damage, Format, Template, TemplateError};
pub use incident::{Delay, FirstRejection, Incident, IncidentPart, Usage};
pub use input::{Input, InputError, Part};
pub use join::RequestKey;
pub use logged_head::LoggedHead;
pub use object_numbers::{ObjectNumbers, ObjectNumbersError};
pub use record::{Action, Outcome, Placed, Record, Stage};
pub use replay::{Replay, Settings};
pub use report::{Notes, Report};
pub use routes::{RoutedRequest, Routes};
pub use truth::{Comparison, Difference, Truth};
pub use users::Users;
