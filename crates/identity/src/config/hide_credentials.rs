//! URLs in errors and logs, without their passwords.

use std::borrow::Cow;

/// A URL for errors and logs: without the user name and the password, if there may be any. The text may be no URL at all, so
/// everything up to the last `@` is hidden.
pub fn hide_credentials(url: &str) -> Cow<'_, str> {
    let Some((credentials, rest)) = url.rsplit_once('@') else { return Cow::Borrowed(url) };
    let scheme = credentials.split_once("://").map(|(scheme, _)| scheme);
    match scheme.filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphabetic())) {
        Some(scheme) => Cow::Owned(format!("{scheme}://…@{rest}")),
        None => Cow::Owned(format!("…@{rest}")),
    }
}
