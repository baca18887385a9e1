//! Frames of HTTP/2 by hand: what no ordinary client sends.

pub(crate) const DATA: u8 = 0;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const WINDOW_UPDATE: u8 = 8;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;

pub(crate) const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const INITIAL_WINDOW_SIZE: u16 = 4;
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// What a connection begins with (RFC 9113, 6.9.2).
const WINDOW: u32 = 65_535;
const CANCEL: u32 = 8;

/// What a client sends first. It has room for as much as there can be, so that only its not reading holds anybody back.
pub(crate) fn opening() -> Vec<u8> {
    let mut setting = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
    setting.extend(WINDOW_MAX.to_be_bytes());
    let room = (WINDOW_MAX - WINDOW).to_be_bytes();
    [PREFACE, &frame(SETTINGS, 0, 0, &setting), &frame(WINDOW_UPDATE, 0, 0, &room)].concat()
}

/// What an upstream sends first, also if it never responds to anything.
pub(crate) fn acceptance() -> Vec<u8> {
    [frame(SETTINGS, 0, 0, &[]), frame(SETTINGS, ACK, 0, &[])].concat()
}

/// The head of a request; with a flag of `END_STREAM` it has no body.
pub(crate) fn request(stream: u32, method: &str, path: &str, more: &[(&str, &str)], flags: u8) -> Vec<u8> {
    let fields = [(":method", method), (":scheme", "http"), (":authority", "shop"), (":path", path)];
    let mut block = Vec::new();
    for (name, value) in fields.iter().chain(more) {
        // A literal that is not indexed, without Huffman codes; no text here is longer than one byte of length can say.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).expect("a short text"));
            block.extend(text.bytes());
        }
    }
    frame(HEADERS, flags | END_HEADERS, stream, &block)
}

pub(crate) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_frame() {
        let bytes = request(3, "GET", "/", &[], END_STREAM);
        let length = bytes.len() - 9;
        assert_eq!(bytes[..9], [0, 0, u8::try_from(length).unwrap(), HEADERS, END_STREAM | END_HEADERS, 0, 0, 0, 3]);
        assert_eq!(bytes[9..22], *b"\0\x07:method\x03GET");
        assert_eq!(reset(1), [0, 0, 4, RST_STREAM, 0, 0, 0, 0, 1, 0, 0, 0, 8]);
    }
}
