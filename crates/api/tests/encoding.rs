//! Objects are written and read back without loss.

mod strategies;

use evenkeel_api::{AnyObject, v1};
use proptest::prelude::*;

proptest! {
    #[test]
    fn what_is_written_is_read_back(object in strategies::any_object()) {
        match object {
            AnyObject::FlowSchema(schema) => {
                let text = serde_json::to_string(&schema).unwrap();
                prop_assert_eq!(serde_json::from_str::<v1::FlowSchema>(&text).unwrap(), schema);
            }
            AnyObject::PriorityLevelConfiguration(level) => {
                let text = serde_json::to_string(&level).unwrap();
                prop_assert_eq!(serde_json::from_str::<v1::PriorityLevelConfiguration>(&text).unwrap(), level);
            }
        }
    }
}
