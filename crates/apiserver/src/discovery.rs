//! Discovery: groups, versions and resources (API-179 to API-183).

use std::sync::LazyLock;

use evenkeel_api::{GROUP, Kind, Version};
use http::header::{CACHE_CONTROL, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::Failure;
use crate::document::{Document, of_version};
use crate::negotiate::{Asked, DiscoveryShape};
use crate::output::{Layout, TextFormat};
use crate::response_data::ResponseData;

/// A discovery document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// `/api`: the versions of the core group. There is one without any resources: it is where kubectl looks for the kind
    /// `List`, which is what it saves objects as (API-182).
    Core,
    /// `/api/v1`: the resources of the core group, of which there are none.
    CoreResources,
    /// `/apis`: all groups.
    Groups,
    /// `/apis/G`: the versions of the group.
    Group,
    /// `/apis/G/V`: the resources of a version.
    Resources(Version),
}

/// The verbs of objects and collections.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// The verbs of statuses.
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];
/// The only version of the core group.
const CORE_VERSION: &str = "v1";
/// The media type of the aggregated form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

static CORE: LazyLock<Document> = LazyLock::new(|| Document::new(&core()));
static CORE_RESOURCES: LazyLock<Document> = LazyLock::new(|| Document::new(&resource_list(CORE_VERSION, &[])));
static CORE_AGGREGATED: LazyLock<Document> = LazyLock::new(|| Document::new(&aggregated(&[aggregated_core()])));
static GROUPS: LazyLock<Document> = LazyLock::new(|| Document::new(&groups()));
static GROUPS_AGGREGATED: LazyLock<Document> = LazyLock::new(|| Document::new(&aggregated(&[aggregated_group()])));
static GROUP_ALONE: LazyLock<Document> = LazyLock::new(|| Document::new(&group_alone()));
static RESOURCES: LazyLock<[Document; 4]> =
    LazyLock::new(|| Version::ALL.map(|version| Document::new(&resources(version))));
static VERSION: LazyLock<Document> = LazyLock::new(|| Document::new(&version()));

/// The response to a request with those header fields. `pretty` is the query parameter.
pub(crate) fn response(what: Discovery, request: &HeaderMap, pretty: Option<&str>) -> Result<ResponseData, Failure> {
    let asked = Asked::new(request, pretty);
    let (plain, aggregated) = match what {
        Discovery::Core => (&*CORE, &*CORE_AGGREGATED),
        Discovery::CoreResources => return Ok(plain_answer(&CORE_RESOURCES, asked.document()?)),
        Discovery::Groups => (&*GROUPS, &*GROUPS_AGGREGATED),
        Discovery::Group => return Ok(plain_answer(&GROUP_ALONE, asked.document()?)),
        Discovery::Resources(version) => {
            return Ok(plain_answer(of_version(&RESOURCES, version), asked.document()?));
        }
    };
    Ok(match asked.discovery()? {
        DiscoveryShape::Groups(format) => plain_answer(plain, format),
        DiscoveryShape::Aggregated => aggregated
            .response(request, HeaderValue::from_static(AGGREGATED))
            .with(CACHE_CONTROL, HeaderValue::from_static("public")),
    }
    .with(VARY, HeaderValue::from_static("Accept")))
}

/// The response to `/version` (API-183), which is read by people more than by programs.
pub(crate) fn version_response() -> ResponseData {
    plain_answer(&VERSION, TextFormat::Json(Layout::Indented))
}

fn plain_answer(document: &Document, format: TextFormat) -> ResponseData {
    ResponseData::document(StatusCode::OK, document.line(), format)
}

fn core() -> Value {
    json!({ "kind": "APIVersions", "versions": [CORE_VERSION], "serverAddressByClientCIDRs": [] })
}

fn groups() -> Value {
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group()] })
}

fn group_alone() -> Value {
    let mut group = group();
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    group
}

fn group() -> Value {
    let versions =
        Version::ALL.map(|version| json!({ "groupVersion": version.api_version(), "version": version.name() }));
    json!({ "name": GROUP, "versions": versions, "preferredVersion": versions[0] })
}

fn resources(version: Version) -> Value {
    let of_kind = |kind: Kind| {
        let (name, kind_name) = (kind.resource(), kind.name());
        // Clients compare this hash to learn whether objects are still stored in the same form.
        let hash = match kind {
            Kind::FlowSchema => "GJVAJZSZBIw=",
            Kind::PriorityLevelConfiguration => "Kir5PVfvNeI=",
        };
        [
            json!({
                "name": name, "singularName": kind.singular(), "namespaced": false, "kind": kind_name, "verbs": VERBS,
                "storageVersionHash": hash,
            }),
            json!({
                "name": format!("{name}/status"), "singularName": "", "namespaced": false, "kind": kind_name,
                "verbs": STATUS_VERBS,
            }),
        ]
    };
    let resources: Vec<_> = Kind::ALL.into_iter().flat_map(of_kind).collect();
    resource_list(version.api_version(), &resources)
}

fn resource_list(group_version: &str, resources: &[Value]) -> Value {
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources })
}

fn aggregated(groups: &[Value]) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups,
    })
}

fn aggregated_core() -> Value {
    let version = json!({ "version": CORE_VERSION, "resources": [], "freshness": "Current" });
    json!({ "metadata": {}, "versions": [version] })
}

fn aggregated_group() -> Value {
    let resources = Kind::ALL.map(|kind| {
        let response_kind = json!({ "group": "", "version": "", "kind": kind.name() });
        json!({
            "resource": kind.resource(), "responseKind": response_kind, "scope": "Cluster",
            "singularResource": kind.singular(), "verbs": VERBS,
            "subresources": [{ "subresource": "status", "responseKind": response_kind, "verbs": STATUS_VERBS }],
        })
    });
    let version =
        |version: Version| json!({ "version": version.name(), "resources": resources, "freshness": "Current" });
    json!({ "metadata": { "name": GROUP }, "versions": Version::ALL.map(version) })
}

/// The Kubernetes version whose behaviour clients may expect, and the version of Evenkeel.
fn version() -> Value {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    json!({
        "major": "1", "minor": "37", "gitVersion": concat!("v1.37.0+evenkeel-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "",
        "compiler": "rustc", "platform": platform,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::negotiate::recorded_headers;
    use crate::output;
    use evenkeel_recorded::{compare, compare_subset, compared, transcripts};

    fn asked_for(path: &str) -> Option<Discovery> {
        match path.trim_end_matches('/') {
            "/api" => Some(Discovery::Core),
            "/api/v1" => Some(Discovery::CoreResources),
            "/apis" => Some(Discovery::Groups),
            path => match path.strip_prefix("/apis/flowcontrol.apiserver.k8s.io")?.strip_prefix('/') {
                Some(version) => version.parse().ok().map(Discovery::Resources),
                None => Some(Discovery::Group),
            },
        }
    }

    #[test]
    fn documents_are_as_recorded() {
        let Some(transcripts) = transcripts(&["discovery-"]) else { return };
        let mut documents = 0;
        for transcript in transcripts {
            for step in &transcript.steps {
                let (Some(request), Some(recorded)) = (&step.request, &step.response) else { continue };
                let headers = recorded_headers(request);
                let response = match asked_for(&request.path) {
                    Some(what) => super::response(what, &headers, None)
                        .unwrap_or_else(|failure| output::failure(&failure, Asked::new(&headers, None).failure())),
                    None if request.path == "/version" => version_response(),
                    None => continue,
                };
                let what = format!("{} {} {headers:?}", transcript.name, request.path);
                assert_eq!(response.status, recorded.status, "{what}");
                let content_type = response.content_type.as_ref().unwrap().to_str().unwrap();
                assert_eq!(recorded.headers["Content-Type"], content_type, "{what}");
                for name in ["Vary", "Cache-Control"] {
                    let Some(expected) = recorded.headers.get(name) else { continue };
                    let found = response.headers.iter().find(|(found, _)| found.as_str().eq_ignore_ascii_case(name));
                    assert_eq!(found.unwrap().1.to_str().unwrap(), expected, "{what}");
                }
                let Some(expected) = &recorded.body else { continue };
                let found = serde_json::from_slice(&response.body).unwrap();
                let compare = if recorded.mode == "subset" { compare_subset } else { compare };
                assert_eq!(compare("", expected, &found), [], "{what}");
                documents += 1;
            }
        }
        assert!(documents > 5, "only {documents} documents were compared");
        compared("discovery documents", documents);
    }

    #[test]
    fn api_181_the_aggregated_form_wins_wherever_it_stands() {
        let aggregated = AGGREGATED;
        for accept in [
            format!("application/json,{aggregated}"),
            format!("application/json;q=0.9,{aggregated};q=0.1"),
            format!("*/*, application/yaml , {aggregated}"),
        ] {
            let headers = HeaderMap::from_iter([(http::header::ACCEPT, HeaderValue::from_str(&accept).unwrap())]);
            for what in [Discovery::Groups, Discovery::Core] {
                let response = super::response(what, &headers, None).unwrap();
                assert_eq!(response.content_type.unwrap(), aggregated, "{accept}");
                let caching = response.headers.iter().find(|(name, _)| name == CACHE_CONTROL);
                assert_eq!(caching.unwrap().1, "public", "{accept}");
            }
        }
    }

    #[test]
    fn api_181_another_version_of_the_aggregated_form_falls_through() {
        let with = |accept: &'static str| {
            let headers = HeaderMap::from_iter([(http::header::ACCEPT, HeaderValue::from_static(accept))]);
            super::response(Discovery::Groups, &headers, None)
        };
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        assert_eq!(with(old).unwrap_err().status, StatusCode::NOT_ACCEPTABLE);
        let list = with("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json");
        assert_eq!(list.unwrap().content_type.unwrap(), "application/json");
    }
}
