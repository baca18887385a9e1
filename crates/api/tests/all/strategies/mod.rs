//! Random objects for property tests: `mod strategies;`, then `strategies::flow_schema()` and its like.
//!
//! Half of what the plain functions make looks like what people write, with names and numbers that make sense
//! (the functions named `sound_…` make only such); the other half holds anything that the types allow
//! (`wild_…`): texts that are empty or of any characters, choices that do not exist, members that contradict
//! each other, numbers at the ends of their range.
//!
//! All are boxed: strategies nested by value this deep overflow the stack of a test thread.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "each test is a crate, and uses some of the strategies")]

mod flow_schema;
mod meta;
mod priority_level;
mod status;

use std::fmt::Debug;

use evenkeel_api::AnyObject;
use proptest::collection::vec;
use proptest::prelude::*;

pub use flow_schema::{flow_schema, sound_flow_schema, wild_flow_schema};
pub use meta::{object_meta, sound_object_meta, wild_object_meta};
pub use priority_level::{priority_level, sound_priority_level, wild_priority_level};
pub use status::status;

/// An object of either kind.
pub fn any_object() -> BoxedStrategy<AnyObject> {
    prop_oneof![
        flow_schema().prop_map(AnyObject::FlowSchema),
        priority_level().prop_map(AnyObject::PriorityLevelConfiguration),
    ]
    .boxed()
}

/// A name that an object can have.
pub fn name() -> BoxedStrategy<String> {
    prop_oneof!["[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,4})?(\\.[a-z0-9]{1,4})?", Just("exempt".to_owned())].boxed()
}

/// A namespace that can exist.
pub fn namespace() -> BoxedStrategy<String> {
    "[a-z]([-a-z0-9]{0,6}[a-z0-9])?".boxed()
}

/// Any text: often empty or plain, sometimes with characters that need care.
pub fn text() -> BoxedStrategy<String> {
    prop_oneof![
        Just(String::new()),
        Just("*".to_owned()),
        "[a-zA-Z0-9./:-]{1,8}",
        "[äß≤漢😀\"\\\\'{}<&\n\t\u{0}\u{7f}\u{2028} ]{1,6}",
        any::<String>(),
    ]
    .boxed()
}

/// Any number of 32 bits, often one at which rules change.
pub fn number() -> BoxedStrategy<i32> {
    prop_oneof![Just(0), -2..=200, Just(i32::MIN), Just(i32::MAX), any::<i32>()].boxed()
}

/// Up to three.
fn few<S: Strategy + 'static>(element: S) -> BoxedStrategy<Vec<S::Value>>
where
    S::Value: Debug,
{
    vec(element, 0..=3).boxed()
}

/// `*` alone, or a list without it.
fn star_or(element: impl Strategy<Value = String> + 'static) -> BoxedStrategy<Vec<String>> {
    prop_oneof![Just(vec!["*".to_owned()]), vec(element, 1..=3)].boxed()
}
