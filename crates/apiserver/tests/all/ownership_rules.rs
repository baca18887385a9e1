//! Random sequences of applies and updates by several managers in all versions keep the rules of ownership
//! (API-127 to API-132, API-137).

use crate::ownership;

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::meta::Time;
use evenkeel_api::v1::{PriorityLevelConfiguration, PriorityLevelConfigurationSpec};
use evenkeel_api::{Kind, Version};
use evenkeel_apiserver::Failure;
use evenkeel_apiserver::managed_fields::{
    ApplyBody, ApplyRequest, OnConflict, WriteTarget, Writer, apply, differs, updated,
};
use evenkeel_apiserver::patch::{FieldValidation, merge_patch};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use ownership::{FIELDS, Field, Wishes, body, container_owners, field, owner, version};

/// One request.
#[derive(Debug, Clone)]
enum Step {
    Apply { manager: &'static str, version: Version, on_conflict: OnConflict, wishes: Wishes },
    Update { manager: &'static str, version: Version, edits: BTreeMap<Field, Option<i32>> },
}

fn step() -> impl Strategy<Value = Step> {
    let manager = || prop::sample::select(vec!["one", "two", "three"]);
    let on_conflict = prop::sample::select(vec![OnConflict::Refuse, OnConflict::Refuse, OnConflict::Force]);
    let wishes = btree_map(field(), 1..=3, 0..=5);
    let edits = btree_map(field(), prop::option::weighted(0.7, 1..=3), 0..=3);
    prop_oneof![
        3 => (manager(), version(), on_conflict, wishes)
            .prop_map(|(manager, version, on_conflict, wishes)| Step::Apply { manager, version, on_conflict, wishes }),
        1 => (manager(), version(), edits)
            .prop_map(|(manager, version, edits)| Step::Update { manager, version, edits }),
    ]
}

fn writer(manager: &str, version: Version) -> Writer<'_> {
    Writer { manager, version, endpoint: WriteTarget::Object }
}

/// The object after an apply, and whether it differs from the one before.
fn applied(
    live: Option<&PriorityLevelConfiguration>,
    writer: Writer<'_>,
    on_conflict: OnConflict,
    wishes: &Wishes,
    now: i64,
) -> Result<(PriorityLevelConfiguration, bool), Failure> {
    let text = body(wishes, writer.version).to_string();
    let body = ApplyBody::parse(text.as_bytes(), Kind::PriorityLevelConfiguration, writer.version).unwrap();
    let request = ApplyRequest { body: &body, name: "level", on_conflict, writer };
    let mut new = apply(live, request, Time::from_unix_seconds(now))?;
    let differs = live.is_none_or(|live| differs(live, &mut new));
    Ok((new, differs))
}

/// What every state must be like: what is owned is there, and what is there and was applied or updated is owned.
fn check_state(level: &PriorityLevelConfiguration) {
    let mut entries = BTreeSet::new();
    for entry in &level.metadata.managed_fields {
        assert!(entries.insert(owner(entry)), "two entries of {}", owner(entry));
        assert_ne!(entry.fields_v1.as_ref().unwrap().tree(), serde_json::json!({}), "an entry with nothing in it");
    }
    for field in FIELDS {
        let (value, owners) = (field.value_in(level), field.owners(level));
        assert!(value.is_some() || owners.is_empty(), "{field:?} is owned by {owners:?} but not there");
        assert!(value == field.default_value() || !owners.is_empty(), "{field:?} is {value:?} but nobody's");
    }
}

fn check_conflict(live: &PriorityLevelConfiguration, own: &str, version: Version, wishes: &Wishes, failure: &Failure) {
    assert_eq!(failure.status, 409, "{failure}");
    let pairs = conflicts(live, own, version, wishes);
    let causes = &failure.details.as_ref().unwrap().causes;
    assert!(!pairs.is_empty(), "nobody is in the way, but {failure}");
    assert_eq!(causes.len(), pairs.len(), "{failure}\n{pairs:?}");
    let sort = if pairs.len() == 1 { "1 conflict:".to_owned() } else { format!("{} conflicts:", pairs.len()) };
    assert!(failure.message.starts_with(&format!("Apply failed with {sort}")), "{failure}");
}

/// What would get another value, with each other owner of it: fields, and the containers that would come into being.
fn conflicts(
    live: &PriorityLevelConfiguration,
    own: &str,
    version: Version,
    wishes: &Wishes,
) -> BTreeSet<(String, String)> {
    let mut pairs = BTreeSet::new();
    let mut add = |what: &str, owners: BTreeSet<String>| {
        let others = owners.into_iter().filter(|owner| owner != own);
        pairs.extend(others.map(|owner| (what.to_owned(), owner)));
    };
    let is_absent = |container: &str| {
        FIELDS.iter().all(|field| field.container() != Some(container) || field.value_in(live).is_none())
    };
    for (field, wish) in wishes {
        if field.value_in(live) != Some(field.meant(*wish)) {
            add(&format!("{field:?}"), field.owners(live));
        }
        // A container that an apply emptied is gone, but still owned by the update that made it (API-135).
        if let Some(container) = field.container().filter(|container| is_absent(container)) {
            add(container, container_owners(container, live));
        }
    }
    // The older versions cannot tell no shares from zero, which v1beta3 writes among the annotations (API-63): where nobody
    // wants the shares any more, its annotations come into being for a moment.
    let is_given_up = !wishes.contains_key(&Field::Shares) && Field::Shares.owners(live) == [own.to_owned()].into();
    let annotations = Field::Annotation("n").container().unwrap();
    if is_given_up && matches!(version, Version::V1beta1 | Version::V1beta2) && is_absent(annotations) {
        let mut owners = container_owners(annotations, live);
        owners.retain(|owner| owner.ends_with(Version::V1beta3.api_version()));
        add(annotations, owners);
    }
    pairs
}

fn check_apply(
    live: Option<&PriorityLevelConfiguration>,
    new: &PriorityLevelConfiguration,
    own: &str,
    wishes: &Wishes,
) {
    let nothing = PriorityLevelConfiguration::default();
    let live = live.unwrap_or(&nothing);
    for field in FIELDS {
        let (before, after) = (field.value_in(live), field.value_in(new));
        let (owners_before, owners_after) = (field.owners(live), field.owners(new));
        let mut others = owners_before.clone();
        others.remove(own);
        match wishes.get(&field) {
            Some(wish) => {
                assert_eq!(after, Some(field.meant(*wish)), "{field:?}");
                // Those who had the same value share it; others have lost it.
                let mut expected = if before == after { others } else { BTreeSet::new() };
                expected.insert(own.to_owned());
                assert_eq!(owners_after, expected, "{field:?} from {before:?} to {after:?}");
            }
            None => {
                let is_given_up = owners_before.contains(own) && others.is_empty();
                let expected = if is_given_up { field.default_value() } else { before.or(field.default_value()) };
                assert_eq!(after, expected, "{field:?} was owned by {owners_before:?}");
                assert_eq!(owners_after, others, "{field:?}");
            }
        }
    }
}

fn check_update(live: &PriorityLevelConfiguration, new: &PriorityLevelConfiguration, own: &str) {
    for field in FIELDS {
        let (before, after) = (field.value_in(live), field.value_in(new));
        let expected = match after {
            _ if before == after => field.owners(live),
            Some(_) => BTreeSet::from([own.to_owned()]),
            None => BTreeSet::new(),
        };
        assert_eq!(field.owners(new), expected, "{field:?} from {before:?} to {after:?}");
    }
}

fn check_step(live: Option<PriorityLevelConfiguration>, step: &Step, now: i64) -> Option<PriorityLevelConfiguration> {
    match step {
        Step::Apply { manager, version, on_conflict, wishes } => {
            let (writer, own) = (writer(manager, *version), format!("{manager} Apply"));
            match applied(live.as_ref(), writer, *on_conflict, wishes, now) {
                Ok((new, _)) => {
                    if let (OnConflict::Refuse, Some(live)) = (on_conflict, &live) {
                        assert_eq!(conflicts(live, &own, *version, wishes), BTreeSet::new());
                    }
                    check_apply(live.as_ref(), &new, &own, wishes);
                    let (again, differs) = applied(Some(&new), writer, *on_conflict, wishes, now + 1).unwrap();
                    assert!(!differs, "the same again changed\n{new:?}\ninto\n{again:?}");
                    Some(new)
                }
                Err(failure) => {
                    assert_eq!(*on_conflict, OnConflict::Refuse, "{failure}");
                    let live = live.unwrap();
                    check_conflict(&live, &own, *version, wishes, &failure);
                    let (forced, _) = applied(Some(&live), writer, OnConflict::Force, wishes, now).unwrap();
                    check_apply(Some(&live), &forced, &own, wishes);
                    Some(live)
                }
            }
        }
        Step::Update { manager, version, edits } => {
            let live = live?;
            let document = serde_json::to_value(live.in_version(*version)).unwrap();
            let patch = ownership::merge_patch(edits, *version).to_string();
            let patched = merge_patch(document, patch.as_bytes()).unwrap();
            let patched = patched.decode::<PriorityLevelConfigurationSpec>(*version, FieldValidation::Strict).unwrap();
            let mut new = patched.object;
            updated(&live, &mut new, patched.sent, writer(manager, *version), Time::from_unix_seconds(now));
            check_update(&live, &new, &format!("{manager} Update {}", version.api_version()));
            let is_same = FIELDS.iter().all(|field| field.value_in(&live) == field.value_in(&new));
            let differs = differs(&live, &mut new);
            // The order of finalizers counts as a change that nobody owns.
            assert!(differs || is_same);
            assert!(!differs || !is_same || live.metadata.finalizers != new.metadata.finalizers);
            Some(new)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn api_127_to_137_every_step_keeps_the_rules(steps in vec(step(), 1..12)) {
        let mut live = None;
        for (now, step) in (1_700_000_000..).zip(&steps) {
            live = check_step(live, step, now);
            if let Some(level) = &live {
                check_state(level);
            }
        }
    }

    #[test]
    fn api_64_what_is_written_in_one_version_means_the_same_in_all(steps in vec(step(), 1..8), other in version()) {
        // The same steps, all in another version, lead to the same values.
        let mut level = None;
        let mut level_in_other = None;
        for (now, step) in (1_700_000_000..).zip(&steps) {
            let mut in_other = step.clone();
            match &mut in_other {
                Step::Apply { version, .. } | Step::Update { version, .. } => *version = other,
            }
            level = check_step(level, step, now);
            level_in_other = check_step(level_in_other, &in_other, now);
        }
        let values = |level: &Option<PriorityLevelConfiguration>| {
            level.as_ref().map(|level| FIELDS.map(|field| field.value_in(level)))
        };
        let managers = steps.iter().filter(|step| matches!(step, Step::Update { .. })).count();
        // An Update entry belongs to a version, so that only applies are the same in all.
        if managers == 0 {
            prop_assert_eq!(values(&level), values(&level_in_other));
        }
    }
}
