//! Names that begin with `system:`, which only Kubernetes' own parts have.

use std::sync::Arc;

use evenkeel_engine::User;

use super::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, Unidentified};

/// The prefix of the names of Kubernetes' own parts.
const SYSTEM: &str = "system:";

/// The user without groups that only parts of Kubernetes are in; an error if the user has the name of such a part.
///
/// The mandatory objects let the group `system:masters` past all limits, so that a service that is no Kubernetes API must
/// not take such names from outside. Allocates nothing unless there is something to leave out.
#[inline]
pub(crate) fn without_system_names(user: Arc<User>) -> Result<Arc<User>, Unidentified> {
    if user.name.starts_with(SYSTEM) {
        return if *user == **ANONYMOUS { Ok(user) } else { Err(Unidentified::unauthorized()) };
    }
    if user.groups.iter().all(|group| may_have(group)) || is_unauthenticated(&user) {
        return Ok(user);
    }
    Ok(Arc::new(User::new(user.name.clone(), user.groups.iter().filter(|group| may_have(group)).cloned())))
}

/// Whether all that is known of a user is that it is not authenticated, as of users by their addresses.
fn is_unauthenticated(user: &User) -> bool {
    matches!(user.groups.as_slice(), [group] if **group == *UNAUTHENTICATED)
}

fn may_have(group: &str) -> bool {
    group == AUTHENTICATED || !group.starts_with(SYSTEM)
}

#[cfg(test)]
mod tests {
    use crate::layer::identify::{anonymous, authenticated};

    use super::*;

    fn names(user: Arc<User>) -> Option<Vec<String>> {
        let user = without_system_names(user).ok()?;
        Some(std::iter::once(&user.name).chain(&user.groups).map(ToString::to_string).collect())
    }

    #[test]
    fn system_users_are_nobody_and_system_groups_are_left_out() {
        let alice = authenticated("alice", ["system:masters", "staff", "system:unauthenticated"]);
        assert_eq!(names(alice).unwrap(), ["alice", "staff", "system:authenticated"]);
        assert_eq!(names(authenticated("system:admin", ["staff"])), None);
        assert_eq!(names(anonymous()).unwrap(), ["system:anonymous", "system:unauthenticated"]);
        assert_eq!(names(authenticated("system:anonymous", ["system:masters"])), None, "it only says so");
    }

    #[test]
    fn others_stay_as_they_are() {
        let alice = authenticated("alice", ["staff"]);
        assert!(Arc::ptr_eq(&alice, &without_system_names(Arc::clone(&alice)).unwrap()));
    }
}
