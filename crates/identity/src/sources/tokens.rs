//! Tokens and keys from a file, in the format of Kubernetes: `token,user,uid,"group1,group2"`.

mod csv;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use evenkeel_engine::User;
use evenkeel_files::{WatchedFile, warn_if_open_to_others};
use http::{HeaderMap, HeaderName};

use super::naming::Naming;
use super::secret::{SecretHash, SecretHasher};
use super::{Denial, Verdict};
use crate::header_names;

/// The tokens of a file, each with its user.
#[derive(Debug)]
pub(crate) struct Tokens {
    hasher: SecretHasher,
    file: WatchedFile<Users>,
}

type Users = HashMap<SecretHash, Arc<User>>;

// === impl Tokens ===

impl Tokens {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let hasher = SecretHasher::new()?;
        let hash = hasher.clone();
        let file = WatchedFile::open(path, move |path, bytes| {
            // Another user of this machine who can read the file can pass for every user in it.
            warn_if_open_to_others(path);
            users(&hash, bytes).map_err(|fault| format!("{}:{fault}", path.display()))
        })?;
        Ok(Self { hasher, file })
    }

    /// The verdict on a token.
    pub(super) fn ask(&self, token: &str) -> Verdict {
        self.find(token, Denial::UnknownToken)
    }

    fn find(&self, secret: &str, unknown: Denial) -> Verdict {
        match self.file.load().get(&self.hasher.hash(secret)) {
            Some(user) => Verdict::Known(Arc::clone(user)),
            None => Verdict::Wrong(unknown),
        }
    }

    /// The verdict on the key in this header.
    pub(super) fn ask_header(&self, headers: &HeaderMap, name: &HeaderName) -> Verdict {
        // Many services take `X_Api_Key` for the same header, so a key there must not go unnoticed.
        if headers.keys().any(|other| other != name && header_names::same(other.as_str(), name.as_str())) {
            return Verdict::Wrong(Denial::Malformed);
        }
        let mut values = headers.get_all(name).iter();
        let Some(value) = values.next() else { return Verdict::Absent };
        match std::str::from_utf8(value.as_bytes()) {
            Ok(key) if values.next().is_none() => self.find(key.trim(), Denial::UnknownKey),
            _ => Verdict::Wrong(Denial::Malformed),
        }
    }
}

/// Reads the lines of a file. Errors begin with the line, and never show a token.
fn users(hasher: &SecretHasher, bytes: &[u8]) -> Result<Users, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "1: the file is not UTF-8".to_owned())?;
    let mut lines: HashMap<SecretHash, usize> = HashMap::new();
    let mut users = Users::new();
    for record in csv::records(text) {
        let csv::Record { line, fields } = record?;
        let [token, name, uid, rest @ ..] = &*fields else {
            let found = fields.len();
            return Err(format!("{line}: there are {found} columns; write `token,user,uid` and perhaps `,\"groups\"`"));
        };
        if token.trim().is_empty() {
            return Err(format!("{line}: the token is empty"));
        }
        let groups =
            rest.first().map_or("", String::as_str).split(',').map(str::trim).filter(|group| !group.is_empty());
        let user = Naming::as_written().user(name, groups);
        let mut user = user.ok_or_else(|| {
            format!(
                "{line}: the name of the user or of a group is empty, or has white space or control characters in it"
            )
        })?;
        Arc::make_mut(&mut user).uid = uid.as_str().into();
        let hash = hasher.hash(token.trim());
        if let Some(first) = lines.insert(hash, line) {
            return Err(format!("{line}: the token is also in line {first}; each token may occur only once"));
        }
        users.insert(hash, user);
    }
    Ok(users)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<(String, User)>, String> {
        let hasher = SecretHasher::new().unwrap();
        let users = users(&hasher, text.as_bytes())?;
        let tokens = ["t1", "t2", "t,3", "#t4"];
        let found =
            tokens.iter().filter_map(|token| Some((token.to_string(), (**users.get(&hasher.hash(token))?).clone())));
        Ok(found.collect())
    }

    #[test]
    fn tokens_are_in_the_format_of_kubernetes() {
        let text = "t1,alice,1001,\"staff,night-shift\"\n\nt2,bob,1002\r\n\"t,3\",\"system:admin\",,system:masters,more\n#t4,eve,1";
        let user = |name: &str, uid: &str, groups: &[&str]| {
            let mut user = User::new(name, groups.iter().copied());
            user.uid = uid.into();
            user
        };
        assert_eq!(
            read(text).unwrap(),
            [
                ("t1".to_owned(), user("alice", "1001", &["staff", "night-shift", "system:authenticated"])),
                ("t2".to_owned(), user("bob", "1002", &["system:authenticated"])),
                ("t,3".to_owned(), user("system:admin", "", &["system:masters", "system:authenticated"])),
                ("#t4".to_owned(), user("eve", "1", &["system:authenticated"])),
            ]
        );
    }

    #[test]
    fn errors_name_the_line_and_no_token() {
        for (text, error) in [
            ("secret,alice", "1: there are 2 columns; write `token,user,uid` and perhaps `,\"groups\"`"),
            ("t1,alice,1\n,bob,2", "2: the token is empty"),
            ("t1,alice,1\nsecret,,2", "2: the name of the user or of a group is empty, or has white space"),
            ("secret,alice,1\n\nsecret,bob,2", "3: the token is also in line 1"),
            ("t1,alice,1\n\"secret,bob,2", "2: a quote is not closed"),
            ("t1,alice,1\nsec\"ret,bob,2", "2: a quote in the middle of a column"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(error) && !found.contains("secret"), "{found}");
        }
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            match users(&SecretHasher::new().unwrap(), &bytes) {
                Ok(users) => prop_assert!(users.values().all(|user| !user.name.is_empty())),
                // It names the line.
                Err(problem) => prop_assert!(problem.starts_with(|first: char| first.is_ascii_digit()), "{}", problem),
            }
        }

        #[test]
        fn what_is_written_is_read(token in "[!-~]([ -~\n]{0,6}[!-~])?", name in "[!-~]([ -~]{0,6}[!-~])?", groups in "[!-~]{0,8}") {
            let fields = [token, name, "uid\n7".to_owned(), groups];
            let line: Vec<_> = fields.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
            let hasher = SecretHasher::new().unwrap();
            let users = users(&hasher, line.join(",").as_bytes()).unwrap();
            prop_assert_eq!(&*users[&hasher.hash(&fields[0])].name, &fields[1]);
        }
    }
}
