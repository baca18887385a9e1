//! The keys of the objects in etcd, laid out as Kubernetes does: `/registry/flowschemas/NAME`.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_api::Kind;

use crate::Object;
use crate::object::check_name;

use super::messages::{KeyValue, unsigned};

/// Makes keys under a prefix.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// Without a slash at its end.
    prefix: String,
}

/// The keys from the first on, up to but without the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) start: Bytes,
    pub(crate) end: Bytes,
}

// === impl Keys ===

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: format!("/{}", prefix.trim_matches('/')).trim_end_matches('/').to_owned() }
    }

    pub(crate) fn key(&self, kind: Kind, name: &str) -> Bytes {
        Bytes::from(format!("{}/{}/{name}", self.prefix, kind.resource()))
    }

    /// All objects of a kind whose names come after one.
    pub(crate) fn of(&self, kind: Kind, after: Option<&str>) -> KeyRange {
        let folder = format!("{}/{}", self.prefix, kind.resource());
        let start = match after {
            // The next key after a key is that with a zero byte at its end.
            Some(name) => format!("{folder}/{name}\0"),
            None => format!("{folder}/"),
        };
        // The character after the slash in ASCII ends the range of all keys that begin with the folder and a slash.
        KeyRange { start: start.into(), end: format!("{folder}0").into() }
    }

    /// Everything under the prefix: one range, so that etcd tells of both kinds in the order of their writes.
    pub(crate) fn all(&self) -> KeyRange {
        KeyRange { start: format!("{}/", self.prefix).into(), end: format!("{}0", self.prefix).into() }
    }

    /// The kind and the name of a key; `None` if it is not the key of an object.
    pub(crate) fn parse<'a>(&self, key: &'a [u8]) -> Option<(Kind, &'a str)> {
        let key = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        let (resource, name) = key.split_once('/')?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.resource() == resource)?;
        check_name(name).is_ok().then_some((kind, name))
    }

    /// The part of a key after the folder of a kind, whether or not it is a name.
    pub(crate) fn name_after(&self, kind: Kind, key: &[u8]) -> Option<String> {
        let folder = self.of(kind, None).start;
        key.strip_prefix(&*folder).map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// The object of a key and its value.
    pub(crate) fn object(&self, kv: &KeyValue) -> Option<Arc<Object>> {
        let (kind, name) = self.parse(&kv.key)?;
        Some(Arc::new(Object {
            kind,
            name: name.into(),
            revision: unsigned(kv.mod_revision),
            create_revision: unsigned(kv.create_revision),
            // A copy, because the value is a part of a message that would be kept alive as a whole.
            payload: Bytes::copy_from_slice(&kv.value),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_laid_out_as_kubernetes_does() {
        for prefix in ["/registry", "registry/", "/registry//"] {
            let keys = Keys::new(prefix);
            assert_eq!(keys.key(Kind::FlowSchema, "probes"), "/registry/flowschemas/probes");
            let levels = keys.of(Kind::PriorityLevelConfiguration, None);
            assert_eq!(levels.start, "/registry/prioritylevelconfigurations/");
            assert_eq!(levels.end, "/registry/prioritylevelconfigurations0");
            assert_eq!(keys.of(Kind::FlowSchema, Some("a")).start, "/registry/flowschemas/a\0");
            assert_eq!(keys.all(), KeyRange { start: "/registry/".into(), end: "/registry0".into() });
        }
    }

    #[test]
    fn an_empty_prefix_is_the_root() {
        let keys = Keys::new("");
        assert_eq!(keys.key(Kind::FlowSchema, "probes"), "/flowschemas/probes");
        assert_eq!(keys.all(), KeyRange { start: "/".into(), end: "0".into() });
        assert_eq!(keys.parse(b"/flowschemas/probes"), Some((Kind::FlowSchema, "probes")));
    }

    #[test]
    fn only_keys_of_objects_are_parsed() {
        let keys = Keys::new("/registry");
        assert_eq!(keys.parse(b"/registry/flowschemas/a.b-c"), Some((Kind::FlowSchema, "a.b-c")));
        let others: [&[u8]; 7] = [
            b"/registry/flowschemas/",
            b"/registry/flowschemas/a/b",
            b"/registry/pods/a",
            b"/registry/flowschemas",
            b"/registryflowschemas/a",
            b"/other/flowschemas/a",
            b"/registry/flowschemas/\xff",
        ];
        for other in others {
            assert_eq!(keys.parse(other), None, "{other:?}");
        }
    }
}
