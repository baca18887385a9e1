//! Who can send requests, and the smallest caller that some subjects match.
//!
//! Matching is monotone in a caller's groups: a caller in more groups is matched by at least the same subjects. So everything
//! that a subject makes possible is possible for the smallest caller that it matches, one for each way in which a caller can be
//! authenticated.

use std::collections::HashSet;

use evenkeel_api::Preset;
use evenkeel_api::v1::{FlowSchema, Subject, SubjectKind};
use evenkeel_engine::User;
use evenkeel_engine::implied_groups::{
    ANONYMOUS, AUTHENTICATED, SERVICE_ACCOUNT, SERVICE_ACCOUNTS, UNAUTHENTICATED, service_account,
    service_account_groups,
};

use crate::space::unused;

const EVERY: &str = "*";

/// The callers that subjects can tell apart: names that no subject mentions, and how a server names callers that it cannot
/// authenticate.
#[derive(Debug)]
pub(crate) struct Callers {
    somebody: String,
    unauthenticated: String,
    namespace: String,
    account: String,
    /// Whether callers without authentication all have one name, as in Kubernetes. Others name them by their addresses.
    is_anonymous_one_name: bool,
}

/// How a caller is authenticated, which decides about its groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Authenticated {
    /// As an ordinary user: any name that is not that of a service account, and `system:authenticated`.
    AsUser,
    /// As a service account, with the groups that all service accounts have.
    AsServiceAccount,
    /// Not at all: `system:unauthenticated` and no other group.
    NotAtAll,
}

/// The properties that subjects ask of a caller.
#[derive(Debug, Default)]
struct CallerRequirements<'a> {
    name: Option<String>,
    namespace: Option<&'a str>,
    groups: Vec<&'a str>,
}

/// Whether a subject matches a caller (FM-5 to FM-9).
pub(crate) fn is_matched(subject: &Subject, user: &User) -> bool {
    match subject.kind {
        SubjectKind::User => {
            subject.user.as_ref().is_some_and(|named| named.name == EVERY || *named.name == *user.name)
        }
        SubjectKind::Group => subject
            .group
            .as_ref()
            .is_some_and(|named| named.name == EVERY || user.groups.iter().any(|group| **group == *named.name)),
        SubjectKind::ServiceAccount => subject.service_account.as_ref().is_some_and(|account| {
            let rest = user.name.strip_prefix(SERVICE_ACCOUNT);
            let name = rest.and_then(|rest| rest.strip_prefix(&*account.namespace)?.strip_prefix(':'));
            name.is_some_and(|name| account.name == EVERY || name == account.name)
        }),
        SubjectKind::Other(_) => false,
    }
}

/// Whether only service accounts are in a group.
fn is_of_service_accounts(group: &str) -> bool {
    group.strip_prefix(SERVICE_ACCOUNTS).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

// === impl Callers ===

impl Callers {
    /// The callers that the subjects of these schemas can tell apart.
    pub(crate) fn of<'a>(schemas: impl IntoIterator<Item = &'a FlowSchema>, preset: Preset) -> Self {
        let mut mentioned: HashSet<&str> = HashSet::new();
        let rules = schemas.into_iter().flat_map(|schema| &schema.spec.rules);
        for subject in rules.flat_map(|rule| &rule.subjects) {
            mentioned.extend(subject.user.as_ref().map(|user| user.name.as_str()));
            mentioned.extend(subject.group.as_ref().map(|group| group.name.as_str()));
            mentioned.extend(subject.service_account.iter().flat_map(|account| [&*account.namespace, &*account.name]));
            let names = [subject.user.as_ref().map(|user| &user.name), subject.group.as_ref().map(|group| &group.name)];
            mentioned.extend(names.into_iter().flatten().flat_map(|name| name.split(':')));
        }
        let fresh = |text: &str| unused(text, |text| mentioned.contains(text));
        Self {
            somebody: fresh("somebody"),
            unauthenticated: fresh("192.0.2.1"),
            namespace: fresh("some-namespace"),
            account: fresh("some-account"),
            is_anonymous_one_name: preset == Preset::Kubernetes,
        }
    }

    /// A caller that is authenticated, and in no other group.
    pub(crate) fn authenticated(&self) -> User {
        User::new(self.somebody.as_str(), [AUTHENTICATED])
    }

    /// The smallest callers that all of the subjects match: none of them is matched by more subjects than another caller who is
    /// authenticated in the same way.
    pub(crate) fn smallest(&self, subjects: &[&Subject]) -> Vec<User> {
        let Some(wanted) = CallerRequirements::by(subjects) else { return Vec::new() };
        let matching =
            |how| Some(self.caller(how, &wanted)?).filter(|user| subjects.iter().all(|s| is_matched(s, user)));
        let user = matching(Authenticated::AsUser);
        // A service account is in more groups than an ordinary user, so it counts only where no user will do.
        let account = if user.is_none() { matching(Authenticated::AsServiceAccount) } else { None };
        [user, account, matching(Authenticated::NotAtAll)].into_iter().flatten().collect()
    }

    fn caller(&self, how: Authenticated, wanted: &CallerRequirements<'_>) -> Option<User> {
        let groups = wanted.groups.iter().copied();
        let named = wanted.name.as_deref();
        match how {
            Authenticated::AsUser => {
                let name = named.unwrap_or(&self.somebody);
                let is_other = service_account(name).is_some() || (self.is_anonymous_one_name && name == ANONYMOUS);
                let is_reserved = |group: &str| group == UNAUTHENTICATED || is_of_service_accounts(group);
                let is_possible = !is_other && wanted.namespace.is_none() && !groups.clone().any(is_reserved);
                is_possible.then(|| user(name, groups.chain([AUTHENTICATED])))
            }
            Authenticated::AsServiceAccount => {
                let (namespace, account) = match named {
                    Some(name) => service_account(name)?,
                    None => (wanted.namespace.unwrap_or(&self.namespace), self.account.as_str()),
                };
                let own = service_account_groups(namespace);
                let is_foreign = |group: &str| is_of_service_accounts(group) && own.iter().all(|own| own != group);
                let is_possible = !groups.clone().any(|group| group == UNAUTHENTICATED || is_foreign(group));
                let name = format!("{SERVICE_ACCOUNT}{namespace}:{account}");
                is_possible.then(|| user(&name, own.iter().map(String::as_str).chain([AUTHENTICATED]).chain(groups)))
            }
            Authenticated::NotAtAll => {
                let fallback = if self.is_anonymous_one_name { ANONYMOUS } else { &self.unauthenticated };
                let name = named.unwrap_or(fallback);
                let is_possible = (!self.is_anonymous_one_name || name == ANONYMOUS) && service_account(name).is_none();
                is_possible.then(|| user(name, [UNAUTHENTICATED]))
            }
        }
    }
}

/// A user with each group once.
fn user<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> User {
    let mut once: Vec<&str> = Vec::new();
    for group in groups {
        if !once.contains(&group) {
            once.push(group);
        }
    }
    User::new(name, once)
}

// === impl CallerRequirements ===

impl<'a> CallerRequirements<'a> {
    /// What all of the subjects ask for; `None` if they ask for different callers.
    fn by(subjects: &[&'a Subject]) -> Option<Self> {
        let mut wanted = Self::default();
        for subject in subjects {
            match subject.kind {
                SubjectKind::User => match &subject.user.as_ref()?.name {
                    every if every == EVERY => {}
                    name => wanted.name_is(name.clone())?,
                },
                SubjectKind::Group => match &*subject.group.as_ref()?.name {
                    EVERY => {}
                    group => {
                        if let Some(namespace) = group.strip_prefix("system:serviceaccounts:") {
                            wanted.namespace_is(namespace)?;
                        }
                        wanted.groups.push(group);
                    }
                },
                SubjectKind::ServiceAccount => {
                    let account = subject.service_account.as_ref()?;
                    wanted.namespace_is(&account.namespace)?;
                    if account.name != EVERY {
                        wanted.name_is(format!("{SERVICE_ACCOUNT}{}:{}", account.namespace, account.name))?;
                    }
                }
                SubjectKind::Other(_) => return None,
            }
        }
        Some(wanted)
    }

    fn name_is(&mut self, name: String) -> Option<()> {
        let is_same = self.name.as_ref().is_none_or(|known| *known == name);
        is_same.then(|| self.name = Some(name))
    }

    fn namespace_is(&mut self, namespace: &'a str) -> Option<()> {
        let is_same = self.namespace.is_none_or(|known| known == namespace);
        is_same.then(|| self.namespace = Some(namespace))
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::v1::{GroupSubject, ServiceAccountSubject, UserSubject};

    use super::*;

    fn user_subject(name: &str) -> Subject {
        Subject { kind: SubjectKind::User, user: Some(UserSubject { name: name.into() }), ..Subject::default() }
    }

    fn group_subject(name: &str) -> Subject {
        Subject { kind: SubjectKind::Group, group: Some(GroupSubject { name: name.into() }), ..Subject::default() }
    }

    fn account_subject(namespace: &str, name: &str) -> Subject {
        let service_account = Some(ServiceAccountSubject { namespace: namespace.into(), name: name.into() });
        Subject { kind: SubjectKind::ServiceAccount, service_account, ..Subject::default() }
    }

    /// The smallest callers, as `name: groups`.
    fn smallest(preset: Preset, subjects: &[Subject]) -> Vec<String> {
        let callers = Callers::of([], preset).smallest(&subjects.iter().collect::<Vec<_>>());
        callers.iter().map(|user| format!("{}: {}", user.name, user.groups.join(" "))).collect()
    }

    #[test]
    fn one_subject_has_one_caller_for_each_way_to_authenticate() {
        let of = |subject| smallest(Preset::Kubernetes, &[subject]);
        let anonymous = "system:anonymous: system:unauthenticated";
        assert_eq!(of(user_subject("ann")), ["ann: system:authenticated"]);
        assert_eq!(of(user_subject("*")), ["somebody: system:authenticated", anonymous]);
        assert_eq!(of(group_subject("*")), ["somebody: system:authenticated", anonymous]);
        assert_eq!(of(user_subject("system:anonymous")), [anonymous]);
        assert_eq!(of(group_subject("system:unauthenticated")), [anonymous]);
        assert_eq!(of(group_subject("dev")), ["somebody: dev system:authenticated"]);
        assert_eq!(of(group_subject("system:authenticated")), ["somebody: system:authenticated"]);
        let groups = "system:serviceaccounts system:serviceaccounts:a system:authenticated";
        assert_eq!(of(account_subject("a", "x")), [format!("system:serviceaccount:a:x: {groups}")]);
        assert_eq!(of(account_subject("a", "*")), [format!("system:serviceaccount:a:some-account: {groups}")]);
        assert_eq!(of(user_subject("system:serviceaccount:a:x")), [format!("system:serviceaccount:a:x: {groups}")]);
        let of_namespace = of(group_subject("system:serviceaccounts:a"));
        assert_eq!(of_namespace, [format!("system:serviceaccount:a:some-account: {groups}")]);
        assert_eq!(of(group_subject("system:serviceaccounts")).len(), 1);
        assert_eq!(
            of(group_subject("system:serviceaccountsx")),
            ["somebody: system:serviceaccountsx system:authenticated"]
        );
    }

    #[test]
    fn two_subjects_may_have_no_caller_in_common() {
        let of = |one, other| smallest(Preset::Kubernetes, &[one, other]);
        assert_eq!(of(group_subject("a"), group_subject("b")), ["somebody: a b system:authenticated"]);
        assert_eq!(of(user_subject("ann"), group_subject("b")), ["ann: b system:authenticated"]);
        let none: [&str; 0] = [];
        assert_eq!(of(user_subject("ann"), user_subject("bob")), none);
        assert_eq!(of(user_subject("ann"), account_subject("a", "*")), none);
        assert_eq!(of(user_subject("ann"), group_subject("system:serviceaccounts")), none);
        assert_eq!(of(account_subject("a", "*"), group_subject("system:serviceaccounts:b")), none);
        assert_eq!(of(group_subject("dev"), group_subject("system:unauthenticated")), none);
        assert_eq!(of(account_subject("a", "*"), account_subject("a", "x")).len(), 1);
    }

    /// Ordinary services name callers without authentication by their addresses.
    #[test]
    fn a_name_may_be_that_of_somebody_without_authentication() {
        let of = |subject| smallest(Preset::Plain, &[subject]);
        assert_eq!(
            of(user_subject("10.0.0.7")),
            ["10.0.0.7: system:authenticated", "10.0.0.7: system:unauthenticated"]
        );
        assert_eq!(of(group_subject("system:unauthenticated")), ["192.0.2.1: system:unauthenticated"]);
    }
}
