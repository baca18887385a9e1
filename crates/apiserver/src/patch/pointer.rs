//! Paths of a JSON patch: RFC 6901, and what they lead to.

use serde_json::Value;

/// The location that a path names: the value around it, and the last step.
pub(super) struct PointerTarget<'a> {
    pub(super) parent: &'a mut Value,
    pub(super) last: String,
}

/// The location that a path names, if everything before its last step exists. The whole document has no location.
pub(super) fn place<'a>(document: &'a mut Value, path: &str) -> Option<PointerTarget<'a>> {
    let (parents, last) = path.strip_prefix('/').map(|rest| rest.rsplit_once('/').unwrap_or(("", rest)))?;
    let mut parent = document;
    if path.len() > last.len() + 1 {
        for step in parents.split('/') {
            parent = child_mut(parent, &unescaped(step))?;
        }
    }
    Some(PointerTarget { parent, last: unescaped(last) })
}

/// The value at a path.
pub(super) fn get<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.strip_prefix('/')?.split('/').try_fold(document, |value, step| match value {
        Value::Object(members) => members.get(&unescaped(step)),
        Value::Array(items) => items.get(index(step, items.len())?),
        _ => None,
    })
}

/// Whether a path names a missing member of an existing object.
pub(super) fn is_absent_member(document: &Value, path: &str) -> bool {
    let Some((parent, last)) = path.rsplit_once('/') else { return false };
    let parent = if parent.is_empty() { Some(document) } else { get(document, parent) };
    parent.and_then(Value::as_object).is_some_and(|members| !members.contains_key(&unescaped(last)))
}

/// The element of a list of so many that a step names. Beyond RFC 6901, and as a kube-apiserver has it, a number may have a
/// sign and zeros before it, and a negative one counts from the end: `-1` is the last element.
pub(super) fn index(step: &str, length: usize) -> Option<usize> {
    let number: isize = step.parse().ok()?;
    let number = if number < 0 { length.checked_sub(number.unsigned_abs())? } else { number.unsigned_abs() };
    (number < length).then_some(number)
}

fn child_mut<'a>(value: &'a mut Value, step: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(members) => members.get_mut(step),
        Value::Array(items) => {
            let place = index(step, items.len())?;
            items.get_mut(place)
        }
        _ => None,
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn api_117_paths_lead_to_members_and_elements() {
        let mut document = json!({"a": [{"b/c": 1}], "": 2, "~1": 3});
        assert_eq!(get(&document, "/a/0/b~1c"), Some(&json!(1)));
        assert_eq!(get(&document, "/"), Some(&json!(2)));
        assert_eq!(get(&document, "/~01"), Some(&json!(3)));
        for (step, place) in [
            ("0", Some(0)),
            ("2", Some(2)),
            ("-1", Some(2)),
            ("-3", Some(0)),
            ("+1", Some(1)),
            ("01", Some(1)),
            ("-0", Some(0)),
        ] {
            assert_eq!(index(step, 3), place, "{step}");
        }
        for step in ["3", "-4", "-", "", "1.0", " 1", "9999999999999999999", "-9999999999999999999"] {
            assert_eq!(index(step, 3), None, "{step:?}");
        }
        assert_eq!(get(&document, "/a/-1/b~1c"), Some(&json!(1)));
        for absent in ["", "a", "/a/1", "/a/-2", "/a/-", "/a/0/b", "/x/y"] {
            assert_eq!(get(&document, absent), None, "{absent:?}");
        }
        for member in ["/x", "/a/0/b", "/a/0/~1"] {
            assert!(is_absent_member(&document, member), "{member:?}");
        }
        for other in ["", "x", "/a", "/~01", "/a/1", "/a/0/b~1c", "/x/y", "/a/0/b~1c/d"] {
            assert!(!is_absent_member(&document, other), "{other:?}");
        }
        assert_eq!(place(&mut document, "/a/0/new").unwrap().last, "new");
        assert_eq!(place(&mut document, "/top").unwrap().last, "top");
        assert!(place(&mut document, "").is_none());
        assert!(place(&mut document, "a").is_none());
        assert!(place(&mut document, "/x/y").is_none());
    }
}
