//! Between objects and the short form (SF-2).

use anyhow::Result;
use evenkeel_api::decode::{Problem, Problems};
use evenkeel_api::short::{NotShort, ShortForm, is_short_form};
use evenkeel_api::{AnyObject, Preset};
use evenkeel_apiserver::json_as_yaml;

use crate::exit::WrongUsage;
use crate::object_files::ObjectFiles;

/// The objects that `levels` and `match` of the files stand for, as YAML.
pub(super) fn to_objects(files: &ObjectFiles) -> Result<String> {
    let objects = files.valid_objects(Preset::Plain)?;
    if objects.is_empty() {
        return Err(nothing("`levels` and `match`, or objects"));
    }
    let texts = objects.iter().map(|object| json_as_yaml(&json(&object.object)));
    Ok(texts.collect::<Vec<_>>().join("---\n"))
}

/// The objects of the files in the short form.
pub(super) fn to_short(files: &ObjectFiles) -> Result<String> {
    let objects = files.valid_objects(Preset::Plain)?;
    if objects.is_empty() {
        return Err(nothing("flow schemas or priority levels"));
    }
    let (mut levels, mut schemas) = (Vec::new(), Vec::new());
    for object in &objects {
        match &object.object {
            AnyObject::FlowSchema(schema) => schemas.push(schema.clone()),
            AnyObject::PriorityLevelConfiguration(level) => levels.push(level.clone()),
        }
    }
    let form = ShortForm::from_objects(&levels, &schemas).map_err(|refused| {
        let place = |refused: &NotShort| {
            let own = |object: &&crate::object_files::FileObject<'_>| {
                (object.object.kind(), object.object.name()) == (refused.kind, refused.name.as_str())
            };
            let found = objects.iter().find(own);
            let (file, at) = found.map(|object| (object.file, object.document.root.at)).unwrap_or_default();
            Problem::new(file, at, refused.to_string())
        };
        let problems = Problems::new(refused.iter().map(place).collect());
        WrongUsage(problems.map(|problems| problems.to_string()).unwrap_or_default())
    })?;
    Ok(form.to_string())
}

fn nothing(wanted: &str) -> anyhow::Error {
    WrongUsage(format!("there are no {wanted} in the files")).into()
}

/// An object without what a server adds.
fn json(object: &AnyObject) -> serde_json::Value {
    let value = match object {
        AnyObject::FlowSchema(schema) => serde_json::to_value(schema),
        AnyObject::PriorityLevelConfiguration(level) => serde_json::to_value(level),
    };
    // The types hold nothing that JSON could not.
    let mut value = value.unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.remove("status");
    }
    value
}

/// Whether a text is a short form, for the error of `--to VERSION`.
pub(super) fn is_short(text: &str) -> bool {
    let documents = evenkeel_api::decode::parse_yaml(text.as_bytes());
    documents.is_ok_and(|documents| documents.iter().any(|document| is_short_form(&document.root)))
}
