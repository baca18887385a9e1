//! Tables of the objects that every server has.

use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{Version, bootstrap};
use http::StatusCode;
use serde_json::{Value, json};

use super::seen::now;
use crate::negotiate::{MetaVersion, Shape, Wanted};
use crate::output::{Bookmark, Change, Columns, EventWriter, ListMeta, Shown, View, list, object};

fn table_view(include_object: Option<&str>) -> View<'_> {
    let wanted = Wanted { shape: Shape::Table(MetaVersion::V1), ..Wanted::default() };
    View { version: Version::V1beta2, wanted, include_object, now: now() }
}

fn table_of<S: Columns>(shown: &[Shown<'_, S>]) -> Value {
    let response = list(&ListMeta::at("7"), shown, &table_view(Some("None"))).unwrap();
    serde_json::from_slice(&response.body).unwrap()
}

fn cells(table: &Value, column: usize) -> Vec<&Value> {
    table["rows"].as_array().unwrap().iter().map(|row| &row["cells"][column]).collect()
}

#[test]
fn api_175_flow_schemas_stand_in_the_order_in_which_they_match() {
    let schemas = bootstrap::flow_schemas();
    let table = table_of::<FlowSchemaSpec>(&schemas.iter().map(Shown::new).collect::<Vec<_>>());
    let places: Vec<_> = cells(&table, 2).into_iter().map(|cell| cell.as_i64().unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    let names = cells(&table, 0);
    let equals: Vec<_> = names.into_iter().filter(|name| name.as_str().unwrap().starts_with("kube-")).collect();
    assert_eq!(equals, ["kube-controller-manager", "kube-scheduler", "kube-system-service-accounts"]);
    assert_eq!(table["rows"][0]["cells"], json!(["exempt", "exempt", 1, "<none>", "<unknown>", "?"]));
}

#[test]
fn api_174_an_exempt_level_has_no_numbers() {
    let levels = bootstrap::priority_levels();
    let table = table_of::<PriorityLevelConfigurationSpec>(&levels.iter().map(Shown::new).collect::<Vec<_>>());
    let row = |name: &str| {
        table["rows"].as_array().unwrap().iter().find(|row| row["cells"][0] == name).unwrap()["cells"].clone()
    };
    assert_eq!(row("exempt"), json!(["exempt", "Exempt", "<none>", "<none>", "<none>", "<none>", "<unknown>"]));
    assert_eq!(row("catch-all"), json!(["catch-all", "Limited", 5, "<none>", "<none>", "<none>", "<unknown>"]));
    assert_eq!(row("system"), json!(["system", "Limited", 30, 64, 6, 50, "<unknown>"]));
    assert!(cells(&table, 0).into_iter().is_sorted_by_key(|name| name.as_str().unwrap()));
}

#[test]
fn api_177_rows_carry_what_was_asked_for() {
    let schema = &bootstrap::flow_schemas()[0];
    let carried = |include_object| -> Value {
        let response = object(StatusCode::OK, Shown::new(schema), &table_view(include_object)).unwrap();
        serde_json::from_slice::<Value>(&response.body).unwrap()["rows"][0]["object"].take()
    };
    assert_eq!(carried(Some("None")), Value::Null);
    assert_eq!(carried(Some("Object")), serde_json::to_value(schema.in_version(Version::V1beta2)).unwrap());
    for metadata in [None, Some(""), Some("Metadata")] {
        let expected =
            json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": schema.metadata });
        assert_eq!(carried(metadata), expected);
    }
    let failure = object(StatusCode::OK, Shown::new(schema), &table_view(Some("a\"b"))).unwrap_err();
    assert!(failure.message.contains(r#"Invalid value: "a\"b": must be"#), "{failure}");
}

#[test]
fn api_172_only_the_first_event_has_columns() {
    let schema = &bootstrap::flow_schemas()[0];
    let mut writer = EventWriter::new(&table_view(Some("None"))).unwrap();
    let mut columns = || {
        let event = writer.change(Change::Modified, Shown::new(schema), now());
        serde_json::from_slice::<Value>(&event).unwrap()["object"]["columnDefinitions"].take()
    };
    assert_eq!(columns().as_array().map(Vec::len), Some(6));
    assert_eq!(columns(), Value::Null);
    assert!(EventWriter::new(&table_view(Some("Chair"))).is_err());
}

#[test]
fn api_163_bookmarks_are_empty_objects() {
    let view = View { wanted: Wanted::default(), ..table_view(None) };
    let mut writer = EventWriter::new(&view).unwrap();
    let level = writer.bookmark::<PriorityLevelConfigurationSpec>(Bookmark::Progress, "9");
    let expected = r#"{"type":"BOOKMARK","object":{"kind":"PriorityLevelConfiguration","apiVersion":"flowcontrol.apiserver.k8s.io/v1beta2","metadata":{"resourceVersion":"9"},"spec":{"type":""},"status":{}}}"#;
    assert_eq!(level, format!("{expected}\n"));
    let schema = writer.bookmark::<FlowSchemaSpec>(Bookmark::InitialEventsEnd, "9");
    let object = serde_json::from_slice::<Value>(&schema).unwrap()["object"].take();
    assert_eq!(object["metadata"]["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
    assert_eq!(object["spec"], json!({ "priorityLevelConfiguration": { "name": "" }, "matchingPrecedence": 0 }));
}
