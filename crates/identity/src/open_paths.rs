//! `OpenPaths`: paths that need no credential.

use evenkeel_engine::digest::normal_path;

/// Paths that need no credential, in their normal form.
#[derive(Debug, Default)]
pub(crate) struct OpenPaths(Vec<Pattern>);

#[derive(Debug)]
enum Pattern {
    /// This path alone.
    Exact(Box<str>),
    /// Every path that begins like this, which ends with a slash.
    Below(Box<str>),
}

// === impl OpenPaths ===

impl OpenPaths {
    pub(crate) fn new(patterns: &[String]) -> Result<Self, String> {
        patterns.iter().map(|pattern| Pattern::read(pattern)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a path is one of them, however it is spelt.
    pub(crate) fn contain(&self, path: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let Ok(normal) = normal_path(path) else { return false };
        self.0.iter().any(|pattern| match pattern {
            Pattern::Exact(path) => normal.path == **path,
            Pattern::Below(prefix) => normal.path.starts_with(&**prefix),
        })
    }
}

// === impl Pattern ===

impl Pattern {
    fn read(text: &str) -> Result<Self, String> {
        let fault =
            |why: &str| format!("{text:?} {why}; write `/healthz`, or `/public/*` for everything below `/public/`");
        if !text.starts_with('/') {
            return Err(fault("does not begin with a slash"));
        }
        let (path, is_prefix) = match text.strip_suffix('*') {
            Some(prefix) if prefix.ends_with('/') => (prefix, true),
            _ => (text, false),
        };
        if path.contains('*') {
            return Err(fault("has a `*` that is not its last segment"));
        }
        if path.contains(['?', '#', ' ']) {
            return Err(fault("is not a path"));
        }
        match normal_path(path) {
            Ok(normal) if normal.path == path => {}
            Ok(normal) => return Err(fault(&format!("is not in its normal form, which is `{}`", normal.path))),
            Err(_) => return Err(fault("is not a path")),
        }
        Ok(if is_prefix { Self::Below(path.into()) } else { Self::Exact(path.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(patterns: &[&str]) -> OpenPaths {
        OpenPaths::new(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn only_these_paths_are_open_however_they_are_spelt() {
        let paths = open(&["/healthz", "/public/*"]);
        for path in ["/healthz", "/%68ealthz", "//healthz", "/x/../healthz", "/public/", "/public/a/b", "/public/a%2Fb"]
        {
            assert!(paths.contain(path), "{path}");
        }
        for path in [
            "/",
            "*",
            "/healthz/",
            "/healthz/x",
            "/healthzx",
            "/Healthz",
            "/public",
            "/publica",
            "/public/../secret",
            "/public/%2e%2e/secret",
            "/public%2Fa",
            "/public/..;/secret",
            "/public/x%2F..%2F..%2Fsecret",
            "/a/healthz",
        ] {
            assert!(!paths.contain(path), "{path}");
        }
        assert!(!open(&[]).contain("/healthz"));
        assert!(open(&["/*"]).contain("/anything"));
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "does not begin with a slash"),
            ("healthz", "does not begin with a slash"),
            ("/a*", "has a `*` that is not its last segment"),
            ("/*/b", "has a `*` that is not its last segment"),
            ("/a?b", "is not a path"),
            ("/a//b", "is not in its normal form, which is `/a/b`"),
            ("/%61", "is not in its normal form, which is `/a`"),
        ] {
            let found = OpenPaths::new(&[text.to_owned()]).unwrap_err();
            assert!(found.contains(reason) && found.contains("/public/*"), "{found}");
        }
    }
}
