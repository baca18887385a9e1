//! The header `Accept`, taken apart: entries with a quality and parameters.

use crate::output::Media;

/// One entry of the header.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcceptEntry<'a> {
    /// The media type, or a pattern of such.
    range: &'a str,
    /// How much the client prefers it, from 0 to 1.
    quality: f32,
    /// The kind that the response is to be converted to; all empty for none.
    pub(super) target: WantedKind<'a>,
    /// The parameter `stream`; empty when absent.
    pub(super) stream: &'a str,
    /// Whether JSON is to be indented.
    pub(super) pretty: &'a str,
}

/// The kind that a response is to be converted to: the parameters `as`, `v` and `g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WantedKind<'a> {
    pub(super) kind: &'a str,
    pub(super) version: &'a str,
    pub(super) group: &'a str,
}

/// How well an entry fits: its quality first, then how specific it is.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
struct EntryRank {
    quality: f32,
    exactness: u8,
}

/// The entries of a header in their order. An empty header accepts everything.
pub(super) fn entries(header: &str) -> impl Iterator<Item = AcceptEntry<'_>> {
    let header = if header.trim().is_empty() { ANYTHING } else { header };
    header.split(',').map(AcceptEntry::parse)
}

/// The best of what the entries accept: the first of the highest quality, a media type before a pattern. `accept`
/// turns an entry and a media type that it allows into a result.
pub(super) fn best<'a, T>(header: &'a str, accept: impl Fn(&AcceptEntry<'a>, Media) -> Option<T>) -> Option<T> {
    let mut best: Option<(EntryRank, T)> = None;
    for entry in entries(header) {
        let rank = entry.rank();
        if best.as_ref().is_some_and(|(best, _)| rank <= *best) {
            continue;
        }
        let mut allowed = Media::ALL.into_iter().filter(|media| entry.allows(*media));
        if let Some(found) = allowed.find_map(|media| accept(&entry, media)) {
            best = Some((rank, found));
        }
    }
    best.map(|(_, found)| found)
}

const ANYTHING: &str = "*/*";

// === impl AcceptEntry ===

impl<'a> AcceptEntry<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';');
        let range = parts.next().unwrap_or_default().trim();
        let mut entry = Self { range, quality: 1.0, target: WantedKind::default(), stream: "", pretty: "" };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => entry.quality = value.parse().map_or(0.0, |quality: f32| quality.clamp(0.0, 1.0)),
                "as" => entry.target.kind = value,
                "v" => entry.target.version = value,
                "g" => entry.target.group = value,
                "stream" => entry.stream = value,
                "pretty" => entry.pretty = value,
                _ => {}
            }
        }
        if entry.quality.is_nan() {
            entry.quality = 0.0;
        }
        entry
    }

    /// Whether the entry is that media type, or accepts any.
    pub(super) fn names(&self, media: Media) -> bool {
        self.range == ANYTHING || self.range.eq_ignore_ascii_case(media.name())
    }

    /// Whether the media type fits the entry.
    fn allows(&self, media: Media) -> bool {
        self.names(media) || self.range.eq_ignore_ascii_case("application/*")
    }

    fn rank(&self) -> EntryRank {
        let exactness = match self.range.split_once('/') {
            Some(("*", _)) => 0,
            Some((_, "*")) => 1,
            _ => 2,
        };
        EntryRank { quality: self.quality, exactness }
    }
}

// === impl WantedKind ===

impl WantedKind<'_> {
    /// Whether the response keeps its kind.
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
