//! Bytes as numbers and names. There is always a next one: after the end come zeros.

/// What is left of an input.
#[derive(Debug)]
pub(super) struct Bytes<'a>(&'a [u8]);

/// Numbers at which things go wrong.
const TELLING: [i64; 16] = [
    i64::MIN,
    i64::MAX,
    i64::MIN + 1,
    -1,
    -10,
    -1_000_000_000,
    1_000_000_000,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    1 << 53,
    1 << 40,
    600,
    86_400_000_000_000,
    4_000_000_000_000_000_000,
    3_000_000,
];

const TEXTS: [&str; 8] = ["", "a", "b", "*", "system:masters", "system:authenticated", "/", "get"];

impl<'a> Bytes<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// A small number, a telling one, or any at all.
    pub(super) fn number(&mut self) -> i64 {
        match self.byte() {
            small @ 0..=199 => i64::from(small),
            telling @ 200..=247 => TELLING[usize::from(telling) % TELLING.len()],
            _ => i64::from_le_bytes([(); 8].map(|()| self.byte())),
        }
    }

    pub(super) fn small_number(&mut self) -> i32 {
        let number = self.number();
        i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
    }

    pub(super) fn seats(&mut self) -> u32 {
        let number = self.number();
        u32::try_from(number).unwrap_or(if number < 0 { 0 } else { u32::MAX })
    }

    pub(super) fn text(&mut self) -> &'static str {
        TEXTS[usize::from(self.byte()) % TEXTS.len()]
    }

    /// What `read` reads, or nothing.
    pub(super) fn perhaps<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (!self.byte().is_multiple_of(4)).then(|| read(self))
    }
}
