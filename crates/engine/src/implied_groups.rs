//! The groups that follow from who a user is, without anybody naming them (DG-2). Servers and tools have this one rule.

use crate::attributes::User;

/// The name that all callers without authentication have.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of all authenticated callers.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of all callers without authentication.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The prefix of the names of service accounts: a namespace, a colon and the account follow.
pub const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
/// The group of all service accounts. Those of one namespace are in a group of this name, a colon and the namespace.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// Namespace and account, if that is the name of a service account.
///
/// ```
/// use evenkeel_engine::implied_groups::service_account;
///
/// assert_eq!(service_account("system:serviceaccount:shop:worker"), Some(("shop", "worker")));
/// assert_eq!(service_account("system:serviceaccount:shop"), None);
/// ```
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, account) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    (!namespace.is_empty() && !account.is_empty() && !account.contains(':')).then_some((namespace, account))
}

/// The groups that every service account of a namespace is in, beside `system:authenticated`.
pub fn service_account_groups(namespace: &str) -> [String; 2] {
    [SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

// === impl User ===

impl User {
    /// The same user with the groups that every server adds: those of a service account, and `system:authenticated`, or
    /// `system:unauthenticated` for `system:anonymous`. A user without a name becomes `system:anonymous`, and one that is in
    /// either of the last two groups already gets neither.
    ///
    /// ```
    /// use evenkeel_engine::User;
    ///
    /// let worker = User::new("system:serviceaccount:shop:worker", ["night-shift"]).with_implied_groups();
    /// let groups = ["night-shift", "system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"];
    /// assert_eq!(worker, User::new("system:serviceaccount:shop:worker", groups));
    ///
    /// let nobody = User::default().with_implied_groups();
    /// assert_eq!(nobody, User::new("system:anonymous", ["system:unauthenticated"]));
    /// ```
    #[must_use]
    pub fn with_implied_groups(mut self) -> Self {
        if self.name.is_empty() {
            self.name = ANONYMOUS.into();
        }
        if let Some((namespace, _)) = service_account(&self.name) {
            for group in service_account_groups(namespace) {
                if !self.is_in(&group) {
                    self.groups.push(group.into());
                }
            }
        }
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            let implied = if *self.name == *ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
            self.groups.push(implied.into());
        }
        self
    }

    /// Whether the user is in that group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| **own == *group)
    }
}
