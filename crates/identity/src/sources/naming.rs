//! Which names a source may give.

use std::sync::Arc;

use evenkeel::identify::authenticated;
use evenkeel_engine::User;

use crate::config::SystemNames;

/// The prefixes that a source puts before names, and which names it may give.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Naming {
    pub(super) user_prefix: String,
    pub(super) group_prefix: String,
    pub(super) system_names: SystemNames,
}

/// The prefix of Kubernetes' own names.
const SYSTEM: &str = "system:";
/// Longer names are refused.
const NAME_BYTES_MAX: usize = 4096;

// === impl Naming ===

impl Naming {
    /// Names without prefixes and limits, for names that the operator has written down.
    pub(super) fn as_written() -> Self {
        Self { system_names: SystemNames::Allow, ..Self::default() }
    }

    /// The user of this name in these groups, and in that of all who are authenticated; none if it may not have the name.
    pub(super) fn user<'a>(&self, name: &str, groups: impl IntoIterator<Item = &'a str>) -> Option<Arc<User>> {
        if !is_sound(name) {
            return None;
        }
        let name = prefixed(&self.user_prefix, name);
        let mut allowed = Vec::new();
        for group in groups {
            if !is_sound(group) {
                return None;
            }
            let group = prefixed(&self.group_prefix, group);
            if self.allows(&group) {
                allowed.push(group);
            }
        }
        self.allows(&name).then(|| authenticated(name, allowed))
    }

    /// Looks at the whole name: a prefix and a name of which neither begins with `system:` may do so together.
    fn allows(&self, name: &str) -> bool {
        self.system_names == SystemNames::Allow || !name.starts_with(SYSTEM)
    }
}

fn prefixed(prefix: &str, name: &str) -> Box<str> {
    if prefix.is_empty() { name.into() } else { [prefix, name].concat().into() }
}

/// Whether a name reads the same everywhere, even in a header, where white space at its ends is lost.
fn is_sound(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.trim() == name && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(naming: &Naming, name: &str, groups: &[&str]) -> Option<Vec<String>> {
        let user = naming.user(name, groups.iter().copied())?;
        Some(std::iter::once(&user.name).chain(&user.groups).map(ToString::to_string).collect())
    }

    #[test]
    fn system_names_are_refused_and_system_groups_left_out() {
        let naming = Naming::default();
        assert_eq!(names(&naming, "system:admin", &[]), None);
        let alice = names(&naming, "alice", &["system:masters", "staff", "system:authenticated"]).unwrap();
        assert_eq!(alice, ["alice", "staff", "system:authenticated"]);
    }

    #[test]
    fn a_prefix_and_a_name_do_not_make_a_system_name_together() {
        let naming = Naming { user_prefix: "sys".into(), group_prefix: "system".into(), ..Naming::default() };
        assert_eq!(names(&naming, "tem:admin", &[]), None);
        assert_eq!(
            names(&naming, "alice", &[":masters", "staff"]).unwrap(),
            ["sysalice", "systemstaff", "system:authenticated"]
        );
    }

    #[test]
    fn system_names_are_accepted_where_that_is_allowed() {
        let alice = names(&Naming::as_written(), "system:admin", &["system:masters"]).unwrap();
        assert_eq!(alice, ["system:admin", "system:masters", "system:authenticated"]);
    }

    #[test]
    fn names_that_could_be_read_in_two_ways_are_nobodys() {
        for name in ["", " alice", "alice ", "al\nice", "alice\u{7f}", "a\0", &"a".repeat(NAME_BYTES_MAX + 1)] {
            assert_eq!(names(&Naming::default(), name, &[]), None, "{name:?}");
            assert_eq!(names(&Naming::default(), "alice", &[name]), None, "{name:?}");
        }
        assert!(names(&Naming::default(), "Zoë Müller", &[]).is_some());
    }
}
