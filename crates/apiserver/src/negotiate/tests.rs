//! What clients ask for, as recorded and made up.

use evenkeel_recorded::{Request, compare, compared, transcripts};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;

use super::*;
use crate::output::{Format, Layout, Media, TextFormat};

/// The header fields that the replayer sends for a recorded request.
pub(crate) fn recorded_headers(request: &Request) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static("conformance/1.0 (replay)")),
        (ACCEPT, HeaderValue::from_static("application/json")),
    ]);
    for (name, value) in &request.headers {
        let name: HeaderName = name.parse().unwrap();
        match value {
            Some(value) => headers.insert(name, value.parse().unwrap()),
            None => headers.remove(name),
        };
    }
    headers
}

fn asking(accept: &str) -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())])
}

fn wanted(accept: &str, endpoint: ResponseKind) -> Result<Wanted, crate::Failure> {
    Asked::new(&asking(accept), None).objects(endpoint)
}

/// Whether the request is for objects, and of which endpoint.
fn endpoint(request: &Request) -> Option<ResponseKind> {
    let mut parts = request.path.strip_prefix("/apis/flowcontrol.apiserver.k8s.io/")?.split('/').skip(1);
    parts.next().filter(|resource| !resource.is_empty())?;
    let is_get = request.method == "GET";
    Some(match parts.next() {
        None if is_get && request.query("watch") == Some("true") => ResponseKind::Watch,
        None if is_get => ResponseKind::Collection,
        _ => ResponseKind::Object,
    })
}

#[test]
fn api_91_what_is_accepted_is_as_recorded() {
    let prefixes = ["wire-", "clients-", "kubectl-", "table-", "metaonly-", "watch-", "crud-", "errors-"];
    let Some(transcripts) = transcripts(&prefixes) else { return };
    let (mut responses, mut refused) = (0, 0);
    for transcript in transcripts {
        for step in &transcript.steps {
            let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
            let Some(endpoint) = endpoint(request) else { continue };
            let headers = recorded_headers(request);
            let what = format!("{}: {} {} {headers:?}", transcript.name, request.method, request.path);
            let asked = Asked::new(&headers, request.query("pretty"));
            responses += 1;
            let is_about_metadata = |message: &str| message.starts_with("you requested");
            let message = response.body.as_ref().and_then(|body| body["message"].as_str()).unwrap_or_default();
            match asked.objects(endpoint) {
                Ok(wanted) => {
                    assert!(response.status != 406 || is_about_metadata(message), "{what}");
                    let format = if response.status < 300 { wanted.format } else { asked.failure() };
                    assert_content_type(&response.headers, format, &what);
                }
                Err(failure) => {
                    assert_eq!(response.status, 406, "{what}");
                    assert_content_type(&response.headers, asked.failure(), &what);
                    if let Some(body) = &response.body {
                        assert_eq!(compare("", body, &serde_json::to_value(&failure).unwrap()), [], "{what}");
                    }
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 5, "only {refused} requests were refused");
    compared("responses by Accept", responses);
}

fn assert_content_type(recorded: &serde_json::Map<String, serde_json::Value>, format: Format, what: &str) {
    if let Some(expected) = recorded.get("Content-Type").filter(|expected| !expected.to_string().contains("text/plain"))
    {
        let content_type = format.text().expect("nothing was recorded in protobuf").content_type();
        assert_eq!(expected, content_type.to_str().unwrap(), "{what}");
    }
}

#[test]
fn api_109_body_types_are_as_recorded() {
    let Some(transcripts) = transcripts(&["wire-content-type", "crud-delete-body", "wire-yaml", "clients-"]) else {
        return;
    };
    let (mut bodies, mut refused) = (0, 0);
    for transcript in transcripts {
        for step in &transcript.steps {
            let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
            let Some(body) = request.body() else { continue };
            bodies += 1;
            let default = matches!(body, evenkeel_recorded::Body::Json(_)).then_some("application/json");
            let content_type = match request.headers.get(CONTENT_TYPE.as_str()).or(request.headers.get("Content-Type"))
            {
                Some(named) => named.as_deref(),
                None => default,
            };
            let failure = match request.method.as_str() {
                "PATCH" => patch_type(content_type).err(),
                _ => body_format(content_type).err(),
            };
            assert_eq!(failure.is_some(), response.status == 415, "{}: {content_type:?}", transcript.name);
            if let Some(failure) = failure {
                let found = serde_json::to_value(&failure).unwrap();
                assert_eq!(compare("", response.body.as_ref().unwrap(), &found), [], "{content_type:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 5, "only {refused} bodies were refused");
    compared("bodies by Content-Type", bodies);
}

#[test]
fn api_91_the_best_entry_wins() {
    use Shape::{Plain, Table};
    const PARTIAL: Shape = Shape::PartialMetadata(MetaVersion::V1);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (accept, media, shape) in [
        ("", Media::Json, Plain),
        (" ", Media::Json, Plain),
        ("*/*", Media::Json, Plain),
        ("APPLICATION/JSON", Media::Json, Plain),
        ("application/yaml, application/json", Media::Yaml, Plain),
        ("application/yaml;q=0.5, application/json;q=0.6", Media::Json, Plain),
        ("*/*, application/yaml", Media::Yaml, Plain),
        ("application/vnd.kubernetes.protobuf,application/json", Media::Protobuf, Plain),
        ("application/vnd.kubernetes.protobuf, */*", Media::Protobuf, Plain),
        ("application/vnd.kubernetes.protobuf;q=0.5,application/json", Media::Json, Plain),
        (&format!("{},application/json", table.replace("json", "vnd.kubernetes.protobuf")), Media::Json, Plain),
        (&table.replace("json;as=Table", "vnd.kubernetes.protobuf;as=PartialObjectMetadata"), Media::Protobuf, PARTIAL),
        ("application/json;q=none, application/yaml;q=0.1", Media::Yaml, Plain),
        (table, Media::Json, Table(MetaVersion::V1)),
        (&format!("{},{table}", table.replace("v=v1", "v=v9")), Media::Json, Table(MetaVersion::V1)),
        (&table.replace("json", "yaml"), Media::Yaml, Table(MetaVersion::V1)),
        (&format!("{},application/json", table.replace("Table", "Chair")), Media::Json, Plain),
    ] {
        let wanted = wanted(accept, ResponseKind::Object).unwrap_or_else(|failure| panic!("{accept}: {failure}"));
        assert_eq!((wanted.format, wanted.shape), (Format::new(media, Layout::OneLine), shape), "{accept}");
    }
}

#[test]
fn api_110_what_is_spoken_is_offered() {
    let failure = wanted("text/html", ResponseKind::Collection).unwrap_err();
    assert_eq!(failure.status, StatusCode::NOT_ACCEPTABLE);
    let offered = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let streamed = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    let all = format!("406: Not Acceptable\n\nAvailable representations: {offered}, {streamed}");
    assert_eq!(failure.message, all);
    assert!(body_format(Some("text/html")).unwrap_err().message.ends_with(&format!(": {offered}")));
    assert_eq!(body_format(Some("application/vnd.kubernetes.protobuf")).unwrap(), BodyFormat::Protobuf);
}

#[test]
fn pb_5_tables_are_text() {
    let table = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io";
    let failure = wanted(table, ResponseKind::Collection).unwrap_err();
    assert!(failure.message.starts_with("only the following media types are accepted: application/json, "));
    let both = wanted(&format!("{table},application/json;as=Table;v=v1;g=meta.k8s.io"), ResponseKind::Object).unwrap();
    assert_eq!((both.format, both.shape), (Format::default(), Shape::Table(MetaVersion::V1)));
}

#[test]
fn documents_that_are_no_objects_are_text() {
    let headers = asking("application/vnd.kubernetes.protobuf, */*");
    let asked = Asked::new(&headers, None);
    assert_eq!(asked.document().unwrap(), TextFormat::Json(Layout::OneLine));
    assert_eq!(asked.discovery().unwrap(), DiscoveryShape::Groups(TextFormat::Json(Layout::OneLine)));
    assert_eq!(asked.failure(), Format::Protobuf);
    let headers = asking("application/vnd.kubernetes.protobuf");
    let failure = Asked::new(&headers, None).document().unwrap_err();
    assert_eq!(failure.message, "only the following media types are accepted: application/json, application/yaml");
}

#[test]
fn api_171_a_watch_is_streamed_in_json_or_protobuf() {
    let failure = wanted("application/yaml", ResponseKind::Watch).unwrap_err();
    let streamed = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    assert_eq!(failure.message, format!("only the following media types are accepted: {streamed}"));
    assert_eq!(Asked::new(&asking("application/yaml"), None).failure(), Format::Text(TextFormat::Yaml));
    let both = wanted("application/yaml, application/json;stream=watch", ResponseKind::Watch).unwrap();
    assert_eq!(both.format, Format::default());
    let streamed = wanted("application/vnd.kubernetes.protobuf;stream=watch", ResponseKind::Watch).unwrap();
    assert_eq!(streamed.format, Format::Protobuf);
    assert!(wanted("application/json;stream=other", ResponseKind::Watch).is_err());
}

#[test]
fn api_78_people_get_indented_json() {
    for (pretty, user_agent, expected) in [
        (None, "kubectl/v1.32", Layout::OneLine),
        (None, "curl/8.0", Layout::Indented),
        (Some(""), "Wget/1.0", Layout::Indented),
        (Some("false"), "curl/8.0", Layout::OneLine),
        (Some("T"), "", Layout::Indented),
        (Some("TRUE"), "", Layout::Indented),
        (Some("yes"), "", Layout::OneLine),
    ] {
        let headers = HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_static(user_agent))]);
        let wanted = Asked::new(&headers, pretty).objects(ResponseKind::Object).unwrap();
        assert_eq!(wanted.format, Format::new(Media::Json, expected), "{pretty:?} {user_agent}");
    }
}

proptest! {
    #[test]
    fn any_header_is_accepted_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100), ordinary in any::<bool>()) {
        let text = if ordinary {
            let words = ["application/", "json", "*/*", ";", ",", "q=", "nan", "as=Table", "v=v1", "=", "\"", "yaml", " "];
            bytes.iter().map(|byte| words[usize::from(*byte) % words.len()]).collect::<String>().into_bytes()
        } else {
            bytes
        };
        let Ok(value) = HeaderValue::from_bytes(&text) else { return Ok(()) };
        let headers = HeaderMap::from_iter([(ACCEPT, value)]);
        let asked = Asked::new(&headers, None);
        let refusals = [ResponseKind::Object, ResponseKind::Collection, ResponseKind::Watch]
            .map(|endpoint| asked.objects(endpoint).err())
            .into_iter()
            .chain([asked.document().err(), asked.discovery().err()]);
        for refusal in refusals.flatten() {
            prop_assert_eq!(refusal.status, StatusCode::NOT_ACCEPTABLE);
        }
        // A failure is told whatever the client accepts, and in protobuf only to one that names it.
        let names_protobuf = text.windows(8).any(|part| part.eq_ignore_ascii_case(b"protobuf"));
        prop_assert!(asked.failure() != Format::Protobuf || names_protobuf);
    }
}

/// Ten times the entries must not take a hundred times the time; a header of this size would then take minutes.
#[test]
fn a_long_header_is_read_in_one_pass() {
    let long = "application/json;as=Chair;v=v1;g=meta.k8s.io,".repeat(100_000);
    assert!(wanted(&long, ResponseKind::Object).is_err());
}
