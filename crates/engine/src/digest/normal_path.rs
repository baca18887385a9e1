//! The normal form of a path, which all spellings of it share (RFC 3986, 6.2.2).
//!
//! Escapes of unreserved characters are decoded, other escapes are in upper case, dot segments are removed, and slashes in
//! a row are one slash. What the RFC leaves open is decided so that no spelling of a path can be taken for another path:
//!
//! - Slashes in a row are merged before dot segments are removed, as nginx does. A path in normal form has neither, so
//!   that it does not matter in which order a service would do it.
//! - `%2F` stays: in `/projects/group%2Fname` it is a part of a name. Services that decode it before they choose a handler
//!   see another path, so `/static%2F..%2Fexpensive` is refused instead of being guessed at. The same goes for dot segments
//!   that only appear when a backslash is a slash (Windows) or when path parameters are dropped (`/..;/`, Tomcat).
//! - `%25` stays too: nobody may decode a path twice.
//! - Path parameters (`/a;x=1/b`) are up to the caller ([`PathParameters`]): to servlet containers that path is `/a/b`, and to
//!   most other servers the parameter is a part of the name. `%3B` is a part of a name to all of them, and stays.

use std::borrow::Cow;

use super::DigestError;
use super::percent::hexadecimal;

/// A path in normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NormalPath<'a> {
    /// The path. Borrowed if it was in normal form already.
    pub path: Cow<'a, str>,
    /// Whether dot segments were removed. No well-behaved client sends any: they are for references, not for requests.
    pub had_dot_segments: bool,
    /// Whether it has a `%2F`, which services read in two ways.
    pub has_encoded_slash: bool,
    /// Whether it has a path parameter, which services read in two ways, too. Only where parameters are
    /// [kept](PathParameters::Keep).
    pub has_parameters: bool,
}

/// What becomes of path parameters: of what follows a `;` in a segment (RFC 3986, 3.3).
///
/// Not `#[non_exhaustive]`: there is nothing else to be done with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathParameters {
    /// Parameters stay: `;` is a character like others.
    #[default]
    Keep,
    /// Parameters are removed, as servlet containers do before they choose a handler.
    Strip,
    /// A path that has any is refused.
    Reject,
}

/// The normal form of a path, without its query. A path that does not begin with a slash, as `*`, is left alone.
///
/// ```
/// use evenkeel_engine::digest::normal_path;
///
/// for spelling in ["/a/b", "/a/./b", "/x/../a/b", "//a//b", "/%61/b", "/x/%2e%2E/a/b"] {
///     assert_eq!(normal_path(spelling).unwrap().path, "/a/b");
/// }
/// assert!(normal_path("/x%2F..%2Fa").is_err());
/// ```
pub fn normal_path(path: &str) -> Result<NormalPath<'_>, DigestError> {
    normal_path_with(path, PathParameters::Keep)
}

/// The same, with a choice of what becomes of path parameters.
///
/// ```
/// use evenkeel_engine::digest::{PathParameters, normal_path_with};
///
/// for spelling in ["/admin;x/users", "/;/admin/users;", "/admin;/;a=%2F/users"] {
///     assert_eq!(normal_path_with(spelling, PathParameters::Strip).unwrap().path, "/admin/users");
///     assert!(normal_path_with(spelling, PathParameters::Reject).is_err());
/// }
/// ```
pub fn normal_path_with(path: &str, parameters: PathParameters) -> Result<NormalPath<'_>, DigestError> {
    if is_plain(path) {
        return Ok(NormalPath {
            path: Cow::Borrowed(path),
            had_dot_segments: false,
            has_encoded_slash: false,
            has_parameters: false,
        });
    }
    let decoded = decode_unreserved(path)?;
    let has_parameters = decoded.contains(';');
    if has_parameters && decoded.split('/').any(|segment| segment.contains(';') && hides_dots(segment)) {
        return Err(DigestError::Path { problem: HIDDEN_DOTS });
    }
    let bare = match parameters {
        PathParameters::Reject if has_parameters => {
            let problem =
                "has a path parameter (`;`), which is not accepted here; if it is a part of a name, send `%3B`";
            return Err(DigestError::Path { problem });
        }
        PathParameters::Strip if has_parameters => Cow::Owned(without_parameters(&decoded)),
        _ => decoded,
    };
    let (joined, had_dot_segments) = remove_dot_segments(&bare);
    if joined.split('/').any(hides_dots) {
        return Err(DigestError::Path { problem: HIDDEN_DOTS });
    }
    let has_encoded_slash = joined.contains("%2F");
    let has_parameters = joined.contains(';');
    let path = if *joined == *path { Cow::Borrowed(path) } else { Cow::Owned(joined.into_owned()) };
    Ok(NormalPath { path, had_dot_segments, has_encoded_slash, has_parameters })
}

/// The reason for refusing a path in which only some services see dot segments.
const HIDDEN_DOTS: &str = "has a dot segment beside an encoded slash, a backslash or a path parameter";

/// Whether the path is in normal form for certain, which is true of nearly all.
fn is_plain(path: &str) -> bool {
    let mut before = 0;
    let is_suspect = |byte: u8| {
        let is_suspect = matches!(byte, b'%' | b';' | b'\\') || (before == b'/' && matches!(byte, b'/' | b'.'));
        before = byte;
        is_suspect
    };
    !path.starts_with('/') || !path.bytes().any(is_suspect)
}

/// Decodes what need not be escaped, and writes all other escapes in upper case.
fn decode_unreserved(path: &str) -> Result<Cow<'_, str>, DigestError> {
    let mut decoded = String::new();
    // The bytes before this position have been copied.
    let mut copied = 0;
    let mut rest = path;
    while let Some(found) = rest.find('%') {
        let position = path.len() - rest.len() + found;
        let escape = path.get(position..position + 3).ok_or(DigestError::Escape { position })?;
        let digit = |index: usize| escape.as_bytes().get(index).and_then(|&digit| hexadecimal(digit));
        let (Some(high), Some(low)) = (digit(1), digit(2)) else { return Err(DigestError::Escape { position }) };
        let byte = high << 4 | low;
        let is_unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        if is_unreserved || escape.bytes().any(|digit| digit.is_ascii_lowercase()) {
            decoded.push_str(&path[copied..position]);
            if is_unreserved {
                decoded.push(char::from(byte));
            } else {
                decoded.push_str(&escape.to_ascii_uppercase());
            }
            copied = position + 3;
        }
        rest = &path[position + 3..];
    }
    if copied == 0 {
        return Ok(Cow::Borrowed(path));
    }
    decoded.push_str(&path[copied..]);
    Ok(Cow::Owned(decoded))
}

/// The path without what follows a `;` in its segments.
fn without_parameters(path: &str) -> String {
    let mut bare = String::with_capacity(path.len());
    for (number, segment) in path.split('/').enumerate() {
        if number > 0 {
            bare.push('/');
        }
        bare.push_str(segment.split(';').next().unwrap_or_default());
    }
    bare
}

/// The path without dot segments and empty segments, and whether there were dot segments. `..` at the root goes nowhere.
fn remove_dot_segments(path: &str) -> (Cow<'_, str>, bool) {
    let has_dots = path.split('/').any(|segment| matches!(segment, "." | ".."));
    if !has_dots && !path.contains("//") {
        return (Cow::Borrowed(path), false);
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut is_folder = false;
    for segment in path.split('/') {
        is_folder = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            name => kept.push(name),
        }
    }
    let mut joined = String::with_capacity(path.len());
    for segment in &kept {
        joined.push('/');
        joined.push_str(segment);
    }
    if is_folder {
        joined.push('/');
    }
    (Cow::Owned(joined), has_dots)
}

/// Whether a server that takes more than `/` for a slash, or drops path parameters, would see a dot segment in this segment.
fn hides_dots(segment: &str) -> bool {
    let is_dots = |part: &str| {
        let name = part.split(';').next().unwrap_or_default();
        let name = name.split("%3B").next().unwrap_or_default();
        matches!(name, "." | "..")
    };
    segment.split('\\').flat_map(|part| part.split("%5C")).flat_map(|part| part.split("%2F")).any(is_dots)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(path: &str) -> String {
        normal_path(path).unwrap().path.into_owned()
    }

    #[test]
    fn spellings_of_a_path_have_one_normal_form() {
        for (path, expected) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/", "/a/"),
            ("/x/../a", "/a"),
            ("/./a", "/a"),
            ("/a/.", "/a/"),
            ("/a/b/..", "/a/"),
            ("/..", "/"),
            ("/../../a", "/a"),
            ("/static/%2e%2e/a", "/a"),
            ("/static/%2E./a", "/a"),
            ("//a", "/a"),
            ("/a//b///c//", "/a/b/c/"),
            ("/static//../a", "/a"),
            ("/%61%62%7e", "/ab~"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%20b", "/a%20b"),
            ("/a%252e", "/a%252e"),
            ("/.well-known/a", "/.well-known/a"),
            ("/...", "/..."),
            ("/a.b/..c/d..", "/a.b/..c/d.."),
            ("/caf\u{e9}/%c3%a9", "/caf\u{e9}/%C3%A9"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(normal(path), expected, "{path}");
        }
    }

    #[test]
    fn what_is_normal_is_borrowed() {
        for path in ["/", "/a/b", "/a%20b", "/a%2Fb/", "/.well-known/a", "/a;x/b", "*"] {
            assert!(matches!(normal_path(path).unwrap().path, Cow::Borrowed(_)), "{path}");
        }
    }

    #[test]
    fn dots_that_only_some_services_see_are_refused() {
        for path in
            ["/a%2F..%2Fb", "/a/..%2fb", "/a%2f.", "/..;/b", "/a/..;x=1/b", "/.%3bx/b", "/a\\..\\b", "/a/..%5cb"]
        {
            assert!(matches!(normal_path(path), Err(DigestError::Path { .. })), "{path}");
        }
        let in_a_parameter = normal_path_with("/admin/;a=%2F..%2Fb", PathParameters::Strip);
        assert!(matches!(in_a_parameter, Err(DigestError::Path { .. })), "{in_a_parameter:?}");
        assert_eq!(normal_path("/a/%2"), Err(DigestError::Escape { position: 3 }));
        assert_eq!(normal_path("/%%32e"), Err(DigestError::Escape { position: 1 }));
    }

    #[test]
    fn path_parameters_are_kept_stripped_or_rejected() {
        for (path, stripped) in [
            ("/admin;x/x", "/admin/x"),
            ("/admin;", "/admin"),
            ("/;/admin/x", "/admin/x"),
            ("/;x=1;y=2/%61dmin;/;", "/admin/"),
            ("/x/../admin;a", "/admin"),
            (";", ";"),
        ] {
            let with = |parameters| normal_path_with(path, parameters);
            assert_eq!(
                with(PathParameters::Strip).map(|normal| normal.path.into_owned()),
                Ok(stripped.to_owned()),
                "{path}"
            );
            assert_eq!(with(PathParameters::Reject).is_err(), path.starts_with('/'), "{path}");
            assert_eq!(with(PathParameters::Keep).unwrap().has_parameters, path.starts_with('/'), "{path}");
        }
        for path in ["/a%3Bb", "/a%3bb"] {
            for parameters in [PathParameters::Keep, PathParameters::Strip, PathParameters::Reject] {
                let normal = normal_path_with(path, parameters).unwrap();
                assert_eq!((&*normal.path, normal.has_parameters), ("/a%3Bb", false), "{path}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_normal_form_is_normal(path in "/(/|\\.|a|b|;|\\\\|%2[eEfF]|%61|%5[cC]|%25|%3[bB]|%c3|\u{e9}){0,12}") {
            for parameters in [PathParameters::Keep, PathParameters::Strip, PathParameters::Reject] {
                let Ok(first) = normal_path_with(&path, parameters) else { continue };
                let again = normal_path_with(&first.path, parameters).unwrap();
                prop_assert!(matches!(again.path, Cow::Borrowed(_)), "{} {}", first.path, again.path);
                prop_assert!(!again.had_dot_segments);
                prop_assert_eq!(first.has_encoded_slash, again.has_encoded_slash);
                prop_assert_eq!(first.has_parameters, again.has_parameters);
                prop_assert!(parameters == PathParameters::Keep || !first.path.contains(';'), "{}", first.path);
                prop_assert!(first.path.starts_with('/'), "{}", first.path);
            }
        }

        #[test]
        fn the_normal_form_of_any_text_is_normal(path in "\\PC{0,20}") {
            if let Ok(first) = normal_path(&path) {
                prop_assert_eq!(&*normal_path(&first.path).unwrap().path, &*first.path);
            }
        }
    }
}
