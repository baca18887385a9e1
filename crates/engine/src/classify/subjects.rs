//! Which clauses have a user among their subjects (FM-5 to FM-9).

use evenkeel_api::v1::{Subject, SubjectKind};

use super::clause_set::ClauseSet;
use super::listed::Listed;
use super::some_sets::SomeSets;
use crate::User;

/// The name that stands for every user, every group, or every service account of a namespace.
const EVERY: &str = "*";
/// How the names of service accounts start; the namespace, another `:` and the name follow.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Which clauses have which users among their subjects.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    everybody: ClauseSet,
    /// Users by name; service accounts that are named in full are users as well.
    users: Listed,
    groups: Listed,
    /// All service accounts of a namespace.
    namespaces: Listed,
    /// How often `:` can occur in the namespaces at most.
    namespace_colons_max: usize,
}

// === impl Subjects ===

impl Subjects {
    /// Takes in the subjects of a clause.
    pub(super) fn add(&mut self, subjects: &[Subject], clause: usize) {
        for subject in subjects {
            self.add_one(subject, clause);
        }
    }

    fn add_one(&mut self, subject: &Subject, clause: usize) {
        let Subject { kind, user, group, service_account } = subject;
        match (kind, user, group, service_account) {
            (SubjectKind::User, Some(user), _, _) if user.name == EVERY => self.everybody.push(clause),
            (SubjectKind::User, Some(user), _, _) => self.users.add_one(&user.name, clause),
            (SubjectKind::Group, _, Some(group), _) if group.name == EVERY => self.everybody.push(clause),
            (SubjectKind::Group, _, Some(group), _) => self.groups.add_one(&group.name, clause),
            (SubjectKind::ServiceAccount, _, _, Some(account)) if account.name == EVERY => {
                let colons = account.namespace.matches(':').count();
                self.namespace_colons_max = self.namespace_colons_max.max(colons);
                self.namespaces.add_one(&account.namespace, clause);
            }
            (SubjectKind::ServiceAccount, _, _, Some(account)) => {
                self.users.add_one(&format!("{SERVICE_ACCOUNT}{}:{}", account.namespace, account.name), clause);
            }
            _ => {}
        }
    }

    /// Hands on the sets of the clauses that have that user among their subjects, a few at a time.
    #[inline]
    pub(super) fn of<'a>(&'a self, user: &User, each: impl FnMut(&[&'a ClauseSet])) {
        let mut sets = SomeSets::new(each);
        sets.push(Some(&self.everybody));
        sets.push(self.users.by_name(&user.name));
        if let Some(account) = user.name.strip_prefix(SERVICE_ACCOUNT) {
            // Nobody checks that a namespace in a subject has no `:`, so it may end at any of them.
            let colons = account.bytes().enumerate().filter(|(_, byte)| *byte == b':');
            for (end, _) in colons.take(self.namespace_colons_max.saturating_add(1)) {
                sets.push(account.get(..end).and_then(|namespace| self.namespaces.by_name(namespace)));
            }
        }
        for group in &user.groups {
            sets.push(self.groups.by_name(group));
        }
        sets.finish();
    }
}
