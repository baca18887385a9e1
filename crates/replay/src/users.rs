//! The users of a log. A few users send most requests, so each is read once and shared.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use evenkeel_engine::User;
use evenkeel_engine::implied_groups::{ANONYMOUS, UNAUTHENTICATED};

use crate::formats::Damage;
use crate::json::Scanner;

/// Users that have been read, by the text that they were read from.
#[derive(Debug, Default)]
pub struct Users {
    known: HashMap<Box<[u8]>, Arc<User>>,
    text: Vec<u8>,
}

/// Which groups of a user a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Groups {
    /// All of them.
    All,
    /// The groups that the text names; a server adds others.
    Named,
}

/// So many are kept. Then all are read again: tokens may make a user's text unique, and memory is bounded.
const KEPT_MAX: usize = 16_384;

/// Longer texts are not kept.
const TEXT_MAX: usize = 4096;

// === impl Users ===

impl Users {
    /// The user that an object with `username` and `groups` describes.
    pub(crate) fn of_json(&mut self, object: &[u8]) -> Result<Arc<User>, Damage> {
        if let Some(user) = self.known.get(object) {
            return Ok(Arc::clone(user));
        }
        let (mut name, mut groups) = (Cow::Borrowed(""), Vec::<Box<str>>::new());
        Scanner::new(object).object(|member, scanner| {
            match member {
                "username" => name = scanner.string_or_null()?.unwrap_or_default(),
                "groups" if scanner.peek() == Some(b'[') => scanner.array(|scanner| {
                    groups.push(scanner.string()?.into());
                    Ok::<_, Damage>(())
                })?,
                _ => scanner.skip()?,
            }
            Ok::<_, Damage>(())
        })?;
        let user = Arc::new(User::new(name, groups));
        self.keep(object, &user);
        Ok(user)
    }

    /// The user of that name in those groups, which are all of them.
    pub(crate) fn of_names(&mut self, name: &str, groups: &[Cow<'_, str>]) -> Arc<User> {
        self.of_parts(name, groups, Groups::All)
    }

    fn of_parts(&mut self, name: &str, groups: &[Cow<'_, str>], given: Groups) -> Arc<User> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        for part in std::iter::once(name).chain(groups.iter().map(|group| &**group)) {
            text.extend_from_slice(part.as_bytes());
            // No name has this byte, and no JSON starts with a text that has it before a brace.
            text.push(0);
        }
        text.push(given as u8);
        let user = self.known.get(&*text).cloned().unwrap_or_else(|| {
            let user = User::new(name, groups.iter().map(|group| &**group));
            let user = Arc::new(match given {
                Groups::All => user,
                Groups::Named => user.with_implied_groups(),
            });
            self.keep(&text, &user);
            user
        });
        self.text = text;
        user
    }

    /// The user of an access log: an authenticated one of that name, or else the user for that address, as for the gateway's
    /// `address` identity, or else the anonymous one.
    pub(crate) fn of_client(&mut self, name: Option<&str>, groups: &str, address: Option<&str>) -> Arc<User> {
        match (name, address) {
            (Some(name), _) => {
                let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
                self.of_parts(name, &groups.map(Cow::Borrowed).collect::<Vec<_>>(), Groups::Named)
            }
            (None, Some(address)) => self.of_names(&format!("address:{address}"), &[Cow::Borrowed(UNAUTHENTICATED)]),
            (None, None) => self.of_parts(ANONYMOUS, &[], Groups::Named),
        }
    }

    fn keep(&mut self, text: &[u8], user: &Arc<User>) {
        if text.len() > TEXT_MAX {
            return;
        }
        if self.known.len() >= KEPT_MAX {
            self.known.clear();
        }
        self.known.insert(text.into(), Arc::clone(user));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_read_once() {
        let mut users = Users::default();
        let text = br#"{"username":"alice","uid":"2","groups":["team-a","system:authenticated"]}"#;
        let alice = users.of_json(text).unwrap();
        assert_eq!(*alice, User::new("alice", ["team-a", "system:authenticated"]));
        assert!(Arc::ptr_eq(&alice, &users.of_json(text).unwrap()));
        assert_eq!(*users.of_json(b"{}").unwrap(), User::default());
        assert_eq!(*users.of_json(br#"{"username":null,"groups":null}"#).unwrap(), User::default());
        assert!(users.of_json(br#"{"username":7}"#).is_err());
    }

    #[test]
    fn clients_by_name_or_by_address() {
        let mut users = Users::default();
        let authenticated = User::new("bob", ["dev", "ops", "system:authenticated"]);
        assert_eq!(*users.of_client(Some("bob"), "dev, ops", Some("192.0.2.7")), authenticated);
        let address = User::new("address:192.0.2.7", ["system:unauthenticated"]);
        assert_eq!(*users.of_client(None, "", Some("192.0.2.7")), address);
        assert_eq!(*users.of_client(None, "dev", None), User::new("system:anonymous", ["system:unauthenticated"]));
    }

    #[test]
    fn memory_is_bounded() {
        let mut users = Users::default();
        for number in 0..3 * KEPT_MAX {
            users.of_client(Some(&number.to_string()), "", None);
        }
        users.of_client(Some(&"x".repeat(TEXT_MAX + 1)), "", None);
        assert!(users.known.len() <= KEPT_MAX);
        assert!(users.known.keys().all(|text| text.len() <= TEXT_MAX));
    }
}
