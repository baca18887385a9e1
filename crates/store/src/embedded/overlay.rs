//! A file that can be opened and repaired without being changed: what is written to it stays in memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

/// Writes are kept by blocks of this many bytes.
const BLOCK: u64 = 4096;

/// A file of which writes stay in memory: reads return what was written since, and otherwise what `below` has.
#[derive(Debug)]
pub(crate) struct Overlay<B> {
    below: B,
    written: Mutex<OverlayBlocks>,
}

#[derive(Debug)]
struct OverlayBlocks {
    blocks: BTreeMap<u64, Box<[u8]>>,
    len: u64,
    /// How much of `below` is still visible: the rest was cut off by a shorter length.
    below_len: u64,
}

// === impl Overlay ===

impl<B: StorageBackend> Overlay<B> {
    pub(crate) fn new(below: B) -> io::Result<Self> {
        let len = below.len()?;
        Ok(Self { below, written: Mutex::new(OverlayBlocks { blocks: BTreeMap::new(), len, below_len: len }) })
    }

    fn written(&self) -> MutexGuard<'_, OverlayBlocks> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads from below, and zeros where there is nothing.
    fn read_below(&self, offset: u64, len: usize, below_len: u64) -> io::Result<Vec<u8>> {
        let there = below_len.saturating_sub(offset).min(len as u64);
        let there = usize::try_from(there).map_err(io::Error::other)?;
        let mut bytes = if there == 0 { Vec::new() } else { self.below.read(offset, there)? };
        bytes.resize(len, 0);
        Ok(bytes)
    }
}

impl<B: StorageBackend> StorageBackend for Overlay<B> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().len)
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let written = self.written();
        let end = offset.checked_add(len as u64).filter(|end| *end <= written.len);
        let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let mut bytes = self.read_below(offset, len, written.below_len)?;
        for (start, block) in written.blocks.range(offset / BLOCK * BLOCK..end) {
            let (from, to) = (offset.max(*start), end.min(start + BLOCK));
            bytes[span(offset, from, to)].copy_from_slice(&block[span(*start, from, to)]);
        }
        Ok(bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        if len < written.len {
            written.below_len = written.below_len.min(len);
            written.blocks.split_off(&len.next_multiple_of(BLOCK));
            if let Some(block) = written.blocks.get_mut(&(len / BLOCK * BLOCK)) {
                block[span(len / BLOCK * BLOCK, len, len / BLOCK * BLOCK + BLOCK)].fill(0);
            }
        }
        written.len = len;
        Ok(())
    }

    fn sync_data(&self, _eventual: bool) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written();
        let end = offset + data.len() as u64;
        let mut start = offset / BLOCK * BLOCK;
        while start < end {
            if !written.blocks.contains_key(&start) {
                let below = self.read_below(start, usize::try_from(BLOCK).unwrap_or(0), written.below_len)?;
                written.blocks.insert(start, below.into_boxed_slice());
            }
            let (from, to) = (offset.max(start), end.min(start + BLOCK));
            if let Some(block) = written.blocks.get_mut(&start) {
                block[span(start, from, to)].copy_from_slice(&data[span(offset, from, to)]);
            }
            start += BLOCK;
        }
        written.len = written.len.max(end);
        Ok(())
    }
}

/// The part from `from` to `to` of something that begins at `base`. All of it is in memory, so that it fits.
#[allow(clippy::cast_possible_truncation, reason = "what is in memory is addressed by a usize")]
fn span(base: u64, from: u64, to: u64) -> std::ops::Range<usize> {
    (from - base) as usize..(to - base) as usize
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;

    use super::*;

    #[derive(Debug, Clone)]
    enum OverlayStep {
        Write(u16, Vec<u8>),
        SetLen(u16),
    }

    proptest! {
        #[test]
        fn an_overlay_reads_like_the_file_it_would_have_become_and_leaves_it_alone(
            start in vec(any::<u8>(), 0..20_000),
            steps in vec(
                prop_oneof![
                    (0_u16..30_000, vec(any::<u8>(), 1..9_000)).prop_map(|(at, data)| OverlayStep::Write(at, data)),
                    (0_u16..30_000).prop_map(OverlayStep::SetLen),
                ],
                0..12,
            ),
        ) {
            let below = InMemoryBackend::new();
            below.set_len(start.len() as u64).unwrap();
            below.write(0, &start).unwrap();
            let overlay = Overlay::new(below).unwrap();
            let mut model = start.clone();
            for step in steps {
                match step {
                    OverlayStep::Write(at, data) => {
                        let at = usize::from(at);
                        model.resize(model.len().max(at + data.len()), 0);
                        model[at..at + data.len()].copy_from_slice(&data);
                        overlay.write(at as u64, &data).unwrap();
                    }
                    OverlayStep::SetLen(len) => {
                        model.resize(usize::from(len), 0);
                        overlay.set_len(u64::from(len)).unwrap();
                    }
                }
                prop_assert_eq!(overlay.len().unwrap(), model.len() as u64);
                prop_assert_eq!(&overlay.read(0, model.len()).unwrap(), &model);
                let middle = model.len() / 3;
                prop_assert_eq!(&overlay.read(middle as u64, middle).unwrap(), &model[middle..2 * middle]);
                prop_assert!(overlay.read(1, model.len()).is_err());
            }
            prop_assert_eq!(overlay.below.read(0, start.len()).unwrap(), start);
        }
    }
}
