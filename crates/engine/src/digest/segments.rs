//! The segments of a path (DG-3).

/// The segments that are still to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segments<'a> {
    /// `None` when there are none; a text without a slash is one segment, even when it is empty.
    rest: Option<&'a str>,
}

// === impl Segments ===

impl<'a> Segments<'a> {
    /// The segments of a path, without the slashes around it.
    pub(super) fn of(path: &'a str) -> Self {
        let inner = path.trim_matches('/');
        Self { rest: Some(inner).filter(|inner| !inner.is_empty()) }
    }

    pub(super) fn count(self) -> usize {
        self.iter().count()
    }

    pub(super) fn first(self) -> Option<&'a str> {
        self.get(0)
    }

    pub(super) fn get(self, index: usize) -> Option<&'a str> {
        self.iter().nth(index)
    }

    /// The first segment, which is then gone; empty if there is none.
    pub(super) fn take(&mut self) -> &'a str {
        let Some(rest) = self.rest else { return "" };
        match rest.split_once('/') {
            Some((first, rest)) => {
                self.rest = Some(rest);
                first
            }
            None => {
                self.rest = None;
                rest
            }
        }
    }

    /// Everything that is left, slashes included.
    pub(super) fn rest(self) -> &'a str {
        self.rest.unwrap_or_default()
    }

    pub(super) fn iter(self) -> impl Iterator<Item = &'a str> {
        self.rest.into_iter().flat_map(|rest| rest.split('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dg_3_outer_slashes_go_and_inner_ones_stay() {
        let texts = |path| Segments::of(path).iter().collect::<Vec<_>>();
        assert!(texts("").is_empty());
        assert!(texts("///").is_empty());
        assert_eq!(texts("//a//b/"), ["a", "", "b"]);
        let mut segments = Segments::of("/a//b");
        assert_eq!((segments.take(), segments.rest(), segments.count()), ("a", "/b", 2));
        assert_eq!((segments.take(), segments.take(), segments.take(), segments.count()), ("", "b", "", 0));
    }
}
