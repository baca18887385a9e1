//! Every label and field selector that a real server was asked for: what it said of it, and what it selected
//! (API-146 to API-148).

use std::collections::BTreeMap;

use evenkeel_engine::digest::{FieldSelector, LabelSelector};
use evenkeel_recorded::{Body, Response, Step, compared, transcripts};
use serde_json::Value;

/// The recorded message, if it is about a selector that cannot be parsed.
fn recorded_fault<'r>(response: &'r Response, starts: &[&str]) -> Option<&'r str> {
    let message = response.body.as_ref()?.get("message")?.as_str()?;
    (response.status == 400 && starts.iter().any(|start| message.starts_with(start))).then_some(message)
}

fn asked<'s>(step: &'s Step, parameter: &str) -> Option<(&'s str, &'s Response)> {
    Some((step.request.as_ref()?.query(parameter)?, step.response.as_ref()?))
}

#[test]
fn recorded_faults_of_selectors_have_the_same_texts() {
    let Some(transcripts) = transcripts(&[""]) else { return };
    let (mut selectors, mut faults) = (0, 0);
    for transcript in &transcripts {
        for (index, step) in transcript.steps.iter().enumerate() {
            let labels = asked(step, "labelSelector").map(|(text, response)| {
                let recorded = recorded_fault(response, &["found '", "unable to parse requirement"]);
                (text, recorded, LabelSelector::parse(text).err().map(|error| error.to_string()))
            });
            let fields = asked(step, "fieldSelector").map(|(text, response)| {
                let recorded = recorded_fault(response, &["invalid selector", "invalid field selector"]);
                (text, recorded, FieldSelector::parse(text).err().map(|error| error.to_string()))
            });
            for (text, recorded, actual) in labels.into_iter().chain(fields) {
                let place = format!("{}, step {}: {text}", transcript.name, index + 1);
                assert_eq!(actual.as_deref(), recorded, "{place}\n  actual on the left, recorded on the right");
                selectors += 1;
                faults += usize::from(recorded.is_some());
            }
        }
    }
    assert!(faults > 0 && faults < selectors, "nothing was compared of one sort");
    compared("selectors", selectors);
}

#[test]
fn recorded_label_selectors_select_the_same_objects() {
    let Some(transcripts) = transcripts(&["list-label-selectors"]) else { return };
    let mut lists = 0;
    for transcript in &transcripts {
        let mut objects: Vec<(String, BTreeMap<String, String>)> = Vec::new();
        for (index, step) in transcript.steps.iter().enumerate() {
            let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
            if let ("POST", Some(Body::Json(object))) = (&*request.method, request.body()) {
                let labels = serde_json::from_value(object["metadata"]["labels"].clone()).unwrap();
                objects.push((object["metadata"]["name"].as_str().unwrap().to_owned(), labels));
            }
            let items = response.body.as_ref().and_then(|body| body["items"].as_array());
            if let (Some(text), Some(items)) = (request.query("labelSelector"), items) {
                let recorded: Vec<&str> = items.iter().filter_map(|item| name(item)).collect();
                let selector = LabelSelector::parse(text).unwrap();
                let selected = objects.iter().filter(|(_, labels)| selector.matches(labels));
                let actual: Vec<&str> = selected.map(|(name, _)| name.as_str()).collect();
                assert_eq!(actual, recorded, "{}, step {}: {text}", transcript.name, index + 1);
                lists += 1;
            }
        }
    }
    compared("lists by label selectors", lists);
}

fn name(item: &Value) -> Option<&str> {
    item["metadata"]["name"].as_str()
}
