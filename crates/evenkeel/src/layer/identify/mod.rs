//! `Identify`: finds out who sends a request.

mod extension;
mod headers;
mod peer;
mod system_names;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use evenkeel_engine::User;
use evenkeel_engine::implied_groups::{AUTHENTICATED, UNAUTHENTICATED};
use http::StatusCode;
use http::request::Parts;

pub use crate::layer::head::ClientAddress;
pub use extension::{FromExtension, ToUser};
pub use headers::TrustedHeaders;
pub use peer::PeerAddress;
pub(crate) use system_names::without_system_names;

/// Names and addresses come from outside, so that there is a limit to how many users are kept.
const KNOWN_MAX: usize = 4096;

/// Identifies the caller of a request. A closure from the head of a request to a user is one, and it may fail.
///
/// The result is trusted: authenticate the request before, or here.
///
/// ```
/// use evenkeel::FlowControl;
/// use evenkeel::identify::{anonymous, authenticated};
/// use http::request::Parts;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let flow = FlowControl::builder().build();
/// let layer = flow.layer(|parts: &Parts| match parts.headers.get("x-api-key").and_then(|key| key.to_str().ok()) {
///     Some("7f3a") => authenticated("alice", ["staff"]),
///     _ => anonymous(),
/// });
/// # }
/// ```
///
/// The argument of the closure needs its type, so that the closure holds for all requests:
///
/// ```compile_fail
/// # use evenkeel::FlowControl;
/// # use evenkeel::identify::anonymous;
/// let layer = FlowControl::builder().drive_by_hand().build().layer(|parts| anonymous());
/// ```
///
/// Other types are no identities, and the compiler says what to use:
///
/// ```compile_fail,E0277
/// # use evenkeel::FlowControl;
/// let layer = FlowControl::builder().drive_by_hand().build().layer("alice");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say who sends a request",
    label = "expected an identity: a closure or a type of `evenkeel::identify`",
    note = "a closure has the form `|parts: &http::request::Parts| …`, with the type of its argument written out; it returns a \
            `User`, an `Arc<User>`, an `Option` of one, or a `Result` with `Unidentified`",
    note = "`evenkeel::identify` has `Anonymous`, `PeerAddress`, `TrustedHeaders` and `FromExtension`"
)]
pub trait Identify {
    /// Who sent the request with this head.
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified>;
}

/// The result of a closure that identifies a caller: a user, an `Option` of one, or a `Result` with the reason why there is none.
///
/// `None` is a caller who is not authenticated: [`anonymous`].
///
/// ```
/// use evenkeel::User;
/// use evenkeel::identify::{Identity, Unidentified};
///
/// let alice = User::new("alice", ["system:authenticated"]);
/// assert_eq!(&*Some(alice).into_user().unwrap().name, "alice");
/// assert_eq!(&*None::<User>.into_user().unwrap().name, "system:anonymous");
/// assert!(Err::<User, _>(Unidentified::unauthorized()).into_user().is_err());
/// ```
///
/// A name alone is none, since it does not say whether its bearer is authenticated:
///
/// ```compile_fail,E0277
/// # use evenkeel::FlowControl;
/// # use http::request::Parts;
/// let layer = FlowControl::builder().drive_by_hand().build().layer(|_: &Parts| "alice");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a user",
    label = "expected a `User`, an `Arc<User>`, an `Option` of one, or a `Result` with `Unidentified`",
    note = "`evenkeel::identify::authenticated(name, groups)` makes a user of a name, and `anonymous()` one for everybody else"
)]
pub trait Identity {
    /// The user, if there is one.
    fn into_user(self) -> Result<Arc<User>, Unidentified>;
}

/// Takes every caller for `system:anonymous`: only what requests ask for tells them apart.
#[derive(Debug, Clone, Copy, Default)]
pub struct Anonymous;

/// The layer does not identify callers: each call of its service does. See
/// [`FlowControl::layer_without_identity`](crate::FlowControl::layer_without_identity).
#[derive(Debug, Clone, Copy, Default)]
pub struct NoIdentity;

/// The caller could not be identified. The response has this status, and the request is not classified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Unidentified {
    /// The status of the response.
    pub status: StatusCode,
    /// The message for the client.
    pub message: Cow<'static, str>,
}

static ANONYMOUS: LazyLock<Arc<User>> = LazyLock::new(|| Arc::new(User::default().with_implied_groups()));

/// The user for all callers who are not authenticated (DG-2). Allocates nothing.
///
/// ```
/// assert_eq!(&*evenkeel::identify::anonymous().name, "system:anonymous");
/// ```
pub fn anonymous() -> Arc<User> {
    Arc::clone(&ANONYMOUS)
}

/// An authenticated user: in the given groups, and in `system:authenticated` (DG-2).
///
/// ```
/// let alice = evenkeel::identify::authenticated("alice", ["staff"]);
/// assert_eq!(*alice.groups, ["staff".into(), "system:authenticated".into()]);
/// ```
pub fn authenticated<G: Into<Box<str>>>(name: impl Into<Box<str>>, groups: impl IntoIterator<Item = G>) -> Arc<User> {
    let mut user = User::new(name, groups);
    if !user.is_in(AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.into());
    }
    Arc::new(user)
}

// === impl Identify ===

impl<F, R> Identify for F
where
    F: Fn(&Parts) -> R,
    R: Identity,
{
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        self(parts).into_user()
    }
}

// === impl Identity ===

impl Identity for Arc<User> {
    fn into_user(self) -> Result<Arc<User>, Unidentified> {
        Ok(self)
    }
}

impl Identity for User {
    fn into_user(self) -> Result<Arc<User>, Unidentified> {
        Ok(Arc::new(self))
    }
}

impl<T: Identity> Identity for Option<T> {
    fn into_user(self) -> Result<Arc<User>, Unidentified> {
        self.map_or_else(|| Ok(anonymous()), T::into_user)
    }
}

impl<T: Identity> Identity for Result<T, Unidentified> {
    fn into_user(self) -> Result<Arc<User>, Unidentified> {
        self.and_then(T::into_user)
    }
}

// === impl Anonymous ===

impl Identify for Anonymous {
    fn identify(&self, _parts: &Parts) -> Result<Arc<User>, Unidentified> {
        Ok(anonymous())
    }
}

// === impl Unidentified ===

impl Unidentified {
    /// A response with this status and message.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into() }
    }

    /// 401: the client has to authenticate.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized")
    }
}
