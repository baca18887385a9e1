//! A log of many copies of the recorded one, each two minutes later than the one before and with ids of its own.

use std::io::{self, Read};

/// The copies, made one after the other.
pub(crate) struct Repeated {
    copy: Vec<u8>,
    /// Where ids start.
    ids: Vec<usize>,
    /// Where the days, hours and minutes of times start, and how many minutes they are after the start of the recording.
    times: Vec<(usize, usize)>,
    left: usize,
    number: usize,
    at: usize,
}

const DAY: usize = b"2026-11-".len();
const MINUTES: usize = 10 * 60 + 51;

// === impl Repeated ===

impl Repeated {
    pub(crate) fn new(log: &[u8], copies: usize) -> Self {
        let id = b"\"auditID\":\"";
        let found = |pattern: &[u8], length: usize| -> Vec<usize> {
            let windows = log.windows(pattern.len()).enumerate();
            windows.filter(|(_, window)| *window == pattern).map(|(at, _)| at + length).collect()
        };
        let minute = |text: &[u8]| usize::from(text[0] - b'0') * 10 + usize::from(text[1] - b'0');
        let times = found(b"Timestamp\":\"2026-11-16T10:", b"Timestamp\":\"".len());
        let times = times.into_iter().map(|at| (at + DAY, minute(&log[at + DAY + 6..]) - MINUTES % 60));
        Self {
            ids: found(id, id.len()),
            times: times.collect(),
            copy: log.to_vec(),
            left: copies,
            number: 0,
            at: log.len(),
        }
    }

    fn next_copy(&mut self) {
        let id = format!("{:08x}", self.number);
        for &at in &self.ids {
            self.copy[at..at + id.len()].copy_from_slice(id.as_bytes());
        }
        for &(at, minutes) in &self.times {
            let minute = MINUTES + minutes + 2 * self.number;
            let text = format!("{:02}T{:02}:{:02}", 16 + minute / 1440, minute / 60 % 24, minute % 60);
            self.copy[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        self.number += 1;
        self.left -= 1;
        self.at = 0;
    }
}

impl Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.copy.len() {
            if self.left == 0 {
                return Ok(0);
            }
            self.next_copy();
        }
        let bytes = buffer.len().min(self.copy.len() - self.at);
        buffer[..bytes].copy_from_slice(&self.copy[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}
