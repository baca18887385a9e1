//! Impersonation: members of `system:masters` may send requests as another user.

use std::sync::Arc;

use evenkeel_api::meta::StatusDetails;
use evenkeel_engine::User;
use http::HeaderMap;
use http::header::HeaderValue;

use super::{AUTHENTICATED, MASTERS};
use crate::failure::Failure;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// The group of unauthenticated users.
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";

/// The effective user of a request: its sender, or the user that it impersonates.
pub(crate) fn effective_user(sender: Arc<User>, headers: &HeaderMap) -> Result<Arc<User>, Failure> {
    // An empty name is none.
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
    let mut groups = headers.get_all(GROUP).iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let common = if name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !groups.contains(&common) {
        groups.push(common);
    }
    Ok(Arc::new(User::new(name, groups)))
}

fn text(value: &HeaderValue) -> Result<&str, Failure> {
    std::str::from_utf8(value.as_bytes())
        .map_err(|_| Failure::bad_request("an impersonation header is not valid UTF-8"))
}

fn refusal(sender: &User, name: &str) -> Failure {
    let message = format!(
        "users \"{name}\" is forbidden: User \"{}\" cannot impersonate resource \"users\" in API group \"\" at the cluster \
         scope",
        sender.name
    );
    Failure::forbidden(
        message,
        StatusDetails { name: name.to_owned(), kind: "users".into(), ..StatusDetails::default() },
    )
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
    fn who_is_made_anonymous_is_not_authenticated() {
        let user = ask(MASTERS, &[(USER, ANONYMOUS)]).unwrap();
        assert_eq!(*user.groups, [UNAUTHENTICATED.into()]);
    }
}
