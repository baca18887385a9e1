//! Where logs come from: files or standard input, packed with gzip or not, told apart by their first lines.

mod events;
mod lines;

use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::formats::{Damage, Format};
use events::{Events, ObjectLayout};
use lines::Lines;

/// An opened log.
pub struct Input {
    name: String,
    format: Format,
    /// The size of the file, if it is one.
    bytes_total: Option<u64>,
    bytes_read: Arc<AtomicU64>,
    parts: Parts,
}

/// A part of a log: a line, or an event of a list.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part<'a> {
    /// Its number, from 1 on.
    pub number: u64,
    /// Its text, or why it cannot be read.
    pub text: Result<&'a [u8], Damage>,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Unreadable(String, #[source] io::Error),
    /// The first lines are not those of a known log.
    #[error(
        "cannot tell what kind of log {0} is: none of its first lines is a Kubernetes audit event (as a kube-apiserver or a cloud writes it), a line of a kube-apiserver's \
         request log, or a line of an access log of Evenkeel, nginx or Envoy; if it has a format of its own, say so with --format"
    )]
    UnknownKind(String),
}

enum Parts {
    Lines(Lines<Source>),
    Events(Events<Source>),
}

type Source = Chain<Cursor<Vec<u8>>, Box<dyn Read>>;

/// Counts what is read of a file, before it is unpacked.
struct CountedReader<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

/// This much of a log is read to find out its kind.
const HEAD: u64 = 1 << 18;

/// The longest part: an event has a request and a response of 3 MB at most.
pub(crate) const PART_MAX: usize = 16 << 20;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The mark that some programs write at the start of a text in UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// The name of standard input.
const STDIN: &str = "-";

// === impl Input ===

impl Input {
    /// Opens a file, or standard input if it is called `-`. Without a format, the first lines tell.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Self, InputError> {
        if path.as_os_str() == STDIN {
            return Self::new("standard input", Box::new(io::stdin()), None, format);
        }
        let name = path.display().to_string();
        let unreadable = |error| InputError::Unreadable(name.clone(), error);
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(unreadable(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let total = metadata.is_file().then_some(metadata.len());
        Self::new(&name, Box::new(file), total, format)
    }

    /// A log from anywhere. Without a format, the first lines tell.
    pub fn new(
        name: &str,
        reader: Box<dyn Read>,
        bytes_total: Option<u64>,
        format: Option<Format>,
    ) -> Result<Self, InputError> {
        let unreadable = |error| InputError::Unreadable(name.to_owned(), error);
        let bytes_read = Arc::new(AtomicU64::new(0));
        let mut reader =
            BufReader::with_capacity(1 << 16, CountedReader { inner: reader, bytes: Arc::clone(&bytes_read) });
        let mut magic = Vec::new();
        reader.by_ref().take(2).read_to_end(&mut magic).map_err(unreadable)?;
        let is_packed = magic == GZIP;
        let whole = Cursor::new(magic).chain(reader);
        let mut unpacked: Box<dyn Read> =
            if is_packed { Box::new(MultiGzDecoder::new(BufReader::new(whole))) } else { Box::new(whole) };
        let mut head = Vec::new();
        // Invalid compressed data is found again, and reported, when the log is read.
        let read = unpacked.by_ref().take(HEAD).read_to_end(&mut head);
        if head.is_empty() {
            read.map_err(unreadable)?;
        }
        if head.starts_with(&BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let known = format.or_else(|| Format::detect(&head)).map(|format| {
            let layout = matches!(format, Format::EventList).then_some(ObjectLayout::Items);
            (format, layout)
        });
        let (format, layout) = match known.or_else(|| spread_out(&head)) {
            Some(found) => found,
            None if head.trim_ascii().is_empty() => (Format::Audit, None),
            None => return Err(InputError::UnknownKind(name.to_owned())),
        };
        let source = Cursor::new(head).chain(unpacked);
        let parts = match layout {
            Some(layout) => Parts::Events(Events::new(source, layout)),
            None => Parts::Lines(Lines::new(source)),
        };
        Ok(Self { name: name.to_owned(), format, bytes_total, bytes_read, parts })
    }

    /// The name of the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The format of the log.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// How much of it has been read, from 0 to 1; `None` if its length is unknown.
    #[expect(clippy::cast_precision_loss, reason = "a part for people")]
    pub fn progress(&self) -> Option<f64> {
        let total = self.bytes_total.filter(|total| *total > 0)?;
        Some((self.bytes_read.load(Ordering::Relaxed) as f64 / total as f64).min(1.0))
    }

    /// The word for its parts: `line` or `event`.
    pub fn unit(&self) -> &'static str {
        match self.parts {
            Parts::Lines(_) => "line",
            Parts::Events(_) => "event",
        }
    }

    /// The next line or event that is not empty.
    pub fn next_part(&mut self) -> Option<Part<'_>> {
        match &mut self.parts {
            Parts::Lines(lines) => lines.next_line(),
            Parts::Events(events) => events.next_event(),
        }
    }
}

/// The format of a log with several lines for each object: another program has rewritten it, as an array, as a list or indented.
fn spread_out(head: &[u8]) -> Option<(Format, Option<ObjectLayout>)> {
    let layouts: &[ObjectLayout] = match head.trim_ascii_start().first()? {
        b'[' => &[ObjectLayout::Array],
        b'{' => &[ObjectLayout::Row, ObjectLayout::Items, ObjectLayout::Cells],
        _ => return None,
    };
    layouts.iter().find_map(|layout| Some((laid_out(head, *layout)?, Some(*layout))))
}

/// The format of the objects that a text has if it is laid out like this.
fn laid_out(head: &[u8], layout: ObjectLayout) -> Option<Format> {
    let mut objects = Events::new(head, layout);
    let mut lines = Vec::new();
    while let Some(part) = objects.next_event() {
        // JSON strings have no line breaks, so that all line breaks are between tokens.
        lines.extend(part.text.unwrap_or_default().iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
        lines.push(b'\n');
    }
    Format::detect(&lines).filter(Format::is_json)
}

// === impl CountedReader ===

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
