//! The licences of all dependencies are among those that `deny.toml` allows.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::offence::Offence;

/// The list is cargo-deny's; this check needs nothing but cargo.
pub(crate) const LIST: &str = "deny.toml";

/// `metadata` is what `cargo metadata` prints.
pub(crate) fn check(list: &str, metadata: &Value) -> Vec<Offence> {
    let allowed = allowed(list);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| !package["license"].as_str().is_some_and(|licence| is_allowed(licence, &allowed)))
        .map(|package| {
            let licence = package["license"].as_str().unwrap_or("no licence");
            let name = package["name"].as_str().unwrap_or("a package");
            Offence::new(LIST, 1, format!("`{name}` has {licence}, which the list does not allow"))
        })
        .collect()
}

/// The texts in the list `allow` of the section `licenses`.
fn allowed(list: &str) -> BTreeSet<&str> {
    let section = list.split_once("[licenses]").map_or("", |(_, rest)| rest);
    let array = section.split_once("allow = [").map_or("", |(_, rest)| rest.split(']').next().unwrap_or(rest));
    array.split('"').skip(1).step_by(2).collect()
}

/// Whether an SPDX expression can be met with the allowed licences. `AND` binds closer than `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    // Old manifests have a slash for `OR`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let met = any(&mut words, allowed);
    met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed);
    }
    met
}

fn all(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &BTreeSet<&str>) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let met = any(words, allowed);
        return words.next_if_eq(&")").is_some() && met;
    }
    let Some(licence) = words.next() else { return false };
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().unwrap_or_default();
        return allowed.contains(format!("{licence} WITH {exception}").as_str());
    }
    allowed.contains(licence)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::offence::assert_offences;

    const TEXT: &str =
        "[advisories]\nignore = [\"A\"]\n[licenses]\n# Why.\nallow = [\n  \"MIT\", # why\n  \"ISC\",\n]\n[bans]\n";

    #[test]
    fn expressions() {
        let allowed = allowed(TEXT);
        assert_eq!(allowed, BTreeSet::from(["ISC", "MIT"]));
        for good in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND ISC", "GPL-3.0 AND X OR MIT"] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND X", "MIT WITH x-exception", "", "(MIT", "MIT ISC"] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn packages() {
        let package = |name: &str, licence: Value| json!({"name": name, "license": licence});
        let metadata = json!({"packages": [package("a", json!("MIT")), package("b", json!("GPL-3.0")), package("c", Value::Null)]});
        assert_offences(
            &check(TEXT, &metadata),
            &[
                "deny.toml:1: `b` has GPL-3.0, which the list does not allow",
                "deny.toml:1: `c` has no licence, which the list does not allow",
            ],
        );
    }
}
