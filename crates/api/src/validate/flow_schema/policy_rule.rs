//! Resource rules and non-resource rules: lists of what is matched (API-42 to API-45).

use crate::Preset;
use crate::v1::{NonResourcePolicyRule, ResourcePolicyRule};
use crate::validate::{FieldError, Path, Value, names};

/// The element that stands for everything, and so stands alone.
const ALL: &str = "*";

const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The verb of a request for a path is its method in lower case, so that these are all that can match.
const METHODS: [&str; 9] = ["connect", "delete", "get", "head", "options", "patch", "post", "put", "trace"];

/// A list of a rule, and what to say of it.
struct Matched<'a> {
    list: &'a [String],
    path: Path<'a>,
    /// If it is empty and may not be.
    missing: &'static str,
    /// The name of the list's entries, for the message about a list of everything and something else.
    what: &'static str,
}

pub(super) fn check_resource(rule: &ResourcePolicyRule, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    check_verbs(&rule.verbs, &VERBS, path, errors);
    let groups = Matched {
        list: &rule.api_groups,
        path: path.child("apiGroups"),
        missing: "resource rules must supply at least one api group",
        what: "api groups",
    };
    groups.elements(errors);
    let resources = Matched {
        list: &rule.resources,
        path: path.child("resources"),
        missing: "resource rules must supply at least one resource",
        what: "resources",
    };
    resources.elements(errors);
    let namespaces = Matched {
        list: &rule.namespaces,
        path: path.child("namespaces"),
        missing: "resource rules that are not cluster scoped must supply at least one namespace",
        what: "namespaces",
    };
    if rule.cluster_scope && rule.namespaces.is_empty() {
        return;
    }
    for (index, namespace) in namespaces.elements(errors).iter().enumerate() {
        let path = namespaces.path.index(index);
        errors.extend(names::namespace(namespace).map(|text| {
            let detail = format!("each member of this list must be '*' or a DNS-1123 label; {text}");
            FieldError::invalid(path, &Value::text(namespace), detail)
        }));
    }
}

pub(super) fn check_non_resource(
    rule: &NonResourcePolicyRule,
    preset: Preset,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let verbs = match preset {
        Preset::Plain | Preset::Llm => &METHODS,
        Preset::Kubernetes => &VERBS,
    };
    check_verbs(&rule.verbs, verbs, path, errors);
    let urls = Matched {
        list: &rule.non_resource_urls,
        path: path.child("nonResourceURLs"),
        missing: "nonResourceURLs must contain at least one value",
        what: "non-resource URLs",
    };
    for (index, url) in urls.elements(errors).iter().enumerate() {
        if let Some(fault) = url_fault(url) {
            errors.push(FieldError::invalid(urls.path.index(index), &Value::text(url), fault));
        }
    }
}

fn check_verbs(verbs: &[String], known: &[&str], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.child("verbs");
    let matched = Matched { list: verbs, path, missing: "verbs must contain at least one value", what: "verbs" };
    if matched.elements(errors).iter().any(|verb| !known.contains(&verb.as_str())) {
        errors.push(FieldError::not_supported(path, &Value::json(verbs), known));
    }
}

fn url_fault(url: &str) -> Option<&'static str> {
    let stem = url.strip_suffix("/*").unwrap_or(url);
    match url {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !url.starts_with('/') => Some("must start with slash"),
        _ if url.contains(' ') => Some("must not contain white-space"),
        _ if url.contains("//") => Some("must not contain double slash"),
        _ if stem.contains('*') => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

// === impl Matched ===

impl<'a> Matched<'a> {
    /// Checks the list as a whole, and gives the elements that are still to be checked one by one.
    fn elements(&self, errors: &mut Vec<FieldError>) -> &'a [String] {
        if self.list.is_empty() {
            errors.push(FieldError::required(self.path, self.missing));
            return &[];
        }
        if !self.list.iter().any(|element| element == ALL) {
            return self.list;
        }
        if self.list.len() > 1 {
            let detail = format!("if '*' is present, must not specify other {}", self.what);
            errors.push(FieldError::invalid(self.path, &Value::json(self.list), detail));
        }
        &[]
    }
}
