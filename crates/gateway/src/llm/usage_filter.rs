//! `UsageFilter`: takes the usage out of a stream whose client has not asked for it (LM-3).

use bytes::{Bytes, BytesMut};

use super::json_scan::{JsonScan, JsonVisitor, Key, Scalar};

/// Drops the event of a stream of `OpenAI` that has nothing but usage: a line of data without choices. All other events pass
/// unchanged.
///
/// A line is held until it is known to have a choice. A piece whose lines all pass is passed on as it is.
#[derive(Debug)]
pub(crate) struct UsageFilter {
    line: Line,
    scan: JsonScan,
    seen: Seen,
    /// The beginning of the current line, if it may have to be dropped.
    held: BytesMut,
    /// The part of the current piece that the client gets.
    passed: BytesMut,
    /// Whether the last line was dropped: the blank line that ends its event is dropped too.
    drops_blank: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// So many bytes of the held line have been read.
    Undecided(usize),
    /// The rest of the line passes.
    Passes,
}

/// The fields that the current line has.
#[derive(Debug, Default)]
struct Seen {
    has_choice: bool,
    has_usage: bool,
}

const DATA: &[u8] = b"data:";
/// A longer line passes: events with usage alone are shorter.
const HELD_MAX: usize = 4096;

// === impl UsageFilter ===

impl UsageFilter {
    /// A filter for a stream that is about to begin.
    pub(crate) fn new() -> Self {
        Self {
            line: Line::Undecided(0),
            scan: JsonScan::default(),
            seen: Seen::default(),
            held: BytesMut::new(),
            passed: BytesMut::new(),
            drops_blank: false,
        }
    }

    /// The bytes that the client gets after the next piece of the stream: bytes that were held, and the piece without usage.
    pub(crate) fn pass(&mut self, piece: Bytes) -> Bytes {
        let mut is_whole = self.held.is_empty();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            is_whole &= self.pass_part(part);
        }
        is_whole &= self.held.is_empty();
        if is_whole {
            self.passed.clear();
            return piece;
        }
        self.passed.split().freeze()
    }

    /// Reads a part of one line. Returns false if the part was dropped.
    fn pass_part(&mut self, part: &[u8]) -> bool {
        let ends = part.ends_with(b"\n");
        let Line::Undecided(read) = self.line else {
            self.passed.extend_from_slice(part);
            if ends {
                self.begin_line();
            }
            return true;
        };
        self.held.extend_from_slice(part);
        if self.drops_blank {
            match &*self.held {
                b"\r" => return true,
                b"\n" | b"\r\n" => {
                    self.held.clear();
                    self.drops_blank = false;
                    return false;
                }
                _ => self.drops_blank = false,
            }
        }
        let may_be_usage = self.read(read);
        let is_usage = may_be_usage && ends && self.seen.has_usage;
        if is_usage {
            self.held.clear();
            self.drops_blank = true;
        } else if ends || !may_be_usage {
            self.passed.extend_from_slice(&self.held);
            self.held.clear();
            self.line = Line::Passes;
        }
        if ends {
            self.begin_line();
        }
        !is_usage
    }

    /// Reads the held bytes from there on. Returns whether the line may still have usage alone.
    fn read(&mut self, from: usize) -> bool {
        let known = self.held.len().min(DATA.len());
        if self.held[..known] != DATA[..known] || self.held.len() > HELD_MAX {
            return false;
        }
        let from = from.max(DATA.len());
        if let Some(more) = self.held.get(from..) {
            self.scan.feed(more, &mut self.seen);
        }
        self.line = Line::Undecided(self.held.len().max(from));
        !self.seen.has_choice && !self.scan.is_lost()
    }

    fn begin_line(&mut self) {
        self.line = Line::Undecided(0);
        self.scan.reset();
        self.seen = Seen::default();
    }
}

// === impl Seen ===

impl JsonVisitor for Seen {
    fn scalar(&mut self, path: &[Key], value: Scalar<'_>) {
        match (path, value) {
            ([Key::Choices, ..], _) => self.has_choice = true,
            ([Key::Usage, _, ..], Scalar::Number(_)) => self.has_usage = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str =
        "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"usage\"}}],\"usage\":null}\n\n";
    const USAGE: &str =
        "data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    fn filtered<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut filter = UsageFilter::new();
        let passed: Vec<u8> = pieces.into_iter().flat_map(|piece| filter.pass(Bytes::copy_from_slice(piece))).collect();
        String::from_utf8(passed).unwrap()
    }

    #[test]
    fn usage_alone_is_dropped_and_everything_else_passes() {
        assert_eq!(filtered([format!("{TEXT}{USAGE}{DONE}").as_bytes()]), format!("{TEXT}{DONE}"));
        let usage_first = USAGE.replace("\"choices\":[],", "").replace("\n\n", "\r\n\r\n");
        assert_eq!(filtered([TEXT.as_bytes(), usage_first.as_bytes(), DONE.as_bytes()]), format!("{TEXT}{DONE}"));
        for others in [
            // An event with usage and text is kept.
            TEXT.replace("null", "{\"completion_tokens\":1}"),
            // The first event of a content filter.
            "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n".to_owned(),
            "data: {\"error\":{\"message\":\"usage\"}}\n\n: comment\nevent: x\n\n".to_owned(),
            "data: [DONE]".to_owned(),
            "dat".to_owned() + "e: x\n",
            format!("data: {{\"usage\":{{\"completion_tokens\":1}},\"x\":\"{}\"}}\n\n", "x".repeat(2 * HELD_MAX)),
        ] {
            assert_eq!(filtered([others.as_bytes()]), others);
        }
    }

    #[test]
    fn a_piece_that_passes_is_not_copied() {
        let piece = Bytes::from(TEXT.repeat(3));
        let passed = UsageFilter::new().pass(piece.clone());
        assert_eq!((passed.as_ptr(), passed.len()), (piece.as_ptr(), piece.len()));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut filter = UsageFilter::new();
        for _ in 0..10_000 {
            filter.pass(Bytes::from_static(b"data: {\"x\":1,"));
            assert!(filter.held.len() <= HELD_MAX && filter.passed.is_empty());
        }
        for _ in 0..10_000 {
            filter.pass(Bytes::from_static(b" "));
        }
        assert!(filter.held.capacity() <= 4 * HELD_MAX, "{}", filter.held.capacity());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_bytes_are_cut(cuts in prop::collection::vec(1..90_usize, 0..30), has_returns: bool) {
            let usage = if has_returns { USAGE.replace('\n', "\r\n") } else { USAGE.to_owned() };
            let stream = format!("{TEXT}{TEXT}: ping\n\n{usage}{TEXT}{DONE}");
            let (mut pieces, mut rest) = (Vec::new(), stream.as_bytes());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            prop_assert_eq!(filtered(pieces), stream.replace(&usage, ""));
        }

        #[test]
        fn streams_without_usage_pass_whatever_they_are(lines in prop::collection::vec("[ -~]{0,40}|data: [ -~]{0,40}|data: \\{\"usage\":[ -~]{0,9}", 0..12)) {
            let stream = lines.join("\n") + "\n";
            prop_assume!(!stream.contains("tokens"));
            let has_numbers = stream.contains("usage\":{") || stream.contains("usage\":[");
            prop_assume!(!has_numbers);
            prop_assert_eq!(filtered([stream.as_bytes()]), stream);
        }
    }
}
