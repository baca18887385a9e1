//! The headers and the client address of a request, as far as a log tells them, for flow schemas that ask for them.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_engine::HeadSource;

/// The head of a request, as far as a log has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LoggedHead<'a> {
    /// The headers that the log tells of, each with its value if the request had it. In a name, `_` stands for `-` too.
    pub headers: Vec<(Cow<'a, str>, Option<Cow<'a, str>>)>,
    /// The address of the client.
    pub address: Option<Cow<'a, str>>,
}

/// A head that flow schemas look at. It notes the headers that they asked for and the log does not have.
#[derive(Debug)]
pub(crate) struct LookedAtHead<'a> {
    head: &'a LoggedHead<'a>,
    /// The headers that flow schemas may ask for.
    asked: &'a [Box<str>],
    /// A bit for each of them that was asked for and of which the log does not tell; the last is for the address.
    untold: AtomicU64,
}

const ADDRESS_BIT: u32 = 63;

fn is_name(logged: &str, asked: &str) -> bool {
    let folded = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    logged.len() == asked.len() && logged.bytes().zip(asked.bytes()).all(|(one, other)| folded(one) == folded(other))
}

// === impl LoggedHead ===

impl LoggedHead<'_> {
    /// A header of the log: its name, and its value if the request had it.
    fn find(&self, name: &str) -> Option<&(Cow<'_, str>, Option<Cow<'_, str>>)> {
        self.headers.iter().find(|(logged, _)| is_name(logged, name))
    }

    /// The same without a line that it is borrowed from.
    pub(crate) fn into_owned(self) -> LoggedHead<'static> {
        fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        let headers = self.headers.into_iter().map(|(name, value)| (owned(name), value.map(owned)));
        LoggedHead { headers: headers.collect(), address: self.address.map(owned) }
    }
}

// === impl LookedAtHead ===

impl<'a> LookedAtHead<'a> {
    pub(crate) fn new(head: &'a LoggedHead<'a>, asked: &'a [Box<str>]) -> Self {
        Self { head, asked, untold: AtomicU64::new(0) }
    }

    /// The headers that were asked for although the log does not tell of them.
    pub(crate) fn untold_headers(&self) -> impl Iterator<Item = &'a str> {
        let untold = self.untold.load(Ordering::Relaxed);
        self.asked
            .iter()
            .take(ADDRESS_BIT as usize)
            .enumerate()
            .filter(move |(bit, _)| untold >> bit & 1 == 1)
            .map(|(_, name)| &**name)
    }

    /// Whether the address was asked for although the log does not tell it.
    pub(crate) fn is_address_untold(&self) -> bool {
        self.untold.load(Ordering::Relaxed) >> ADDRESS_BIT & 1 == 1
    }
}

impl HeadSource for LookedAtHead<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        if let Some((_, value)) = self.head.find(name) {
            return value.as_deref();
        }
        if let Some(bit) =
            self.asked.iter().take(ADDRESS_BIT as usize).position(|asked| asked.eq_ignore_ascii_case(name))
        {
            self.untold.fetch_or(1 << bit, Ordering::Relaxed);
        }
        None
    }

    fn address(&self) -> Option<&str> {
        if self.head.address.is_none() {
            self.untold.fetch_or(1 << ADDRESS_BIT, Ordering::Relaxed);
        }
        self.head.address.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_nginx_too() {
        for (logged, asked, expected) in [
            ("x_plan", "x-plan", true),
            ("X-Plan", "x-plan", true),
            ("x-plan", "x-plans", false),
            ("x.plan", "x-plan", false),
        ] {
            assert_eq!(is_name(logged, asked), expected, "{logged} {asked}");
        }
    }

    #[test]
    fn what_is_asked_for_in_vain_is_noted() {
        let headers = vec![("x_plan".into(), Some("gold".into())), ("x_absent".into(), None)];
        let head = LoggedHead { headers, address: None };
        let asked: Vec<Box<str>> = ["x-absent", "x-plan", "x-tenant", "x-unasked"].map(Into::into).into();
        let looked_at = LookedAtHead::new(&head, &asked);
        assert_eq!((looked_at.header("x-plan"), looked_at.header("x-absent")), (Some("gold"), None));
        assert_eq!(looked_at.untold_headers().count(), 0);
        assert_eq!(looked_at.header("X-Tenant"), None);
        assert_eq!(looked_at.untold_headers().collect::<Vec<_>>(), ["x-tenant"]);
        assert!(!looked_at.is_address_untold());
        assert_eq!(looked_at.address(), None);
        assert!(looked_at.is_address_untold());
    }
}
