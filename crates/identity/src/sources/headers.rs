//! Identifies users by headers of a trusted proxy.

use std::sync::Arc;

use evenkeel_engine::User;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::cache::Cache;
use super::naming::Naming;
use super::{Denial, Verdict};
use crate::Peer;
use crate::config::{Cidr, HeaderIdentity};

/// Headers that name users, and who may set them.
#[derive(Debug)]
pub(crate) struct Headers {
    addresses: Vec<Cidr>,
    certificates: Vec<String>,
    user: HeaderName,
    group: HeaderName,
    naming: Naming,
    known: Cache<Box<str>, KnownUser>,
}

/// A user that was named lately, with the groups as they were sent.
#[derive(Debug, Clone)]
struct KnownUser {
    user: Arc<User>,
    groups: Arc<[HeaderValue]>,
}

/// Longer users are put together anew each time, so that the cache has a bound in bytes.
const KNOWN_BYTES_MAX: usize = 4096;

// === impl Headers ===

impl Headers {
    pub(super) fn new(config: &HeaderIdentity) -> Self {
        Self {
            addresses: config.from_addresses.clone(),
            certificates: config.from_certificates.clone(),
            user: config.user_header.clone(),
            group: config.group_header.clone(),
            naming: Naming { system_names: config.system_names, ..Naming::default() },
            known: Cache::default(),
        }
    }

    pub(super) fn user_header(&self) -> &HeaderName {
        &self.user
    }

    /// Whether this peer is trusted to say who sent a request.
    pub(super) fn trusts(&self, peer: &Peer) -> bool {
        self.addresses.iter().any(|range| range.contains(peer.address.ip()))
            || peer
                .certificate
                .as_ref()
                .and_then(|shown| shown.common_name.as_ref())
                .is_some_and(|name| self.certificates.contains(name))
    }

    /// The user that the headers name. Call it for trusted peers only.
    pub(super) fn ask(&self, headers: &HeaderMap) -> Verdict {
        let mut names = headers.get_all(&self.user).iter();
        let Some(name) = names.next().filter(|name| !name.is_empty()) else { return Verdict::Absent };
        // A proxy that adds its header to the client's instead of replacing it would let clients choose.
        if names.next().is_some() {
            return Verdict::Wrong(Denial::Malformed);
        }
        let Ok(name) = std::str::from_utf8(name.as_bytes()) else { return Verdict::Wrong(Denial::Malformed) };
        let groups = headers.get_all(&self.group);
        if let Some(known) = self.known.get(name).filter(|known| known.groups.iter().eq(groups.iter())) {
            return Verdict::Known(known.user);
        }
        let texts: Result<Vec<_>, _> = groups.iter().map(|group| std::str::from_utf8(group.as_bytes())).collect();
        let Ok(texts) = texts else { return Verdict::Wrong(Denial::Malformed) };
        let Some(user) = self.naming.user(name, texts) else { return Verdict::Wrong(Denial::Name) };
        if name.len() + groups.iter().map(HeaderValue::len).sum::<usize>() <= KNOWN_BYTES_MAX {
            // Copies: a value of a header keeps all of the head alive that it is a part of.
            let groups = groups.iter().filter_map(|group| HeaderValue::from_bytes(group.as_bytes()).ok()).collect();
            self.known.keep(name.into(), KnownUser { user: Arc::clone(&user), groups });
        }
        Verdict::Known(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(user: &[&str], groups: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in user {
            headers.append("x-remote-user", name.parse().unwrap());
        }
        for group in groups {
            headers.append("x-remote-group", group.parse().unwrap());
        }
        headers
    }

    fn known(verdict: Verdict) -> Arc<User> {
        let Verdict::Known(user) = verdict else { panic!("{verdict:?}") };
        user
    }

    #[test]
    fn the_same_user_is_not_put_together_twice() {
        let source = Headers::new(&HeaderIdentity::default());
        let first = known(source.ask(&headers(&["alice"], &["staff", "system:masters"])));
        assert_eq!(*first, User::new("alice", ["staff", "system:authenticated"]));
        assert!(Arc::ptr_eq(&first, &known(source.ask(&headers(&["alice"], &["staff", "system:masters"])))));
        let other = known(source.ask(&headers(&["alice"], &["staff"])));
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(known(source.ask(&headers(&["alice"], &[]))).groups.len(), 1);
    }

    #[test]
    fn no_name_is_nobody_and_two_names_are_wrong() {
        let source = Headers::new(&HeaderIdentity::default());
        assert_eq!(source.ask(&headers(&[], &["staff"])), Verdict::Absent);
        assert_eq!(source.ask(&headers(&[""], &[])), Verdict::Absent);
        assert_eq!(source.ask(&headers(&["alice", "bob"], &[])), Verdict::Wrong(Denial::Malformed));
        assert_eq!(source.ask(&headers(&["system:admin"], &[])), Verdict::Wrong(Denial::Name));
    }
}
