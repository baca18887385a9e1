//! From HTTP methods to verbs (DG-4, DG-9, DG-14).

use std::borrow::Cow;

/// The verb of a request that is about a path: the method in lower case.
#[inline]
pub(super) fn of_path(method: &str) -> Cow<'static, str> {
    match method {
        "GET" => "get".into(),
        "HEAD" => "head".into(),
        "POST" => "post".into(),
        "PUT" => "put".into(),
        "PATCH" => "patch".into(),
        "DELETE" => "delete".into(),
        "OPTIONS" => "options".into(),
        "CONNECT" => "connect".into(),
        "TRACE" => "trace".into(),
        other => other.to_lowercase().into(),
    }
}

/// The verb of a request that is about a resource, before it is known whether an object is named.
pub(super) fn of_resource(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}
