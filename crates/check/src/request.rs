//! A request as findings show it, and as tests and calls describe it.

use std::collections::BTreeMap;
use std::fmt;

use evenkeel_api::Preset;
use evenkeel_engine::digest::{Kubernetes, PlainPaths};
use evenkeel_engine::{KnownHead, RequestHead, RequestInfo, User};
use serde::{Deserialize, Serialize};

/// A request: who sends it, and what it asks for.
///
/// It asks for a resource if `resource` is there, and for a path otherwise. In a description, a method may stand in place
/// of the verb: then the path is read as a server of the preset reads it, a kube-apiserver or a gateway.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Request {
    /// The user's name.
    pub user: String,
    /// The groups that the user is in. In a description, those that every server adds need not be named.
    pub groups: Vec<String>,
    /// The verb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// The HTTP method, in a description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The path, for requests that are not for resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The API group; empty for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// The resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// The namespace; absent or empty for requests that are cluster-scoped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The headers, for schemas that ask for some.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

// === impl Request ===

impl Request {
    pub(crate) fn new(user: &User, info: &RequestInfo<'_>) -> Self {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let is_resource = info.is_resource_request;
        Self {
            user: user.name.to_string(),
            groups: user.groups.iter().map(ToString::to_string).collect(),
            verb: Some(info.verb.to_string()),
            method: None,
            path: if is_resource { None } else { text(&info.path) },
            api_group: is_resource.then(|| info.api_group.to_string()),
            resource: text(&info.resource),
            subresource: text(&info.subresource),
            namespace: text(&info.namespace),
            name: text(&info.name),
            headers: headers(&info.head),
        }
    }

    /// The user who sends it, with the groups that every server adds.
    pub fn user(&self) -> User {
        User::new(self.user.as_str(), self.groups.iter().map(String::as_str)).with_implied_groups()
    }

    /// What it asks for, as the classifier sees it. The error says what is missing or wrong in a description.
    pub fn info(&self, preset: Preset) -> Result<RequestInfo<'static>, String> {
        let mut info = self.info_without_headers(preset)?;
        if !self.headers.is_empty() {
            let given = self.headers.iter();
            info.head = given
                .fold(KnownHead::default(), |head, (name, value)| head.header(name.as_str(), value.as_str()))
                .into();
        }
        Ok(info)
    }

    fn info_without_headers(&self, preset: Preset) -> Result<RequestInfo<'static>, String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default().into();
        match (&self.method, &self.verb) {
            (Some(_), Some(_)) => Err("has a method and a verb; give one of them".to_owned()),
            (None, None) => Err("has no method and no verb; give one of them".to_owned()),
            (Some(method), None) => {
                let path = self.path.as_deref().ok_or("has a method, but no path")?;
                if !path.starts_with('/') {
                    return Err(format!("the path {path:?} does not begin with a slash"));
                }
                let method = method.to_ascii_uppercase();
                let info = match preset {
                    Preset::Kubernetes => Kubernetes::default().digest(&method, path),
                    Preset::Plain | Preset::Llm => PlainPaths.digest_normal(&method, path),
                };
                info.map(RequestInfo::into_owned).map_err(|error| error.to_string())
            }
            (None, Some(verb)) => match (&self.resource, &self.path) {
                (Some(_), Some(_)) => Err("has a resource and a path; give one of them".to_owned()),
                (None, None) => Err("has no resource and no path; give one of them".to_owned()),
                (None, Some(path)) => {
                    Ok(RequestInfo { verb: verb.clone().into(), path: path.clone().into(), ..RequestInfo::default() })
                }
                (Some(resource), None) => {
                    let (resource, subresource) = match (resource.split_once('/'), &self.subresource) {
                        (Some((resource, subresource)), None) => (resource, subresource),
                        (_, subresource) => (resource.as_str(), subresource.as_deref().unwrap_or_default()),
                    };
                    Ok(RequestInfo {
                        is_resource_request: true,
                        verb: verb.clone().into(),
                        api_group: text(&self.api_group),
                        resource: resource.to_owned().into(),
                        subresource: subresource.to_owned().into(),
                        namespace: text(&self.namespace),
                        name: text(&self.name),
                        ..RequestInfo::default()
                    })
                }
            },
        }
    }
}

/// The headers of a head that is written down.
fn headers(head: &RequestHead<'_>) -> BTreeMap<String, String> {
    let known = head.known().into_iter().flat_map(|known| &known.headers);
    known.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &Option<String>| text.clone().unwrap_or_default();
        let verb = match (&self.verb, &self.method) {
            (Some(verb), _) if verb.is_empty() => "a method without a verb, such as OPTIONS, on",
            (Some(verb), _) => verb,
            (None, method) => method.as_deref().unwrap_or("a request for"),
        };
        match &self.resource {
            None => write!(f, "{verb} {}", shown(&self.path))?,
            Some(resource) => {
                write!(f, "{verb} {resource}")?;
                if let Some(subresource) = &self.subresource {
                    write!(f, "/{subresource}")?;
                }
                match self.api_group.as_deref() {
                    None | Some("") => {}
                    Some(group) => write!(f, " of {group}")?,
                }
                match self.namespace.as_deref() {
                    None | Some("") => f.write_str(", cluster-scoped")?,
                    Some(namespace) => write!(f, " in namespace {namespace}")?,
                }
            }
        }
        write!(f, " by {}", self.user)?;
        if !self.groups.is_empty() {
            write!(f, " ({})", self.groups.join(", "))?;
        }
        for (name, value) in &self.headers {
            write!(f, ", {name}: {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_a_server_of_the_preset_reads_them() {
        let path = |preset, path: &str| {
            let request = Request { method: Some("get".to_owned()), path: Some(path.to_owned()), ..Request::default() };
            request.info(preset).map(|info| info.path.into_owned())
        };
        for spelling in ["/pub/a", "//pub//a", "/pub/./a", "/x/../pub/a", "/%70ub/a"] {
            assert_eq!(path(Preset::Plain, spelling).as_deref(), Ok("/pub/a"), "{spelling}");
        }
        assert_eq!(path(Preset::Plain, "/pub%2fa").as_deref(), Ok("/pub%2Fa"));
        let fault = "the path has a dot segment beside an encoded slash, a backslash or a path parameter";
        assert_eq!(path(Preset::Plain, "/pub%2F..%2Fa"), Err(fault.to_owned()), "the gateway rejects it");
        // A kube-apiserver takes paths as they are.
        assert_eq!(path(Preset::Kubernetes, "/pub//a").as_deref(), Ok("/pub//a"));
    }
}
