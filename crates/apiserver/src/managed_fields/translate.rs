//! The fields of one version under the names of another (API-130).
//!
//! The types of all versions have the same fields in the same places; only some names differ. So a field of one version
//! is that in the same place of another.

use std::borrow::Cow;

use super::element::Element;
use super::field_set::FieldSet;
use super::owned_parts::OwnedParts;

/// A set of fields of one version, named as in another one. What lies below a value that is owned as a whole counts as
/// that value.
pub(crate) fn translate(set: &FieldSet, from: OwnedParts, to: OwnedParts) -> FieldSet {
    if matches!(from, OwnedParts::Whole) {
        return if set.is_empty() { FieldSet::default() } else { FieldSet::leaf() };
    }
    let below = |(element, below): (&Element, &FieldSet)| {
        let renamed = rename(element, from, to);
        let below = match (from, from.names(element)) {
            // A field that the schema does not know has no parts that could be told.
            (OwnedParts::Fields(_), false) => below.clone(),
            _ => translate(below, from.below(element), to.below(&renamed)),
        };
        (renamed, below)
    };
    let mut translated = FieldSet::of_children(set.children().map(below).collect());
    translated.itself = set.itself;
    translated
}

fn rename(element: &Element, from: OwnedParts, to: OwnedParts) -> Element {
    let (OwnedParts::Fields(from), OwnedParts::Fields(to), Element::Field(name)) = (from, to, element) else {
        return element.clone();
    };
    let place = from.fields.iter().position(|field| field.name == name);
    match place.and_then(|place| to.fields.get(place)) {
        Some(field) => Element::Field(Cow::Borrowed(field.name)),
        None => element.clone(),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::schema::{Shape, TypeSchema, object_type};
    use evenkeel_api::{Kind, Version};
    use serde_json::json;

    use super::*;

    fn assert_parallel(one: &TypeSchema, other: &TypeSchema) {
        assert_eq!(one.fields.len(), other.fields.len(), "{:?}", one.name);
        for (one, other) in one.fields.iter().zip(other.fields) {
            assert_eq!(one.list_type, other.list_type, "{} {}", one.name, other.name);
            match (one.shape.element(), other.shape.element()) {
                (Shape::Object(one), Shape::Object(other)) => assert_parallel(one, other),
                (one, other) => {
                    assert_eq!(std::mem::discriminant(&one), std::mem::discriminant(&other), "{one:?}");
                }
            }
        }
    }

    #[test]
    fn api_62_the_types_of_all_versions_have_their_fields_in_the_same_places() {
        for kind in Kind::ALL {
            for version in Version::ALL {
                assert_parallel(object_type(Version::V1, kind), object_type(version, kind));
            }
        }
    }

    #[test]
    fn api_130_the_shares_have_the_name_of_the_other_version() {
        let of = |version| OwnedParts::of_object(Kind::PriorityLevelConfiguration, version);
        let fields =
            json!({"f:spec": {"f:limited": {".": {}, "f:lendablePercent": {}, "f:nominalConcurrencyShares": {}}}});
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        let translated = translate(&set, of(Version::V1), of(Version::V1beta2));
        let expected =
            json!({"f:spec": {"f:limited": {".": {}, "f:assuredConcurrencyShares": {}, "f:lendablePercent": {}}}});
        assert_eq!(translated.to_fields_v1(), expected);
        assert_eq!(translate(&translated, of(Version::V1beta2), of(Version::V1)), set);
    }

    #[test]
    fn what_lies_below_an_atomic_list_counts_as_the_list() {
        let of = OwnedParts::of_object(Kind::FlowSchema, Version::V1);
        let set = FieldSet::from_fields_v1(&json!({"f:spec": {"f:rules": {"i:0": {"f:subjects": {}}}}})).unwrap();
        assert_eq!(translate(&set, of, of).to_fields_v1(), json!({"f:spec": {"f:rules": {}}}));
    }
}
