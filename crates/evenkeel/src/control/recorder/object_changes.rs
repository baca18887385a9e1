//! What is different between two lists of objects, in a few words: for people who look for what changed before an incident.

use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_api::Object;
use evenkeel_engine::controller::Objects;

/// So many objects are named.
const NAMED_MAX: usize = 5;

/// What became of the objects; `None` if they are the same.
pub(crate) fn changes_of_objects(before: &Objects, after: &Objects) -> Option<String> {
    let mut changes = changes_of("level", &before.priority_levels, &after.priority_levels);
    changes.extend(changes_of("flow schema", &before.flow_schemas, &after.flow_schemas));
    if changes.is_empty() {
        return None;
    }
    let more = changes.len().saturating_sub(NAMED_MAX);
    changes.truncate(NAMED_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!("other objects came into effect: {}{more}", changes.join(", ")))
}

/// The differences between the objects of one kind. The status of an object, and who changed it when, does not count.
fn changes_of<V, S: PartialEq>(kind: &str, before: &[Arc<Object<V, S>>], after: &[Arc<Object<V, S>>]) -> Vec<String> {
    let mut known: HashMap<&str, &Object<V, S>> =
        before.iter().map(|object| (&*object.metadata.name, &**object)).collect();
    let mut changes = Vec::new();
    for object in after {
        let name = &*object.metadata.name;
        let is_same = |known: &Object<V, S>| {
            known.spec == object.spec && known.metadata.annotations == object.metadata.annotations
        };
        match known.remove(name) {
            None => changes.push(format!("{kind} {name} added")),
            Some(known) if !is_same(known) => changes.push(format!("{kind} {name} edited")),
            Some(_) => {}
        }
    }
    let mut removed: Vec<&str> = known.into_keys().collect();
    removed.sort_unstable();
    changes.extend(removed.into_iter().map(|name| format!("{kind} {name} removed")));
    changes
}

#[cfg(test)]
mod tests {
    use evenkeel_api::Preset;

    use super::*;
    use crate::control::into_objects::IntoObjects;

    fn objects(text: &str) -> Objects {
        text.into_objects(Preset::Plain).unwrap()
    }

    #[test]
    fn fr_1_a_change_of_the_objects_names_them() {
        let before = objects("{levels: {a: {share: 1}, b: {share: 1}, c: {share: 1}}, match: [{level: a}]}");
        let after = objects("{levels: {a: {share: 1}, b: {share: 2}, d: {share: 1}}, match: [{level: a}]}");
        assert_eq!(changes_of_objects(&before, &before), None);
        let said = changes_of_objects(&before, &after).unwrap();
        assert!(said.starts_with("other objects came into effect: "), "{said}");
        for change in ["level b edited", "level c removed", "level d added"] {
            assert!(said.contains(change), "{said}");
        }
    }

    #[test]
    fn fr_1_of_many_objects_the_first_are_named() {
        let levels: Vec<String> = (0..9).map(|number| format!("level-{number}: {{share: 1}}")).collect();
        let many = objects(&format!("{{levels: {{{}}}, match: [{{level: level-0}}]}}", levels.join(", ")));
        let said = changes_of_objects(&Objects::default(), &many).unwrap();
        assert_eq!(said.matches(" added").count(), NAMED_MAX, "{said}");
        assert!(said.ends_with(" more"), "{said}");
    }
}
