//! `KeyServer`: fetches the keys of an issuer of tokens. The HTTP client is the program's.

use std::fmt;
use std::path::Path;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, Response, Uri};

/// A server that publishes the keys of an issuer. This crate has no HTTP client: a program that takes keys from URLs brings its
/// own.
pub trait KeyServer: fmt::Debug + Send + Sync + 'static {
    /// Requests the key set with these headers, and returns the response with any status. Redirections must not be followed, and both
    /// the time that a response takes and its length must be limited. The error says what went wrong, without the URL.
    fn get(&self, headers: HeaderMap) -> KeyResponse<'_>;
}

/// The future of [`KeyServer::get`]. It runs on a thread of its own, with a tokio runtime.
pub type KeyResponse<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, String>> + Send + 'a>>;

/// Makes the [`KeyServer`] of a URL. The file of certificate authorities is that of
/// [`JwtIdentity::keys_ca`](crate::config::JwtIdentity::keys_ca). The error says what is wrong, without the URL.
pub type ConnectKeyServer<'a> = &'a dyn Fn(&Uri, Option<&Path>) -> Result<Box<dyn KeyServer>, String>;

/// The key server of programs without an HTTP client: it always fails.
pub(crate) fn no_key_server(_: &Uri, _: Option<&Path>) -> Result<Box<dyn KeyServer>, String> {
    Err("this program has no HTTP client for keys; name a file".to_owned())
}
