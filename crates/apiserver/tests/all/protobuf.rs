//! Clients that speak protobuf, over HTTP: every verb, watches, refusals, and the same responses as in JSON (PB-1 to PB-7).

use crate::server;

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use evenkeel_api::decode::{Document, Node, parse_protobuf};
use evenkeel_api::protobuf::{self, Envelope};
use evenkeel_api::schema::{self, TypeSchema};
use evenkeel_api::{Kind, Version, v1};
use evenkeel_apiserver::{ApiServerOptions, StatusController};
use evenkeel_recorded::{compared, encodings};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use server::TestServer;
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(60);
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";

/// A connection to a server.
struct Client {
    connection: SendRequest<Full<Bytes>>,
}

/// A complete response.
struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// A server that writes no objects by itself, so that two reads of one see the same.
async fn start() -> TestServer {
    TestServer::start(ApiServerOptions { status_controller: StatusController::Off, ..ApiServerOptions::default() })
        .await
}

// === impl Client ===

impl Client {
    async fn connect(server: &TestServer) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let (connection, driver) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        Self { connection }
    }

    async fn response(
        &mut self,
        method: &str,
        path: &str,
        accept: &str,
        body: (&str, &[u8]),
    ) -> http::Response<Incoming> {
        let (content_type, body) = body;
        let request = Request::builder().method(method).uri(path).header(HOST, "test").header(ACCEPT, accept);
        let request = request.header(AUTHORIZATION, "Bearer admin-token").header(CONTENT_TYPE, content_type);
        let request = request.body(Full::from(Bytes::copy_from_slice(body))).unwrap();
        self.connection.ready().await.unwrap();
        tokio::time::timeout(PATIENCE, self.connection.send_request(request)).await.unwrap().unwrap()
    }

    async fn send(&mut self, method: &str, path: &str, accept: &str, body: (&str, &[u8])) -> Response {
        let (parts, body) = self.response(method, path, accept, body).await.into_parts();
        let body = tokio::time::timeout(PATIENCE, body.collect()).await.unwrap().unwrap().to_bytes();
        Response { status: parts.status, headers: parts.headers, body }
    }

    /// Both sides in protobuf.
    async fn protobuf(&mut self, method: &str, path: &str, body: &[u8]) -> Response {
        let answer = self.send(method, path, PROTOBUF, (PROTOBUF, body)).await;
        assert_eq!(answer.headers[CONTENT_TYPE], PROTOBUF, "{method} {path}: {:?}", answer.body);
        answer
    }

    /// Both sides in JSON.
    async fn json(&mut self, method: &str, path: &str, body: &[u8]) -> (StatusCode, Value) {
        let answer = self.send(method, path, JSON, (JSON, body)).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }
}

// === impl Response ===

impl Response {
    fn read(&self) -> Document {
        read(&self.body)
    }

    fn text(&self, path: &[&str]) -> String {
        text(&self.read().root, path)
    }
}

/// The type of an object that says what it is.
fn schema_of(api_version: &str, kind: &str) -> &'static TypeSchema {
    match kind {
        "Status" => return &schema::STATUS,
        "DeleteOptions" => return &schema::DELETE_OPTIONS,
        "PartialObjectMetadata" => return &schema::PARTIAL_OBJECT_METADATA,
        "PartialObjectMetadataList" if api_version == "meta.k8s.io/v1" => return &schema::PARTIAL_OBJECT_METADATA_LIST,
        "PartialObjectMetadataList" => return &schema::PARTIAL_OBJECT_METADATA_LIST_V1BETA1,
        _ => {}
    }
    let version = Version::from_api_version(api_version).unwrap();
    match kind.strip_suffix("List") {
        Some(item) => schema::list_type(version, item.parse().unwrap()),
        None => schema::object_type(version, kind.parse().unwrap()),
    }
}

fn read(body: &[u8]) -> Document {
    let envelope = Envelope::open(body).unwrap();
    parse_protobuf(&envelope, schema_of(&envelope.api_version, &envelope.kind)).unwrap()
}

fn text(node: &Node, path: &[&str]) -> String {
    let found = path.iter().try_fold(node, |node, name| node.get(name));
    found.and_then(Node::as_str).unwrap_or_default().to_owned()
}

/// What the JSON of an object is in protobuf.
fn encoded(json: &Value) -> Vec<u8> {
    let (api_version, kind) = (json["apiVersion"].as_str().unwrap(), json["kind"].as_str().unwrap());
    let message = protobuf::encode(json, schema_of(api_version, kind)).unwrap();
    protobuf::sealed(api_version, kind, &message)
}

fn flow_schema(version: Version, name: &str) -> Value {
    json!({
        "apiVersion": version.api_version(), "kind": "FlowSchema", "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 5000,
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "alice"}}],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
            }],
        },
    })
}

fn priority_level(version: Version, name: &str) -> Value {
    json!({
        "apiVersion": version.api_version(), "kind": "PriorityLevelConfiguration", "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 3, "handSize": 2}}}},
    })
}

fn delete_options(options: &Value) -> Vec<u8> {
    let mut options = options.clone();
    options["apiVersion"] = "v1".into();
    options["kind"] = "DeleteOptions".into();
    encoded(&options)
}

#[tokio::test]
async fn every_verb_in_every_version() {
    let server = start().await;
    let mut client = Client::connect(&server).await;
    for version in Version::ALL {
        for kind in Kind::ALL {
            let collection = format!("/apis/{}/{}", version.api_version(), kind.resource());
            let path = format!("{collection}/one");
            let object = match kind {
                Kind::FlowSchema => flow_schema(version, "one"),
                Kind::PriorityLevelConfiguration => priority_level(version, "one"),
            };
            let created = client.protobuf("POST", &collection, &encoded(&object)).await;
            assert_eq!(created.status, StatusCode::CREATED, "{version} {kind}");
            let (_, json) = client.json("GET", &path, b"").await;
            assert_eq!(json["metadata"]["generation"], 1);
            assert!(created.body == encoded(&json), "{version} {kind}: {json}");
            let read = client.protobuf("GET", &path, b"").await;
            assert_eq!(read.body, created.body);

            let mut changed = json.clone();
            changed["metadata"]["labels"] = json!({"b": "2", "a": "1"});
            let updated = client.protobuf("PUT", &path, &encoded(&changed)).await;
            assert_eq!(updated.status, StatusCode::OK);
            assert_eq!(updated.text(&["metadata", "labels", "b"]), "2");
            let stale = client.protobuf("PUT", &path, &encoded(&changed)).await;
            assert_eq!((stale.status, stale.text(&["reason"])), (StatusCode::CONFLICT, "Conflict".to_owned()));

            let mut status = json.clone();
            status["metadata"]["resourceVersion"] = "".into();
            status["status"] = json!({"conditions": [{"type": "T", "status": "True"}]});
            let updated = client.protobuf("PUT", &format!("{path}/status"), &encoded(&status)).await;
            assert_eq!(updated.status, StatusCode::OK);
            let (_, json) = client.json("GET", &path, b"").await;
            assert_eq!(json["status"]["conditions"][0]["type"], "T");

            let listed = client.protobuf("GET", &format!("{collection}?limit=2"), b"").await;
            let (_, list) = client.json("GET", &format!("{collection}?limit=2"), b"").await;
            assert_eq!(list["kind"], kind.list_name());
            assert!(list["metadata"]["remainingItemCount"].as_i64().unwrap() > 0);
            assert!(listed.body == encoded(&list), "{version} {kind}");

            let patched =
                client.send("PATCH", &path, PROTOBUF, (MERGE_PATCH, br#"{"metadata":{"labels":null}}"#)).await;
            assert_eq!((patched.status, &patched.headers[CONTENT_TYPE]), (StatusCode::OK, &PROTOBUF.parse().unwrap()));
            assert!(patched.read().root.get("metadata").unwrap().get("labels").is_none());

            let uid = delete_options(&json!({"preconditions": {"uid": "other"}}));
            assert_eq!(client.protobuf("DELETE", &path, &uid).await.status, StatusCode::CONFLICT);
            let dry = client.protobuf("DELETE", &path, &delete_options(&json!({"dryRun": ["All"]}))).await;
            assert_eq!((dry.status, dry.text(&["status"])), (StatusCode::OK, "Success".to_owned()));
            let deleted = client.protobuf("DELETE", &path, &delete_options(&json!({}))).await;
            assert_eq!(deleted.body, dry.body);
            assert_eq!(deleted.text(&["details", "uid"]), created.text(&["metadata", "uid"]));
            let gone = client.protobuf("GET", &path, b"").await;
            let (_, status) = client.json("GET", &path, b"").await;
            assert_eq!(gone.status, StatusCode::NOT_FOUND);
            assert!(gone.body == encoded(&status), "{status}");
        }
    }
    let everything = format!("{SCHEMAS}?labelSelector=none");
    let deleted = client.protobuf("DELETE", &everything, &delete_options(&json!({}))).await;
    assert_eq!((deleted.status, deleted.text(&["kind"])), (StatusCode::OK, "FlowSchemaList".to_owned()));
}

/// A body that was written down by hand, byte for byte.
#[tokio::test]
async fn pb_1_a_body_as_it_is_on_the_wire() {
    let server = start().await;
    let mut client = Client::connect(&server).await;
    let body = b"k8s\0\
        \x0a\x2d\x0a\x1fflowcontrol.apiserver.k8s.io/v1\x12\x0aFlowSchema\
        \x12\x21\
            \x0a\x10\x0a\x04wire\x5a\x08\x0a\x04team\x12\x00\
            \x12\x0b\x0a\x07\x0a\x05batch\x10\x2a\
            \x1a\x00\
        \x1a\x00\x22\x00";
    // Typed Go clients ask for strict validation too, which means nothing here.
    let path = format!("{SCHEMAS}?fieldValidation=Strict");
    let created = client.send("POST", &path, JSON, (PROTOBUF, body)).await;
    let json: Value = serde_json::from_slice(&created.body).unwrap();
    assert_eq!(created.status, StatusCode::CREATED, "{json}");
    assert_eq!((&json["metadata"]["name"], &json["metadata"]["labels"]), (&json!("wire"), &json!({"team": ""})));
    assert_eq!(json["spec"], json!({"matchingPrecedence": 42, "priorityLevelConfiguration": {"name": "batch"}}));
}

#[tokio::test]
async fn pb_6_what_cannot_be_read_is_refused_in_the_words_of_the_reference() {
    let server = start().await;
    let mut client = Client::connect(&server).await;
    let sealed = |api_version: &str, kind: &str, message: &[u8]| protobuf::sealed(api_version, kind, message);
    let group = Version::V1.api_version();
    let unrecognized = "the object provided is unrecognized (must be of type FlowSchema): ";
    for (body, words) in [
        (Vec::new(), format!("{unrecognized}empty data (<empty>)")),
        (b"k8s\0".to_vec(), format!("{unrecognized}empty body (6b387300)")),
        (
            b"{}".to_vec(),
            format!(
                "{unrecognized}provided data does not appear to be a protobuf message, expected prefix \
                 [107 56 115 0] ({{}})"
            ),
        ),
        (b"k8s\0\x0a\x05".to_vec(), format!("{unrecognized}unexpected EOF (6b3873000a05)")),
        (
            sealed(group, "FlowSchema", b"\x08\x01"),
            "FlowSchema in version \"v1\" cannot be handled as a FlowSchema: \
             proto: wrong wireType = 0 for field ObjectMeta"
                .to_owned(),
        ),
        (
            sealed("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", b""),
            format!(
                "the API version in the data (flowcontrol.apiserver.k8s.io/v1beta1) does not match the expected API \
                 version ({group})"
            ),
        ),
        (
            sealed(group, "FlowSchemaList", b""),
            "FlowSchemaList in version \"v1\" cannot be handled as a FlowSchema: \
             converting (v1.FlowSchemaList) to (flowcontrol.FlowSchema): unknown conversion"
                .to_owned(),
        ),
    ] {
        let refused = client.protobuf("POST", SCHEMAS, &body).await;
        assert_eq!((refused.status, refused.text(&["message"])), (StatusCode::BAD_REQUEST, words));
    }
    let other = client.protobuf("DELETE", &format!("{SCHEMAS}/exempt"), &sealed("v1", "Pod", b"")).await;
    assert!(other.text(&["message"]).starts_with("no kind \"Pod\" is registered for version \"v1\""));
    let broken = client.protobuf("DELETE", &format!("{SCHEMAS}/exempt"), b"k8s\0\x12\x02\x10").await;
    assert_eq!(broken.text(&["message"]), "unexpected EOF");
    // Without a type, a message is what the path is for.
    let nameless = client.protobuf("POST", SCHEMAS, &sealed("", "", b"")).await;
    assert_eq!(nameless.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn pb_5_patches_and_tables_stay_text() {
    let server = start().await;
    let mut client = Client::connect(&server).await;
    let path = format!("{SCHEMAS}/exempt");
    let refused = client.protobuf("PATCH", &path, b"k8s\0").await;
    assert_eq!(
        (refused.status, refused.text(&["message"])),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, "415: Unsupported Media Type".to_owned())
    );
    let unknown = client.send("POST", SCHEMAS, PROTOBUF, ("text/html", b"")).await;
    assert_eq!(unknown.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(unknown.text(&["message"]).ends_with(", application/vnd.kubernetes.protobuf"));

    let table = format!("{PROTOBUF};as=Table;v=v1;g=meta.k8s.io");
    let refused = client.send("GET", SCHEMAS, &table, (JSON, b"")).await;
    assert_eq!((refused.status, &refused.headers[CONTENT_TYPE]), (StatusCode::NOT_ACCEPTABLE, &JSON.parse().unwrap()));
    let either = format!("{table},application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = client.send("GET", SCHEMAS, &either, (JSON, b"")).await;
    let json: Value = serde_json::from_slice(&table.body).unwrap();
    assert_eq!((table.status, &json["kind"]), (StatusCode::OK, &json!("Table")));
    let accept = format!("{PROTOBUF},application/json");
    let preferred = client.send("GET", &path, &accept, (JSON, b"")).await;
    assert_eq!(preferred.headers[CONTENT_TYPE], PROTOBUF);
    let document = client.send("GET", "/apis", &accept, (JSON, b"")).await;
    assert_eq!((document.status, &document.headers[CONTENT_TYPE]), (StatusCode::OK, &JSON.parse().unwrap()));
}

#[tokio::test]
async fn pb_7_metadata_alone() {
    let server = start().await;
    let mut client = Client::connect(&server).await;
    for version in ["v1", "v1beta1"] {
        for (path, kind) in [(format!("{SCHEMAS}/exempt"), ""), (SCHEMAS.to_owned(), "List")] {
            let accept = |media: &str| format!("{media};as=PartialObjectMetadata{kind};v={version};g=meta.k8s.io");
            let message = client.send("GET", &path, &accept(PROTOBUF), (JSON, b"")).await;
            let line = client.send("GET", &path, &accept(JSON), (JSON, b"")).await;
            let json: Value = serde_json::from_slice(&line.body).unwrap();
            assert_eq!(json["apiVersion"], format!("meta.k8s.io/{version}"));
            assert_eq!(message.headers[CONTENT_TYPE], PROTOBUF);
            assert!(message.body == encoded(&json), "{json}");
        }
    }
    let accept = format!("{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    let refused = client.send("GET", &format!("{SCHEMAS}/exempt"), &accept, (JSON, b"")).await;
    assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE);
}

/// The frames of a watch, as they come.
struct Frames {
    body: Incoming,
    bytes: BytesMut,
}

impl Frames {
    async fn watch(server: &TestServer, query: &str, accept: &str) -> Self {
        let mut client = Client::connect(server).await;
        let response = client.response("GET", &format!("{SCHEMAS}?watch=true&{query}"), accept, (JSON, b"")).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[CONTENT_TYPE], format!("{PROTOBUF};stream=watch"));
        Self { body: response.into_body(), bytes: BytesMut::new() }
    }

    /// The type of the next event, and the object in it with its envelope; nothing at the end.
    async fn next(&mut self) -> Option<(String, Vec<u8>)> {
        loop {
            if let Some((length, rest)) = self.bytes.split_first_chunk() {
                let length = usize::try_from(u32::from_be_bytes(*length)).unwrap();
                if rest.len() >= length {
                    self.bytes.advance(4);
                    return Some(event(&self.bytes.split_to(length)));
                }
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.unwrap()?;
            self.bytes.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    }
}

/// Takes an event apart: its type, and then the object.
fn event(message: &[u8]) -> (String, Vec<u8>) {
    assert_eq!(message[0], 0x0a);
    let (name, rest) = message[2..].split_at(usize::from(message[1]));
    assert_eq!(rest[0], 0x12);
    let at = rest.windows(4).position(|window| window == protobuf::MAGIC).unwrap();
    let name = String::from_utf8(name.to_vec()).unwrap();
    assert_eq!(protobuf::watch_event(&name, &rest[at..])[4..], *message);
    (name, rest[at..].to_vec())
}

#[tokio::test]
async fn pb_4_a_watch_is_a_stream_of_frames() {
    let server = start().await;
    let mut client = Client::connect(&server).await;
    let query = "fieldSelector=metadata.name%3Done&timeoutSeconds=30";
    let accept = format!("{PROTOBUF};stream=watch,{PROTOBUF}");
    let mut watch = Frames::watch(&server, query, &accept).await;
    let partial = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    let mut metadata = Frames::watch(&server, query, &partial).await;
    let one = format!("{SCHEMAS}/one");
    let created = client.protobuf("POST", SCHEMAS, &encoded(&flow_schema(Version::V1, "one"))).await;
    assert_eq!(watch.next().await.unwrap(), ("ADDED".to_owned(), created.body.to_vec()));
    let (name, object) = metadata.next().await.unwrap();
    assert_eq!((name.as_str(), text(&read(&object).root, &["kind"])), ("ADDED", "PartialObjectMetadata".to_owned()));
    assert_eq!(text(&read(&object).root, &["metadata", "uid"]), created.text(&["metadata", "uid"]));

    let patched = client.send("PATCH", &one, PROTOBUF, (MERGE_PATCH, br#"{"spec":{"matchingPrecedence":7}}"#)).await;
    assert_eq!(watch.next().await.unwrap(), ("MODIFIED".to_owned(), patched.body.to_vec()));
    client.protobuf("DELETE", &one, b"").await;
    let (name, object) = watch.next().await.unwrap();
    assert_eq!((name.as_str(), text(&read(&object).root, &["metadata", "name"])), ("DELETED", "one".to_owned()));
}

#[tokio::test]
async fn pb_4_bookmarks_and_errors_are_frames_too() {
    let server = start().await;
    let initial = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=30";
    let mut watch = Frames::watch(&server, &format!("{initial}&labelSelector=none"), PROTOBUF).await;
    let (name, object) = watch.next().await.unwrap();
    assert_eq!(name, "BOOKMARK");
    let annotation = text(&read(&object).root, &["metadata", "annotations", "k8s.io/initial-events-end"]);
    assert_eq!(annotation, "true");

    let mut expired = Frames::watch(&server, "resourceVersion=1", PROTOBUF).await;
    let (name, object) = expired.next().await.unwrap();
    let status = read(&object).root;
    assert_eq!((name.as_str(), text(&status, &["reason"])), ("ERROR", "Expired".to_owned()));
    assert!(expired.next().await.is_none(), "the end of the stream");
}

/// The recorded objects make no sense, but their bytes are those of the reference: what is said about them is the same
/// whether they come in protobuf or in JSON.
#[tokio::test]
async fn recorded_bodies_are_understood_as_in_json() {
    let server = start().await;
    let mut client = Client::connect(&server).await;
    let mut count = 0;
    for recorded in encodings() {
        let text = recorded.json.to_string();
        let (method, path) = match recorded.what.as_str() {
            "object" => {
                let kind = recorded.json["kind"].as_str().unwrap();
                let kind: Kind = kind.strip_suffix("List").unwrap_or(kind).parse().unwrap();
                let version = recorded.json["apiVersion"].as_str().unwrap();
                ("POST", format!("/apis/{version}/{}", kind.resource()))
            }
            "deleteOptions" => ("DELETE", format!("{SCHEMAS}/absent")),
            _ => continue,
        };
        let message = client.protobuf(method, &path, &recorded.protobuf).await;
        let (status, json) = client.json(method, &path, text.as_bytes()).await;
        assert_eq!(message.status, status, "{text}");
        // A name that the server makes up is another one each time.
        let is_named = recorded.json["metadata"]["name"].is_string() || recorded.what != "object";
        if is_named {
            assert!(message.body == encoded(&json), "{}\nbut\n{json}", message.text(&["message"]));
            count += 1;
        }
    }
    compared("protobuf bodies", count);
}

/// A typed object goes out and comes back.
#[tokio::test]
async fn typed_objects_are_sent_and_read() {
    let server = start().await;
    let mut client = Client::connect(&server).await;
    let schema = v1::FlowSchema::builder("typed").priority_level("workload-low").by_user().build();
    let created = client.protobuf("POST", SCHEMAS, &schema.to_protobuf()).await;
    let decoded = created.read().decode::<v1::FlowSchemaSpec>(Version::V1).unwrap();
    assert!(decoded.dropped.is_empty());
    assert_eq!(decoded.object.spec, schema.spec);
    let listed = client.protobuf("GET", SCHEMAS, b"").await;
    let list = listed.read().decode_list::<v1::FlowSchemaSpec>(Version::V1).unwrap();
    assert!(list.items.iter().any(|item| item.spec == schema.spec && item.name() == "typed"));
}
