//! `RequestHead`: what flow schemas can see of a request beside its user and its target (SF-2).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The headers of a request and the address of its client. Only schemas that ask for them look at them.
///
/// Nothing is copied from the request: the head of a request on its way in is borrowed. Simulations and tools write it down, as a
/// [`KnownHead`].
///
/// ```
/// use evenkeel_engine::{KnownHead, RequestHead};
///
/// let head = RequestHead::from(KnownHead::default().header("X-Plan", "gold"));
/// assert_eq!((head.header("x-plan"), head.address()), (Some("gold"), None));
/// assert_eq!(RequestHead::default().header("x-plan"), None);
/// ```
#[derive(Clone, Default)]
pub struct RequestHead<'a>(Source<'a>);

#[derive(Clone, Default)]
enum Source<'a> {
    /// Nothing is known.
    #[default]
    None,
    Borrowed(&'a dyn HeadSource),
    Known(Arc<KnownHead>),
}

/// A request that can be asked for its headers and for the address of its client.
pub trait HeadSource: Send + Sync {
    /// The value of a header, by its name in any case. A header that is not there, that is there more than once, or whose value is
    /// not text has none.
    fn header(&self, name: &str) -> Option<&str>;

    /// The address of the client, as text.
    fn address(&self) -> Option<&str>;
}

/// A head that owns its texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct KnownHead {
    /// The headers, each with its value.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// The address of the client.
    pub address: Option<Box<str>>,
}

// === impl RequestHead ===

impl<'a> RequestHead<'a> {
    /// The head of a request on its way in.
    pub fn borrowed(source: &'a dyn HeadSource) -> Self {
        Self(Source::Borrowed(source))
    }

    /// The value of a header, unless it is not there or there more than once.
    #[inline]
    pub fn header(&self, name: &str) -> Option<&str> {
        match &self.0 {
            Source::None => None,
            Source::Borrowed(source) => source.header(name),
            Source::Known(known) => HeadSource::header(&**known, name),
        }
    }

    /// The address of the client, if it is known.
    #[inline]
    pub fn address(&self) -> Option<&str> {
        match &self.0 {
            Source::None => None,
            Source::Borrowed(source) => source.address(),
            Source::Known(known) => known.address.as_deref(),
        }
    }

    /// The known head, if the head is not borrowed.
    pub fn known(&self) -> Option<&KnownHead> {
        match &self.0 {
            Source::Known(known) => Some(known),
            Source::None | Source::Borrowed(_) => None,
        }
    }

    /// The same without the request: a borrowed head becomes an unknown one.
    pub(crate) fn into_owned(self) -> RequestHead<'static> {
        match self.0 {
            Source::Known(known) => RequestHead(Source::Known(known)),
            Source::None | Source::Borrowed(_) => RequestHead::default(),
        }
    }
}

impl From<KnownHead> for RequestHead<'_> {
    fn from(known: KnownHead) -> Self {
        Self(Source::Known(Arc::new(known)))
    }
}

impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::None => f.write_str("None"),
            // Headers may hold secrets.
            Source::Borrowed(_) => f.write_str("Borrowed"),
            Source::Known(known) => known.fmt(f),
        }
    }
}

/// Two heads are equal if they borrow from the same request, or if their own texts are equal.
impl PartialEq for RequestHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Source::None, Source::None) => true,
            (Source::Borrowed(one), Source::Borrowed(other)) => std::ptr::addr_eq(*one, *other),
            (Source::Known(one), Source::Known(other)) => one == other,
            _ => false,
        }
    }
}

impl Eq for RequestHead<'_> {}

impl Hash for RequestHead<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Source::Known(known) = &self.0 {
            known.hash(state);
        }
    }
}

// === impl KnownHead ===

impl KnownHead {
    /// With this header too.
    #[must_use]
    pub fn header(mut self, name: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// From a client at this address.
    #[must_use]
    pub fn address(mut self, address: impl Into<Box<str>>) -> Self {
        self.address = Some(address.into());
        self
    }
}

impl HeadSource for KnownHead {
    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }
}
