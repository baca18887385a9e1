//! Objects are written and read back without loss: decoding after encoding is identity, in every version and format.

use crate::strategies;

use evenkeel_api::decode::{Document, parse_json, parse_yaml};
use evenkeel_api::v1::{PriorityLevelConfigurationSpec, V1};
use evenkeel_api::v1beta3::PRESERVE_ZERO_ANNOTATION;
use evenkeel_api::{AnyObject, Defaulted, HubSpec, Object, Version};
use proptest::prelude::*;

/// Versions in which an object cannot say that it has no shares (API-63).
const WITHOUT_ZERO_SHARES: [Version; 2] = [Version::V1beta2, Version::V1beta1];

/// Writes an object in a version, and reads it as JSON, as YAML and by serde alone.
fn check<S: HubSpec>(object: &Object<V1, S>, version: Version) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(&object.in_version(version)).expect("an object is always written");
    // Every JSON text is a YAML text.
    let yaml = parse_yaml(text.as_bytes()).expect("YAML").remove(0);
    for document in [parse_json(text.as_bytes()).expect("JSON"), yaml] {
        let Document { format, .. } = document;
        let decoded = document.decode::<S>(version).expect("an object");
        prop_assert!(decoded.dropped.is_empty(), "{:?}", decoded.dropped);
        prop_assert_eq!(&decoded.object, object, "{} as {:?}", version, format);
    }
    if version == Version::V1 {
        prop_assert_eq!(&serde_json::from_str::<Object<V1, S>>(&text).expect("an object"), object);
    }
    Ok(())
}

fn has_zero_shares(spec: &PriorityLevelConfigurationSpec) -> bool {
    spec.limited.as_ref().is_some_and(|limited| limited.nominal_concurrency_shares == Some(0))
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(object in strategies::any_object()) {
        for version in Version::ALL {
            match object.clone() {
                AnyObject::FlowSchema(mut schema) => {
                    schema.apply_defaults();
                    check(&schema, version)?;
                }
                AnyObject::PriorityLevelConfiguration(mut level) => {
                    // It is never stored, and so never in an object of the hub (API-63).
                    level.metadata.annotations.remove(PRESERVE_ZERO_ANNOTATION);
                    level.apply_defaults();
                    if !(WITHOUT_ZERO_SHARES.contains(&version) && has_zero_shares(&level.spec)) {
                        check(&level, version)?;
                    }
                }
            }
        }
    }
}
