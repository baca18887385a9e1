//! Finds what is wrong with flow schemas and priority levels when they are looked at together.
//!
//! Validation looks at one object at a time. This crate looks at all of them: schemas that no request can reach, levels whose
//! seats round to none, flows that share a queue, calls that can wait for each other. [`check`] gives [`Finding`]s; each has a
//! [`Rule`] with a page of its own, and where it helps a [`Witness`]: a request that shows it. [`diff`] compares two
//! configurations by what becomes of requests.
//!
//! Reachability is exact. The rules that match a caller are boxes of requests, and boxes can be subtracted from each other; what
//! remains of a rule after those that are tried before it is what can reach it. The real classifier confirms every witness.
//! Where that takes too much work, the report says so and claims nothing.
//!
//! The crate does no I/O.
//!
//! ```
//! use evenkeel_api::v1::FlowSchema;
//! use evenkeel_check::{Assumptions, Located, Rule, check};
//!
//! let [all, some] = [("all", 500), ("some", 600)].map(|(name, precedence)| {
//!     let schema = FlowSchema::builder(name).priority_level("exempt").matching_precedence(precedence);
//!     Located::without_place(schema.rule(|r| r.group("tenants").everything()).build())
//! });
//! let report = check(&[all, some], &Assumptions::default());
//! let finding = &report.findings[0];
//! assert_eq!((finding.rule, &*finding.object.name), (Rule::UnreachableSchema, "some"));
//! assert_eq!(finding.blockers, ["all"]);
//! ```

mod analysis;
mod assumptions;
mod caller;
mod calls;
mod classification_test;
mod configuration;
mod cover;
mod diff;
mod finding;
mod request;
mod rule;
mod rules;
mod space;

pub use analysis::{Checked, check, check_all, check_reachability, check_seats};
pub use assumptions::Assumptions;
pub use calls::{Call, Endpoint};
pub use classification_test::{ClassificationTest, Expectation};
pub use diff::{Difference, Outcome, Side, diff};
pub use evenkeel_engine::controller::Borrowing;
pub use finding::{Finding, Located, ObjectName, Report, SourceLocation, Undecided, Witness};
pub use request::Request;
pub use rule::{Rule, Severity, UnknownRule};

/// Tests the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
