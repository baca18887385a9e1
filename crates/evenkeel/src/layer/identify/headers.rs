//! Users that a proxy in front names in headers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_engine::User;
use http::StatusCode;
use http::header::{GetAll, HeaderName, HeaderValue};
use http::request::Parts;

use super::{AUTHENTICATED, Identify, KNOWN_MAX, Unidentified, anonymous, authenticated};

/// Believes headers that name the user and, once for each, the user's groups.
///
/// # Danger
///
/// **Use this only behind a proxy that removes these headers from what clients send and sets them itself.** Without such a proxy,
/// every client can claim any name and group, `system:masters` included, and goes past every limit.
///
/// The defaults are those of Kubernetes' authenticating proxies: `X-Remote-User` and `X-Remote-Group`. A request without a name
/// is from `system:anonymous`; all other users are in `system:authenticated` too.
///
/// ```
/// use evenkeel::identify::{Identify, TrustedHeaders};
///
/// let request = http::Request::builder()
///     .header("x-remote-user", "alice")
///     .header("x-remote-group", "staff")
///     .header("x-remote-group", "night-shift");
/// let (parts, ()) = request.body(()).unwrap().into_parts();
/// let user = TrustedHeaders::default().identify(&parts).unwrap();
/// assert_eq!(&*user.name, "alice");
/// assert_eq!(*user.groups, ["staff".into(), "night-shift".into(), "system:authenticated".into()]);
/// ```
#[derive(Debug)]
pub struct TrustedHeaders {
    user: HeaderName,
    group: HeaderName,
    /// The users seen lately, so that the same one is not put together again for every request.
    known: Mutex<HashMap<Box<str>, Arc<User>>>,
}

// === impl TrustedHeaders ===

impl TrustedHeaders {
    /// Believes headers of these names.
    ///
    /// ```
    /// use evenkeel::identify::TrustedHeaders;
    /// use http::HeaderName;
    ///
    /// let tenants = TrustedHeaders::new(HeaderName::from_static("x-tenant"), HeaderName::from_static("x-plan"));
    /// ```
    pub fn new(user: HeaderName, group: HeaderName) -> Self {
        Self { user, group, known: Mutex::new(HashMap::new()) }
    }
}

impl Default for TrustedHeaders {
    fn default() -> Self {
        Self::new(HeaderName::from_static("x-remote-user"), HeaderName::from_static("x-remote-group"))
    }
}

impl Identify for TrustedHeaders {
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        let Some(name) = parts.headers.get(&self.user).filter(|name| !name.is_empty()) else {
            return Ok(anonymous());
        };
        let name = text(name)?;
        let groups = parts.headers.get_all(&self.group);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(user) = known.get(name).filter(|user| is_in(user, &groups)) {
            return Ok(Arc::clone(user));
        }
        let groups = groups.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let user = authenticated(name, groups);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(name.into(), Arc::clone(&user));
        Ok(user)
    }
}

fn text(value: &HeaderValue) -> Result<&str, Unidentified> {
    let problem = |_| Unidentified::new(StatusCode::BAD_REQUEST, "the name of a user or of a group is not UTF-8");
    std::str::from_utf8(value.as_bytes()).map_err(problem)
}

/// Whether these are the groups of a user, who may be in the group of the authenticated besides.
fn is_in(user: &User, groups: &GetAll<'_, HeaderValue>) -> bool {
    let mut own = user.groups.iter();
    groups.iter().all(|group| own.next().is_some_and(|own| own.as_bytes() == group.as_bytes()))
        && match own.as_slice() {
            [] => true,
            [last] => **last == *AUTHENTICATED,
            _ => false,
        }
}
