//! `Writer`: a protobuf message that is being written, field by field.

/// A protobuf message that is being written, field by field.
///
/// ```
/// use evenkeel_api::protobuf::Writer;
///
/// let mut inner = Writer::default();
/// inner.text(1, "v1");
/// let mut outer = Writer::default();
/// outer.message(1, &inner);
/// outer.number(2, 300);
/// assert_eq!(outer.into_bytes(), b"\x0a\x04\x0a\x02v1\x10\xac\x02");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Writer(Vec<u8>);

/// The type of a field that is a number.
pub(super) const VARINT: u8 = 0;
/// The type of a field whose length is written before it: text, bytes, or another message.
pub(super) const LENGTH_DELIMITED: u8 = 2;

// === impl Writer ===

impl Writer {
    /// Writes a whole number, or a truth value as 0 or 1. Negative numbers are given in two's complement.
    pub fn number(&mut self, field: u32, number: u64) {
        self.key(field, VARINT);
        self.varint(number);
    }

    /// Writes a text.
    pub fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// Writes another message.
    pub fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// Writes bytes.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, LENGTH_DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// An empty message with room for so many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// The bytes that have been written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Fields that have been written elsewhere.
    pub(super) fn fields(&mut self, fields: &[u8]) {
        self.0.extend_from_slice(fields);
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Writes another message, of which `write` writes the fields right here.
    pub(super) fn nested(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.key(field, LENGTH_DELIMITED);
        let start = self.0.len();
        write(self);
        let length = self.0.len() - start;
        // The length goes before what was written, and takes one byte in most cases.
        match u8::try_from(length) {
            Ok(short @ ..0x80) => self.0.insert(start, short),
            _ => {
                let mut prefix = Self::default();
                prefix.varint(length as u64);
                self.0.splice(start..start, prefix.0);
            }
        }
    }

    /// Takes away what was written behind so many bytes.
    pub(super) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// Takes away everything.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn key(&mut self, field: u32, wire_type: u8) {
        self.varint(u64::from(field) << 3 | u64::from(wire_type));
    }

    /// Seven bits at a time, the lowest first; all but the last byte have their highest bit set.
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            let [low, ..] = number.to_le_bytes();
            self.0.push(low | 0x80);
            number >>= 7;
        }
        let [last, ..] = number.to_le_bytes();
        self.0.push(last);
    }
}
