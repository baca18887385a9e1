//! The decoder: any bytes give objects or errors, and what was written is read back.

use evenkeel_api::decode::{Document, Manifest, Strictness, parse_json, parse_yaml};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{HubSpec, Version};

/// Reads the bytes as a manifest, as JSON and as YAML, as either kind in every version.
///
/// # Panics
/// If strict and lenient reading disagree, or if an object that was read is not the same when it is written and read
/// again.
pub fn decode(input: &[u8]) {
    let strict = Manifest::read("input", input, Strictness::Strict);
    let lenient = Manifest::read("input", input, Strictness::Lenient);
    match (strict, lenient) {
        (Ok(strict), Ok(lenient)) => assert_eq!(strict, lenient),
        (Ok(_), Err(problems)) => panic!("only strict reading found nothing wrong: {problems}"),
        (Err(_), _) => {}
    }
    let json = parse_json(input).into_iter();
    let yaml = parse_yaml(input).into_iter().flatten();
    for document in json.chain(yaml) {
        for version in Version::ALL {
            written_is_read_back::<FlowSchemaSpec>(&document, version);
            written_is_read_back::<PriorityLevelConfigurationSpec>(&document, version);
        }
    }
}

fn written_is_read_back<S: HubSpec>(document: &Document, version: Version) {
    let Ok(decoded) = document.decode::<S>(version) else { return };
    let (warnings, strict_error) = (decoded.dropped.warnings(), decoded.dropped.strict_error());
    assert_eq!(warnings.is_empty(), strict_error.is_none(), "{warnings:?} {strict_error:?}");
    let written = serde_json::to_vec(&decoded.object.in_version(version)).expect("an object is always written");
    let again = parse_json(&written).expect("what is written is JSON").decode::<S>(version);
    let again = again.expect("what is written is an object");
    assert!(again.dropped.is_empty(), "fields that are written are known: {:?}", again.dropped);
    assert_eq!(again.object, decoded.object, "{version}");
}
