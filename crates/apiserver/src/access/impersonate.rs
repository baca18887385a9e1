//! Impersonation: members of `system:masters` may send requests as another user.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_api::meta::StatusDetails;
use evenkeel_engine::User;
use evenkeel_engine::digest::percent_decoded;
use evenkeel_engine::implied_groups::{ANONYMOUS, UNAUTHENTICATED, service_account, service_account_groups};
use http::HeaderMap;
use http::header::HeaderValue;

use super::{AUTHENTICATED, MASTERS};
use crate::failure::Failure;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The effective user of a request: its sender, or the user that it impersonates.
pub(crate) fn effective_user(sender: Arc<User>, headers: &HeaderMap) -> Result<Arc<User>, Failure> {
    // An empty name counts as absent.
    let Some(name) = headers.get(USER).filter(|name| !name.is_empty()) else {
        let strays =
            headers.keys().any(|key| matches!(key.as_str(), GROUP | UID) || key.as_str().starts_with(EXTRA_PREFIX));
        return if strays {
            Err(Failure::bad_request(
                "groups, a uid or extra fields are impersonated without a user; name one in Impersonate-User",
            ))
        } else {
            Ok(sender)
        };
    };
    let name = text(name)?;
    if !sender.groups.iter().any(|group| **group == *MASTERS) {
        return Err(refusal(&sender, name));
    }
    let mut groups =
        headers.get_all(GROUP).iter().map(|group| Ok(text(group)?.to_owned())).collect::<Result<_, _>>()?;
    add_implied(name, &mut groups);
    let mut user = User::new(name, groups);
    if let Some(uid) = headers.get(UID) {
        user.uid = text(uid)?.into();
    }
    user.extra = extra(headers)?;
    Ok(Arc::new(user))
}

/// Adds the groups that a user is in without being asked for (API-191). A request that names groups of a service account
/// means these.
fn add_implied(name: &str, groups: &mut Vec<String>) {
    if let (true, Some((namespace, _))) = (groups.is_empty(), service_account(name)) {
        groups.extend(service_account_groups(namespace));
    }
    let is_in = |group: &str| groups.iter().any(|own| own == group);
    if name == ANONYMOUS && !is_in(UNAUTHENTICATED) {
        groups.push(UNAUTHENTICATED.to_owned());
    } else if name != ANONYMOUS && !is_in(AUTHENTICATED) && !is_in(UNAUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
}

/// The extra fields of the impersonated user. A key is what comes after the prefix, in lower case and percent-decoded; an
/// invalid encoding is kept as it is.
fn extra(headers: &HeaderMap) -> Result<BTreeMap<Box<str>, Vec<Box<str>>>, Failure> {
    let mut extra = BTreeMap::new();
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) else { continue };
        let values = headers.get_all(name).iter().map(|value| Ok(text(value)?.into()));
        let values = values.collect::<Result<Vec<Box<str>>, Failure>>()?;
        extra.entry(percent_decoded(key).unwrap_or(key.into()).into()).or_insert_with(Vec::new).extend(values);
    }
    Ok(extra)
}

fn text(value: &HeaderValue) -> Result<&str, Failure> {
    std::str::from_utf8(value.as_bytes())
        .map_err(|_| Failure::bad_request("an impersonation header is not valid UTF-8"))
}

fn refusal(sender: &User, name: &str) -> Failure {
    let (kind, name, place) = match service_account(name) {
        Some((namespace, account)) => ("serviceaccounts", account, format!("in the namespace \"{namespace}\"")),
        None => ("users", name, "at the cluster scope".to_owned()),
    };
    let message = format!(
        "{kind} \"{name}\" is forbidden: User \"{}\" cannot impersonate resource \"{kind}\" in API group \"\" {place}",
        sender.name
    );
    Failure::forbidden(message, StatusDetails { name: name.to_owned(), kind: kind.into(), ..StatusDetails::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(sender_group: &str, headers: &[(&'static str, &'static str)]) -> Result<Arc<User>, Failure> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        effective_user(Arc::new(User::new("sender", [sender_group])), &map)
    }

    #[test]
    fn only_masters_ask_as_somebody_else() {
        let user = ask(MASTERS, &[(USER, "alice"), (GROUP, "staff"), (GROUP, "night")]).unwrap();
        assert_eq!((&*user.name, user.groups.len()), ("alice", 3));
        assert_eq!(&*ask("staff", &[]).unwrap().name, "sender");
        let refused = ask("staff", &[(USER, "alice")]).unwrap_err();
        assert!(refused.message.starts_with("users \"alice\" is forbidden: User \"sender\" cannot impersonate"));
        assert_eq!(ask(MASTERS, &[(GROUP, "staff")]).unwrap_err().status, 400);
        assert_eq!(&*ask("staff", &[(USER, "")]).unwrap().name, "sender");
        assert_eq!(ask(MASTERS, &[(USER, ""), (GROUP, "staff")]).unwrap_err().status, 400);
    }

    #[test]
    fn a_uid_and_extra_fields_are_impersonated_too() {
        let user = ask(
            MASTERS,
            &[
                (USER, "alice"),
                (UID, "1001"),
                ("impersonate-extra-scopes", "view"),
                ("impersonate-extra-scopes", "development"),
                ("impersonate-extra-acme.com%2fproject", "some-project"),
                ("impersonate-extra-half%2", "x"),
            ],
        );
        let user = user.unwrap();
        assert_eq!(&*user.uid, "1001");
        let extra: Vec<_> = user.extra.iter().map(|(key, values)| format!("{key}={}", values.join(","))).collect();
        assert_eq!(extra, ["acme.com/project=some-project", "half%2=x", "scopes=view,development"]);
        assert_eq!(&*ask(MASTERS, &[(USER, "alice")]).unwrap().uid, "", "not that of the sender");
        assert_eq!(ask(MASTERS, &[(UID, "1001")]).unwrap_err().status, 400);
    }

    #[test]
    fn a_service_account_is_in_its_groups_unless_others_are_named() {
        let account = "system:serviceaccount:shop:worker";
        for (name, named, groups) in [
            (account, &[][..], "system:serviceaccounts system:serviceaccounts:shop system:authenticated"),
            (account, &["staff"], "staff system:authenticated"),
            ("system:serviceaccount:shop", &[], "system:authenticated"),
            ("system:serviceaccount:shop:a:b", &[], "system:authenticated"),
            ("alice", &["system:unauthenticated"], "system:unauthenticated"),
            ("alice", &["system:authenticated", "staff"], "system:authenticated staff"),
            (ANONYMOUS, &["system:authenticated"], "system:authenticated system:unauthenticated"),
        ] {
            let named = named.iter().map(|group| (GROUP, *group));
            let user = ask(MASTERS, &[(USER, name)].into_iter().chain(named).collect::<Vec<_>>()).unwrap();
            assert_eq!(user.groups.join(" "), groups, "{name}");
        }
        let refused = ask("staff", &[(USER, account)]).unwrap_err().message;
        let expected = "serviceaccounts \"worker\" is forbidden: User \"sender\" cannot impersonate resource \
                        \"serviceaccounts\" in API group \"\" in the namespace \"shop\"";
        assert_eq!(refused, expected);
    }

    #[test]
    fn who_is_made_anonymous_is_not_authenticated() {
        let user = ask(MASTERS, &[(USER, ANONYMOUS)]).unwrap();
        assert_eq!(*user.groups, [UNAUTHENTICATED.into()]);
    }
}
