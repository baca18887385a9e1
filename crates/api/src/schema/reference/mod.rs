//! The reference of both kinds for people, in Markdown.

mod annotations;
mod older_versions;
mod section;

use crate::schema::object_types::object_type;
use crate::schema::reachable::{reachable_types, type_name};
use crate::schema::{Package, Shape};
use crate::{Kind, Version};

const OPENING: &str = "\
# Reference of the objects

This page is generated from the schema table in `crates/api`. Do not edit it: change the doc comments there, and then
run `EVENKEEL_UPDATE=1 cargo test -p evenkeel-api --test all schema_reference`.

Evenkeel has the two kinds of objects of Kubernetes' API Priority and Fairness: a [FlowSchema](#flowschema) defines which
requests go to a priority level, and a [PriorityLevelConfiguration](#prioritylevelconfiguration) defines how many of them
run at a time and what happens to the others. This page describes version `v1`; [the end of the page](#older-versions)
lists the differences of older versions.

In the column \"required\", \"read-only\" marks what the server sets. If a field is absent, the
value in the column \"default\" is used. The column \"merging\" shows what server-side apply and
strategic merge patch do with an existing list: they replace it as a whole, or merge it element by element.
";

/// The reference of both kinds, as version `v1` writes them, and how the older versions differ.
///
/// ```
/// use evenkeel_api::schema;
///
/// assert!(schema::markdown_reference().contains("\n### FlowSchemaSpec\n"));
/// ```
pub fn markdown_reference() -> String {
    let mut page = OPENING.to_owned();
    page += &sections(Version::V1, &Kind::ALL);
    page.push_str(&annotations::section());
    page.push_str(&older_versions::section());
    page
}

/// The sections of the reference on some kinds, as one version writes them.
///
/// ```
/// use evenkeel_api::{Kind, Version, schema};
///
/// let page = schema::markdown_of(Version::V1beta2, &[Kind::PriorityLevelConfiguration]);
/// assert!(page.starts_with("# flowcontrol.apiserver.k8s.io/v1beta2\n"));
/// assert!(page.contains("assuredConcurrencyShares"));
/// ```
pub fn markdown_of(version: Version, kinds: &[Kind]) -> String {
    format!("# {}\n{}", version.api_version(), sections(version, kinds))
}

fn sections(version: Version, kinds: &[Kind]) -> String {
    let mut page = String::new();
    let mut shared: Vec<(Kind, Shape)> = Vec::new();
    let mut written: Vec<String> = Vec::new();
    for &kind in kinds {
        for (depth, shape) in reachable_types(object_type(version, kind), kind).into_iter().enumerate() {
            let Some(name) = type_name(shape, kind) else { continue };
            if written.contains(&name) {
                continue;
            }
            written.push(name);
            if shape.definition().is_some_and(|schema| schema.package == Package::Meta) {
                shared.push((kind, shape));
            } else {
                // The object itself comes first, and its parts are sections below it.
                let heading = if depth == 0 { "##" } else { "###" };
                page.push_str(&section::section(heading, shape, version, kind));
            }
        }
    }
    page.push_str("\n## Metadata\n\nThe fields that objects of both kinds have in common.\n");
    page.extend(shared.into_iter().map(|(kind, shape)| section::section("###", shape, version, kind)));
    page
}
