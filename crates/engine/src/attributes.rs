//! What classification and work estimates see of a request: who asks, and for what (DG-1).

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::RequestHead;

/// Who asks: the effective user (DG-2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct User {
    /// The user's name.
    pub name: Box<str>,
    /// The groups that the user is in.
    pub groups: Vec<Box<str>>,
    /// An identity that the user keeps when the name is given to somebody else; empty if there is none. No decision depends on
    /// it.
    pub uid: Box<str>,
    /// Further facts about the user, from whatever authenticated it. No decision depends on them.
    pub extra: BTreeMap<Box<str>, Vec<Box<str>>>,
}

/// What a request asks for. A field that the request does not name is empty.
///
/// The texts are borrowed from the request where nothing had to be decoded.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RequestInfo<'a> {
    /// Whether this is about a resource; otherwise it is about a path.
    pub is_resource_request: bool,
    /// The path, percent-decoded, as it was received.
    pub path: Cow<'a, str>,
    /// The verb: `get`, `list`, `create`, …; for paths the HTTP method in lower case.
    pub verb: Cow<'a, str>,
    /// The first part of the path: `api` or `apis`.
    pub api_prefix: Cow<'a, str>,
    /// The API group; empty for the core group.
    pub api_group: Cow<'a, str>,
    /// The API version.
    pub api_version: Cow<'a, str>,
    /// The namespace.
    pub namespace: Cow<'a, str>,
    /// The resource, in the plural.
    pub resource: Cow<'a, str>,
    /// The subresource.
    pub subresource: Cow<'a, str>,
    /// The name of the object.
    pub name: Cow<'a, str>,
    /// The headers of the request and the address of its client, for schemas that ask for them.
    pub head: RequestHead<'a>,
}

/// A request and its user: all that a decision about a request depends on.
///
/// Not `#[non_exhaustive]`: it is a pair of a user and a request.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Who asks.
    pub user: &'a User,
    /// What is asked for.
    pub request: &'a RequestInfo<'a>,
}

// === impl User ===

impl User {
    /// A user of that name in those groups, and in no others: see [`with_implied_groups`](Self::with_implied_groups).
    pub fn new<G: Into<Box<str>>>(name: impl Into<Box<str>>, groups: impl IntoIterator<Item = G>) -> Self {
        Self { name: name.into(), groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

// === impl RequestInfo ===

impl<'a> RequestInfo<'a> {
    /// A request for a path, such as `get` and `/orders`. Flow schemas match it by `nonResourceRules`.
    ///
    /// ```
    /// use evenkeel_engine::RequestInfo;
    ///
    /// let request = RequestInfo::for_path("get", "/orders");
    /// assert!(!request.is_resource_request);
    /// assert_eq!((&*request.verb, &*request.path), ("get", "/orders"));
    /// ```
    pub fn for_path(verb: impl Into<Cow<'a, str>>, path: impl Into<Cow<'a, str>>) -> Self {
        Self { verb: verb.into(), path: path.into(), ..Self::default() }
    }

    /// The same information with texts of its own, for uses that outlast the request.
    pub fn into_owned(self) -> RequestInfo<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        RequestInfo {
            is_resource_request: self.is_resource_request,
            path: own(self.path),
            verb: own(self.verb),
            api_prefix: own(self.api_prefix),
            api_group: own(self.api_group),
            api_version: own(self.api_version),
            namespace: own(self.namespace),
            resource: own(self.resource),
            subresource: own(self.subresource),
            name: own(self.name),
            head: self.head.into_owned(),
        }
    }
}
