//! The gateway's HTTP/1.1 codec beside those of hyper and h11. `docs/decisions/0038-strict-http1.md` argues for every
//! difference; a new one fails the test.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::Path;

use evenkeel_any_input::{
    Reading, http1_differential, named_corpus, requests_by_gateway, requests_by_hyper, try_mutations,
};

/// What the gateway does where another codec does something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    /// It rejects what the other reads.
    Stricter,
    /// It reads what the other rejects.
    Looser,
    /// Both read it, and not as the same.
    Other,
}

use Difference::{Looser, Other, Stricter};

type Differences = &'static [(Difference, &'static [&'static str])];

const BESIDE_HYPER: Differences = &[
    // Hosts and targets that name another server, or none.
    (
        Stricter,
        &[
            "absolute-no-host",
            "absolute-other-host",
            "absolute-user",
            "absolute-user-only-in-target",
            "host-empty",
            "host-ipv6-bare",
            "host-latin1",
            "host-missing",
            "host-path",
            "host-port-large",
            "host-port-text",
            "host-space",
            "host-twice",
            "host-two",
            "host-user",
        ],
    ),
    // Targets that are neither a path, nor a URL of HTTP, nor `OPTIONS *`.
    (Stricter, &["absolute-ftp", "asterisk-get", "authority-get", "target-relative"]),
    // Lengths that are repeated, or longer than a number of 64 bits.
    (Stricter, &["length-many-zeros", "length-twice"]),
    // Transfer codings beside `chunked`.
    (
        Stricter,
        &[
            "coding-comma",
            "coding-gzip-chunked",
            "coding-identity-chunked",
            "coding-twice",
            "coding-twice-list",
            "coding-two-fields",
        ],
    ),
    // A length and a coding: the usual beginning of request smuggling.
    (Stricter, &["coding-and-length", "length-and-coding", "smuggled-length"]),
    // Lines that do not end with CRLF.
    (
        Stricter,
        &[
            "chunk-last-line-feed",
            "line-feed-all",
            "line-feed-field",
            "line-feed-first",
            "line-feed-last",
            "trailer-line-feed",
        ],
    ),
    // Chunk sizes of more than 15 digits, and what is not text in a chunk's extension.
    (Stricter, &["chunk-extension-long", "chunk-extension-nul", "chunk-size-many-zeros", "chunk-size-u64"]),
];

const BESIDE_H11: Differences = &[
    // Hosts and targets that name another server, or none.
    (
        Stricter,
        &[
            "absolute-other-host",
            "absolute-user",
            "absolute-user-only-in-target",
            "host-empty",
            "host-ipv6-bare",
            "host-latin1",
            "host-path",
            "host-port-large",
            "host-port-text",
            "host-space",
            "host-user",
        ],
    ),
    // Targets that are neither a path, nor a URL of HTTP, nor `OPTIONS *`.
    (Stricter, &["absolute-ftp", "asterisk-get", "authority-get", "target-angle", "target-brace", "target-relative"]),
    // Lengths that are repeated, or longer than a number of 64 bits.
    (Stricter, &["length-list", "length-overflow", "length-twice", "length-u64"]),
    // Chunks in HTTP/1.0.
    (Stricter, &["coding-10", "coding-10-keep-alive"]),
    // A length and a coding: the usual beginning of request smuggling.
    (Stricter, &["coding-and-length", "length-and-coding", "smuggled-length"]),
    // Lines that do not end with CRLF.
    (
        Stricter,
        &[
            "chunk-last-line-feed",
            "chunk-last-line-feeds",
            "line-feed-all",
            "line-feed-field",
            "line-feed-first",
            "line-feed-last",
            "return-only",
            "trailer-line-feed",
        ],
    ),
    // Folded lines.
    (Stricter, &["fold-space", "fold-tab", "fold-transfer-encoding", "smuggled-fold", "trailer-fold"]),
    // Control characters.
    (Stricter, &["chunk-extension-nul", "chunk-extension-return", "control-in-value", "delete-in-value"]),
    // Chunk sizes of more than 15 digits.
    (Stricter, &["chunk-size-many-zeros", "chunk-size-overflow", "chunk-size-u64"]),
    // Limits that h11 does not have.
    (Stricter, &["chunk-extension-long", "hundred-fields", "trailer-long", "trailers-too-many"]),
    // Other versions than 1.0 and 1.1.
    (Stricter, &["http2-preface", "version-0.9", "version-1.2", "version-2.0"]),
    // Empty lines before a request (RFC 9112, 2.2), and spaces around the parts of a chunk's extension (7.1.1).
    (Looser, &["chunk-extension-spaces", "empty-lines-first", "empty-lines-only", "line-feeds-first"]),
    // UTF-8 in a target is passed on as it is, as browsers of old and many programs send it.
    (Looser, &["target-utf8"]),
    // The target in its normal form; without a fragment, which is no part of it.
    (Other, &["absolute-no-path", "absolute-query-only", "absolute-upper-case", "target-fragment"]),
    // h11 writes the coding in lower case.
    (Other, &["coding-upper-case"]),
    // h11 closes every connection of HTTP/1.0.
    (Other, &["keep-alive-10"]),
];

/// What h11 0.16.0 made of the corpus; recorded, so that no Python is needed.
fn readings_of_h11() -> BTreeMap<String, Reading> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("h11-0.16.0.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn difference(ours: &Reading, theirs: &Reading) -> Option<Difference> {
    match (&*ours.end, &*theirs.end) {
        _ if ours == theirs => None,
        ("rejected", _) => Some(Stricter),
        (_, "rejected") => Some(Looser),
        _ => Some(Other),
    }
}

#[track_caller]
fn assert_differences(theirs: impl Fn(&str, &[u8]) -> Reading, known: Differences) {
    let found = named_corpus("http1_request").into_iter().filter_map(|(name, input)| {
        let difference = difference(&Reading::of(&requests_by_gateway(&input)), &theirs(&name, &input))?;
        Some((name, difference))
    });
    let known = known.iter().flat_map(|(difference, names)| names.iter().map(|name| ((*name).to_owned(), *difference)));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), known.collect::<BTreeMap<_, _>>());
}

#[test]
fn beside_hyper_only_the_known_requests_differ() {
    assert_differences(|_, input| Reading::of(&requests_by_hyper(input)), BESIDE_HYPER);
}

#[test]
fn beside_h11_only_the_known_requests_differ() {
    let recorded = readings_of_h11();
    let of = |name: &str| recorded.get(name).unwrap_or_else(|| panic!("{name} is not recorded")).clone();
    assert_differences(|name, _| of(name), BESIDE_H11);
}

#[test]
fn mutations_of_the_corpus_are_rejected_or_read_as_hyper_does() {
    try_mutations("http1_request", 0x2545_f491, 1_000, http1_differential);
}
