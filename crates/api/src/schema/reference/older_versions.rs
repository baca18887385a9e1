//! The section of the reference on what is different in older versions, found by comparing the tables.

use super::section::{merging, value_type};
use crate::schema::object_types::object_type;
use crate::schema::reachable::reachable_types;
use crate::schema::{Field, Shape, TypeSchema};
use crate::{Kind, Version};

const OPENING: &str = "
## Older versions

Older versions are served for clients that still use them. An object can be read and written in each of them, whichever
it was created in.
";

/// The section on older versions.
pub(super) fn section() -> String {
    let mut text = OPENING.to_owned();
    let mut before: Option<(Version, Vec<String>)> = None;
    for version in Version::ALL.into_iter().filter(|version| *version != Version::V1) {
        let items: Vec<_> = Kind::ALL.into_iter().flat_map(|kind| differences(version, kind)).collect();
        let body = match &before {
            Some((newer, same)) if *same == items => format!("The same as [version {newer}](#version-{newer}).\n"),
            _ => items.concat(),
        };
        text.extend([format!("\n### Version {version}\n\n"), body]);
        before = Some((version, items));
    }
    text
}

/// The differences from `v1`, each as the item of a list.
fn differences(version: Version, kind: Kind) -> Vec<String> {
    let types = |version| reachable_types(object_type(version, kind), kind).into_iter().filter_map(Shape::definition);
    let hub: Vec<_> = types(Version::V1).collect();
    let in_both = types(version).filter_map(|old| {
        let new = hub.iter().find(|new| new.name(kind) == old.name(kind))?;
        Some((*new, old))
    });
    in_both
        .flat_map(|(new, old)| differences_of_type(new, old, version, kind))
        .map(|difference| format!("- {difference}\n"))
        .collect()
}

fn differences_of_type(new: &TypeSchema, old: &TypeSchema, version: Version, kind: Kind) -> Vec<String> {
    let path = |field: &Field| {
        let name = old.name(kind);
        format!("[{name}](#{}) `{}`", name.to_ascii_lowercase(), field.name)
    };
    let mut found = Vec::new();
    for field in new.fields.iter().filter(|field| old.field(field.name).is_none()) {
        found.push(format!("{}: absent.", path(field)));
    }
    for field in old.fields {
        match new.field(field.name) {
            None => found.push(format!(
                "{}: not in `v1`, {}{}. {}",
                path(field),
                value_type(field.shape, kind),
                field.default.map(|default| format!(", by default {default}")).unwrap_or_default(),
                field.description(),
            )),
            Some(hub) => {
                let changes = changes(hub, field, version);
                if !changes.is_empty() {
                    found.push(format!("{}: {}", path(field), changes.join(" ")));
                }
            }
        }
    }
    found
}

fn changes(hub: &Field, field: &Field, version: Version) -> Vec<String> {
    let mut changes = Vec::new();
    if hub.required != field.required {
        changes.push(if field.required { "Required." } else { "Not required." }.to_owned());
    }
    if hub.default != field.default {
        let default = field.default.map_or_else(|| "none".to_owned(), |default| default.to_string());
        changes.push(format!("Default: {default}."));
    }
    if merging(hub, Version::V1) != merging(field, version) {
        changes.push(format!("Merged {}.", merging(field, version)));
    }
    if hub.description() != field.description() {
        changes.push(field.description());
    }
    changes
}
