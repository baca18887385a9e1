//! The API of a plain service: its own objects at first, and methods as verbs.

use crate::server;

use evenkeel_api::Preset;
use evenkeel_apiserver::{ApiServer, ApiServerOptions};
use evenkeel_store::{EmbeddedStore, HistoryLimits, Store};
use server::TestServer;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn options(preset: Preset) -> ApiServerOptions {
    ApiServerOptions { preset, ..ApiServerOptions::default() }
}

/// The names of the levels that a flow control would follow.
async fn levels(server: &ApiServer) -> Vec<String> {
    let state = server.objects().next().await.expect("the store is open");
    state.objects.priority_levels.iter().map(|level| level.name().to_owned()).collect()
}

#[tokio::test]
async fn objects_are_those_of_the_preset_and_follow_it() {
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::in_memory(HistoryLimits::default()).expect("memory"));
    let plain = ApiServer::start(Arc::clone(&store), &options(Preset::Plain)).await.expect("it starts");
    assert_eq!(levels(&plain).await, ["catch-all", "everyone", "exempt"]);
    drop(plain);
    let kubernetes = ApiServer::start(Arc::clone(&store), &options(Preset::Kubernetes)).await.expect("it starts");
    let names = levels(&kubernetes).await;
    assert!(names.len() == 8 && !names.contains(&"everyone".to_owned()), "{names:?}");
    drop(kubernetes);
    let plain = ApiServer::start(store, &options(Preset::Plain)).await.expect("it starts");
    assert_eq!(levels(&plain).await, ["catch-all", "everyone", "exempt"]);
}

/// Health checks of a server that has just started are no exception.
#[tokio::test]
async fn nobody_waits_until_seats_are_divided_for_the_first_time() {
    let server = TestServer::start(options(Preset::Plain)).await;
    let check = async {
        let mut stream = TcpStream::connect(server.address).await.expect("it listens");
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.expect("it reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).await.expect("it responds");
        response
    };
    // Where they are divided from time to time, it takes ten seconds.
    let response = tokio::time::timeout(std::time::Duration::from_secs(8), check).await.expect("it does not wait");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

/// The status of the response to a schema with these verbs.
async fn create(server: &TestServer, name: &str, verbs: &str) -> String {
    response(server, name, verbs, "{}").await.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// The response to a schema with these verbs and annotations.
async fn response(server: &TestServer, name: &str, verbs: &str, annotations: &str) -> String {
    let body = format!(
        r#"{{"metadata":{{"name":"{name}","annotations":{annotations}}},"spec":{{"priorityLevelConfiguration":{{"name":"everyone"}},
        "distinguisherMethod":{{"type":"ByUser"}},"rules":[{{
        "subjects":[{{"kind":"User","user":{{"name":"*"}}}}],
        "nonResourceRules":[{{"verbs":{verbs},"nonResourceURLs":["/files/*"]}}]}}]}}}}"#
    );
    let head = format!(
        "POST /apis/flowcontrol.apiserver.k8s.io/v1/flowschemas HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin-token\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(server.address).await.expect("it listens");
    stream.write_all((head + &body).as_bytes()).await.expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("it responds");
    response
}

#[tokio::test]
async fn bm_2_an_annotation_that_is_not_understood_is_stored_and_warned_about() {
    for preset in Preset::ALL {
        let server = TestServer::start(options(preset)).await;
        let (name, value) = ("evenkeel.dev/flow-weight", "heavy");
        let stored = response(&server, "weighty", r#"["get"]"#, &format!(r#"{{"{name}":"{value}"}}"#)).await;
        assert!(stored.starts_with("HTTP/1.1 201"), "{stored}");
        assert!(stored.contains(&format!(r#""{name}":"{value}""#)), "{stored}");
        let head = stored.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
        let warnings: Vec<_> = head.lines().filter(|line| line.starts_with("warning: ")).collect();
        let expected = "warning: 299 - \"annotation evenkeel.dev/flow-weight: invalid value \\\"heavy\\\": must be an integer \
                        from 1 to 10000; 1 is used\"";
        assert_eq!(warnings, [expected]);
        let right = response(&server, "light", r#"["delete"]"#, &format!(r#"{{"{name}":"5","other/name":"x"}}"#)).await;
        assert!(right.starts_with("HTTP/1.1 201") && !right.to_ascii_lowercase().contains("warning:"), "{right}");
    }
}

#[tokio::test]
async fn verbs_of_paths_are_methods() {
    let plain = TestServer::start(options(Preset::Plain)).await;
    assert_eq!(create(&plain, "uploads", r#"["post","put"]"#).await, "201");
    assert_eq!(create(&plain, "lists", r#"["list"]"#).await, "422");
    let kubernetes = TestServer::start(options(Preset::Kubernetes)).await;
    assert_eq!(create(&kubernetes, "uploads", r#"["post","put"]"#).await, "422");
    assert_eq!(create(&kubernetes, "lists", r#"["list"]"#).await, "201");
}

#[tokio::test]
async fn a_schema_that_no_request_can_reach_is_stored_and_warned_about() {
    let warnings = |response: &str| -> Vec<String> {
        assert!(response.starts_with("HTTP/1.1 201"), "{response}");
        let head = response.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
        head.lines().filter(|line| line.starts_with("warning: ")).map(str::to_owned).collect()
    };
    let plain = TestServer::start(options(Preset::Plain)).await;
    assert_eq!(warnings(&response(&plain, "m", r#"["get"]"#, "{}").await), [""; 0]);
    // Of equal precedence, the name decides.
    let expected = |name: &str, taken_by: &str| {
        format!(
            "warning: 299 - \"flow schema \\\"{name}\\\": no request can be classified to this schema: \\\"{taken_by}\\\" takes \
             everything that it matches (unreachable-schema)\""
        )
    };
    // There are other findings, about equal precedences.
    let unreachable = |response: &str| -> Vec<String> {
        warnings(response).into_iter().filter(|warning| warning.contains("(unreachable-schema)")).collect()
    };
    assert_eq!(unreachable(&response(&plain, "z", r#"["get"]"#, "{}").await), [expected("z", "m")]);
    let both = unreachable(&response(&plain, "a", r#"["*"]"#, "{}").await);
    assert_eq!(both, [expected("m", "a"), expected("z", "a")]);
    // A kube-apiserver has no such warnings.
    let kubernetes = TestServer::start(options(Preset::Kubernetes)).await;
    for name in ["m", "z"] {
        assert_eq!(warnings(&response(&kubernetes, name, r#"["get"]"#, "{}").await), [""; 0]);
    }
}
