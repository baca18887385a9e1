//! Paths of requests: the normal form is normal, and no spelling of a path leads past a rule for it, not even in front of a
//! server that removes path parameters.

use std::sync::LazyLock;

use evenkeel::digest::Digest;
use evenkeel_api::Preset;
use evenkeel_engine::digest::{PathParameters, normal_path_with};
use evenkeel_identity::RequestRules;
use evenkeel_identity::config::{PathParametersConfig, RequestsConfig};
use http::{Request, Uri};

/// What the gateway does with path parameters, by a setting.
static RULES: LazyLock<[(PathParameters, RequestRules); 2]> = LazyLock::new(|| {
    let rules = |path_parameters| {
        let config = RequestsConfig { path_parameters, ..RequestsConfig::default() };
        RequestRules::new(&config, Preset::Plain).expect("rules without routes")
    };
    [(PathParameters::Reject, rules(None)), (PathParameters::Strip, rules(Some(PathParametersConfig::Strip)))]
});

/// Takes the input for the target of a request.
///
/// # Panics
/// If the normal form of its path is not normal, if a servlet container takes it for another path than the one that it would be
/// sent, or if it gets to `/admin` past a rule for that.
pub fn path(input: &[u8]) {
    let Ok(target) = Uri::try_from(input) else { return };
    let path = target.path();
    for parameters in [PathParameters::Keep, PathParameters::Strip, PathParameters::Reject] {
        if let Ok(normal) = normal_path_with(path, parameters) {
            let again = normal_path_with(&normal.path, parameters).expect("a normal path");
            assert_eq!(again.path, normal.path, "{path:?} {parameters:?}");
        }
    }
    for (parameters, rules) in &*RULES {
        let (Ok((parts, ())), Ok(normal)) =
            (Request::get(target.clone()).body(()).map(Request::into_parts), normal_path_with(path, *parameters))
        else {
            continue;
        };
        let Ok(digested) = rules.digest(&parts) else { continue };
        let Some(served) = servlet_path(&normal.path) else { continue };
        if let Some(meant) = servlet_path(path) {
            assert_eq!(meant, served, "{path:?} {parameters:?}");
        }
        let is_below = digested.info.path == "/admin" || digested.info.path.starts_with("/admin/");
        let is_served_below = served.first().is_some_and(|first| first == b"admin");
        assert_eq!(is_below, is_served_below, "{path:?} {parameters:?}: {} {served:?}", digested.info.path);
    }
}

/// The segments by which a servlet container chooses a handler, as Tomcat does by default; `None` if it rejects the path.
fn servlet_path(path: &str) -> Option<Vec<Vec<u8>>> {
    if !path.starts_with('/') {
        return None;
    }
    let mut segments: Vec<Vec<u8>> = Vec::new();
    for segment in path.split('/') {
        // Parameters go before anything is decoded.
        let name = decoded(segment.split(';').next().unwrap_or_default())?;
        match &*name {
            b"" | b"." => {}
            b".." => drop(segments.pop()?),
            _ => segments.push(name),
        }
    }
    Some(segments)
}

/// A segment without escapes; `None` if it has one that is rejected.
fn decoded(segment: &str) -> Option<Vec<u8>> {
    let mut bytes = segment.bytes();
    let mut name = Vec::new();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        };
        if matches!(byte, b'\\' | b'/' | 0) {
            return None;
        }
        name.push(byte);
    }
    Some(name)
}
