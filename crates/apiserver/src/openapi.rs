//! The OpenAPI documents, which tell clients what fields there are and what can be asked (API-185 to API-189).

mod protobuf;

use std::sync::LazyLock;

use evenkeel_api::{GROUP, Version, schema};
use http::header::{ACCEPT, CACHE_CONTROL, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use crate::Failure;
use crate::document::{Document, of_version};
use crate::negotiate::Asked;
use crate::output::{Media, TextFormat};
use crate::response_data::ResponseData;

/// The content type of the protobuf document, and the name by which clients ask for it.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

static INDEX: LazyLock<Document> = LazyLock::new(|| Document::new(&index()));
static V2: LazyLock<Document> = LazyLock::new(|| Document::new(&schema::openapi_v2()));
static V2_PROTOBUF: LazyLock<Document> =
    LazyLock::new(|| Document::of_bytes(protobuf::document(&schema::openapi_v2())));
static V3: [LazyLock<Document>; 4] = [
    LazyLock::new(|| Document::new(&schema::openapi_v3(Version::ALL[0]))),
    LazyLock::new(|| Document::new(&schema::openapi_v3(Version::ALL[1]))),
    LazyLock::new(|| Document::new(&schema::openapi_v3(Version::ALL[2]))),
    LazyLock::new(|| Document::new(&schema::openapi_v3(Version::ALL[3]))),
];

/// `/openapi/v3`: which documents there are.
pub(crate) fn index_response(request: &HeaderMap) -> Result<ResponseData, Failure> {
    json_only(request)?;
    Ok(in_json(&INDEX, request))
}

/// `/openapi/v3/apis/G/V`: the document of one version. `hash` is the query parameter.
pub(crate) fn v3_response(version: Version, hash: Option<&str>, request: &HeaderMap) -> Result<ResponseData, Failure> {
    json_only(request)?;
    let document = v3(version);
    match hash.unwrap_or_default() {
        "" => Ok(in_json(document, request)),
        known if known == document.hash() => {
            let for_ever = HeaderValue::from_static("public, immutable, max-age=31536000");
            Ok(in_json(document, request).with(CACHE_CONTROL, for_ever))
        }
        _ => moved(version),
    }
}

/// `/openapi/v2`: the older form, of all versions at once; in protobuf for those who take nothing else, as kubectl does.
pub(crate) fn v2_response(request: &HeaderMap) -> Result<ResponseData, Failure> {
    match json_only(request) {
        Ok(()) => Ok(in_json(&V2, request)),
        Err(_) if takes_protobuf(request) => {
            let response = V2_PROTOBUF.response(request, HeaderValue::from_static(PROTOBUF));
            Ok(response.with(VARY, HeaderValue::from_static("Accept")))
        }
        Err(failure) => Err(failure),
    }
}

/// Whether the client takes the document in protobuf, by either of the names that this has.
fn takes_protobuf(request: &HeaderMap) -> bool {
    let accept = request.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges = accept.flat_map(|value| value.split(',')).filter_map(|entry| entry.split(';').next());
    ranges.any(|range| [PROTOBUF, PROTOBUF_ASKED].iter().any(|known| range.trim().eq_ignore_ascii_case(known)))
}

/// Rejects clients that want another format, such as protobuf (API-94, API-189).
fn json_only(request: &HeaderMap) -> Result<(), Failure> {
    match Asked::new(request, None).document() {
        Ok(TextFormat::Json(_)) => Ok(()),
        _ => Err(Failure::only_accepted(Media::Json.name())),
    }
}

fn in_json(document: &Document, request: &HeaderMap) -> ResponseData {
    document
        .response(request, HeaderValue::from_static(Media::Json.name()))
        .with(VARY, HeaderValue::from_static("Accept"))
}

/// The path of the current document (API-186).
fn moved(version: Version) -> Result<ResponseData, Failure> {
    let location = HeaderValue::try_from(url(version)).map_err(|error| Failure::plain(error.to_string()))?;
    Ok(ResponseData::empty(StatusCode::MOVED_PERMANENTLY).with(LOCATION, location))
}

fn v3(version: Version) -> &'static Document {
    of_version::<LazyLock<Document>>(&V3, version)
}

fn index() -> Value {
    let path = |version: Version| (format!("apis/{GROUP}/{version}"), json!({ "serverRelativeURL": url(version) }));
    json!({ "paths": Version::ALL.into_iter().map(path).collect::<Map<_, _>>() })
}

fn url(version: Version) -> String {
    format!("/openapi/v3/apis/{GROUP}/{version}?hash={}", v3(version).hash())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiate::recorded_headers;
    use evenkeel_recorded::{compare_subset, compared, transcripts};

    fn json_body(response: &ResponseData) -> Value {
        serde_json::from_slice(&response.body).unwrap()
    }

    fn header<'a>(response: &'a ResponseData, name: &http::HeaderName) -> Option<&'a str> {
        response.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.to_str().unwrap())
    }

    #[test]
    fn documents_are_as_recorded() {
        let Some(transcripts) = transcripts(&["openapi-"]) else { return };
        let mut documents = 0;
        for transcript in transcripts {
            for step in &transcript.steps {
                let (Some(request), Some(recorded)) = (&step.request, &step.response) else { continue };
                let headers = recorded_headers(request);
                let response = match request.path.strip_prefix("/openapi/").unwrap() {
                    "v2" => v2_response(&headers),
                    "v3" => index_response(&headers),
                    path => v3_response(path.rsplit('/').next().unwrap().parse().unwrap(), None, &headers),
                };
                let response = response.unwrap();
                assert_eq!(response.status, recorded.status, "{}", request.path);
                assert_eq!(compare_subset("", recorded.body.as_ref().unwrap(), &json_body(&response)), []);
                documents += 1;
            }
        }
        compared("OpenAPI documents as they are sent", documents);
    }

    #[test]
    fn api_185_the_index_names_documents_by_their_hash() {
        let index = json_body(&index_response(&HeaderMap::new()).unwrap());
        for version in Version::ALL {
            let url = index["paths"][format!("apis/{GROUP}/{version}")]["serverRelativeURL"].as_str().unwrap();
            let (path, hash) = url.split_once("?hash=").unwrap();
            assert_eq!(path, format!("/openapi/v3/apis/{GROUP}/{version}"));
            let response = v3_response(version, Some(hash), &HeaderMap::new()).unwrap();
            assert_eq!(response.status, StatusCode::OK);
            assert!(header(&response, &CACHE_CONTROL).unwrap().contains("immutable"));
        }
    }

    #[test]
    fn api_186_a_wrong_hash_is_told_the_right_one() {
        let response = v3_response(Version::V1beta1, Some("00"), &HeaderMap::new()).unwrap();
        assert_eq!(response.status, StatusCode::MOVED_PERMANENTLY);
        assert_eq!(header(&response, &LOCATION), Some(url(Version::V1beta1).as_str()));
    }

    #[test]
    fn api_189_the_older_form_is_spoken_in_protobuf_too() {
        let asking = |accept| HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        let response = v2_response(&asking(PROTOBUF_ASKED)).unwrap();
        assert_eq!((response.status, response.content_type.unwrap().to_str().unwrap()), (StatusCode::OK, PROTOBUF));
        let both = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf, application/json";
        assert_eq!(v2_response(&asking(both)).unwrap().content_type.unwrap(), "application/json");
        assert_eq!(v2_response(&asking("application/cbor")).unwrap_err().status, StatusCode::NOT_ACCEPTABLE);
        assert_eq!(index_response(&asking(PROTOBUF_ASKED)).unwrap_err().status, StatusCode::NOT_ACCEPTABLE);
    }
}
