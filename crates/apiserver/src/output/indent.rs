//! One line of JSON laid out for people, without reading it into a tree.

/// The same JSON indented by two spaces. Invalid JSON stays invalid.
pub(super) fn indented(json: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut rest = json.iter().copied().filter(|byte| *byte != b'\n').peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => {
                written.push(byte);
                copy_string(&mut written, &mut rest);
            }
            b'{' | b'[' => {
                written.push(byte);
                if let Some(end) = rest.next_if(|next| matches!(next, b'}' | b']')) {
                    written.push(end);
                } else {
                    depth += 1;
                    new_line(&mut written, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut written, depth);
                written.push(byte);
            }
            b',' => {
                written.push(byte);
                new_line(&mut written, depth);
            }
            b':' => written.extend_from_slice(b": "),
            _ => written.push(byte),
        }
    }
    written
}

/// The rest of a string, after its opening quote.
fn copy_string(written: &mut Vec<u8>, rest: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = rest.next() {
        written.push(byte);
        match byte {
            b'"' => return,
            b'\\' => written.extend(rest.next()),
            _ => {}
        }
    }
}

fn new_line(written: &mut Vec<u8>, depth: usize) {
    written.push(b'\n');
    written.extend(std::iter::repeat_n(b' ', 2 * depth));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn api_78_looks_as_serde_lays_it_out(value in crate::output::any_json()) {
            let line = serde_json::to_vec(&value).unwrap();
            let indented = indented(&line);
            prop_assert_eq!(String::from_utf8(indented).unwrap(), serde_json::to_string_pretty(&value).unwrap());
        }

        #[test]
        fn of_any_bytes_only_the_layout_changes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let without_layout = |bytes: &[u8]| -> Vec<u8> {
                bytes.iter().copied().filter(|byte| !matches!(byte, b' ' | b'\n')).collect()
            };
            prop_assert_eq!(without_layout(&indented(&bytes)), without_layout(&bytes));
        }
    }
}
