//! `FromExtension`: users that an outer layer has put into the request.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use evenkeel_engine::User;
use http::StatusCode;
use http::request::Parts;

use super::{Identify, Unidentified, anonymous};

/// Takes the user from an extension of the request, where a layer that authenticates has put it.
///
/// A request without the extension gets a 500, because the layers are in the wrong order, unless
/// [`or_anonymous`](Self::or_anonymous) is used.
///
/// ```
/// use std::sync::Arc;
/// use evenkeel::User;
/// use evenkeel::identify::{FromExtension, Identify, ToUser, authenticated};
///
/// #[derive(Clone)]
/// struct Account { user: Arc<User> }
///
/// impl ToUser for Account {
///     fn to_user(&self) -> Arc<User> {
///         Arc::clone(&self.user)
///     }
/// }
///
/// let account = Account { user: authenticated("alice", ["staff"]) };
/// let (parts, ()) = http::Request::builder().extension(account).body(()).unwrap().into_parts();
/// assert_eq!(&*FromExtension::<Account>::new().identify(&parts).unwrap().name, "alice");
/// ```
pub struct FromExtension<T> {
    is_anonymous_allowed: bool,
    extension: PhantomData<fn() -> T>,
}

/// An extension of a request that knows its user. Keeping the user in an [`Arc`] makes this free.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not know its user",
    label = "expected a type of yours that implements `evenkeel::identify::ToUser`, or a `User`"
)]
pub trait ToUser {
    /// The user.
    fn to_user(&self) -> Arc<User>;
}

// === impl FromExtension ===

impl<T> FromExtension<T> {
    /// Takes the user from extensions of this type.
    pub fn new() -> Self {
        Self { is_anonymous_allowed: false, extension: PhantomData }
    }

    /// Takes callers without the extension for `system:anonymous`.
    #[must_use]
    pub fn or_anonymous(self) -> Self {
        Self { is_anonymous_allowed: true, ..self }
    }
}

impl<T: ToUser + Send + Sync + 'static> Identify for FromExtension<T> {
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        match parts.extensions.get::<T>() {
            Some(extension) => Ok(extension.to_user()),
            None if self.is_anonymous_allowed => Ok(anonymous()),
            None => Err(Unidentified::new(StatusCode::INTERNAL_SERVER_ERROR, "no user found for request")),
        }
    }
}

impl<T> Default for FromExtension<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for FromExtension<T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> fmt::Debug for FromExtension<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromExtension").field("is_anonymous_allowed", &self.is_anonymous_allowed).finish()
    }
}

// === impl ToUser ===

impl ToUser for Arc<User> {
    fn to_user(&self) -> Arc<User> {
        Arc::clone(self)
    }
}

impl ToUser for User {
    fn to_user(&self) -> Arc<User> {
        Arc::new(self.clone())
    }
}
