//! The forms that names have to have, and what is said of a name that has not (API-30 to API-32, API-41).
//!
//! Each form is a function that gives the messages for one text, none if it has the form.

use super::{FieldError, Path, Value};

const SUBDOMAIN_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

macro_rules! subdomain_text {
    () => {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    };
}

macro_rules! subdomain_length_text {
    () => {
        "must be no more than 253 characters"
    };
}

macro_rules! qualified_name_text {
    () => {
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    };
}

const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
     must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const LABEL_VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
     or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const TOO_MANY_SLASHES_TEXT: &str = concat!(
    "a valid label key ",
    qualified_name_text!(),
    " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
);

/// A DNS subdomain: labels with dots between them.
pub(super) fn subdomain(text: &str) -> impl Iterator<Item = &'static str> {
    faults([(text.len() > SUBDOMAIN_BYTES_MAX, subdomain_length_text!()), (!is_subdomain(text), subdomain_text!())])
}

/// Checks the beginning of a DNS subdomain.
pub(super) fn subdomain_prefix(text: &str) -> impl Iterator<Item = &'static str> {
    faults([
        (text.len() > SUBDOMAIN_BYTES_MAX, subdomain_length_text!()),
        // Something is going to follow, so that a dash is not the end.
        (!is_subdomain(text.trim_end_matches('-')), subdomain_text!()),
    ])
}

/// The name of a namespace: a DNS label.
pub(super) fn namespace(text: &str) -> impl Iterator<Item = &'static str> {
    let wrong = !is_label(text);
    let dotted = wrong && is_subdomain(text);
    faults([
        (text.len() > LABEL_BYTES_MAX, "must be no more than 63 characters"),
        (dotted, "must not contain dots"),
        (wrong && !dotted, LABEL_TEXT),
    ])
}

/// The key of a label: a name, perhaps with a DNS subdomain and a slash before it. Gives one message for each fault.
pub fn qualified_name(text: &str) -> impl Iterator<Item = &'static str> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let slashes = name.contains('/');
    let has_prefix = |fault: fn(&str) -> bool| !slashes && prefix.is_some_and(fault);
    faults([
        (slashes, TOO_MANY_SLASHES_TEXT),
        (has_prefix(str::is_empty), "prefix part must be non-empty"),
        (has_prefix(|prefix| prefix.len() > SUBDOMAIN_BYTES_MAX), concat!("prefix part ", subdomain_length_text!())),
        (has_prefix(|prefix| !prefix.is_empty() && !is_subdomain(prefix)), concat!("prefix part ", subdomain_text!())),
        (!slashes && name.is_empty(), "name part must be non-empty"),
        (!slashes && name.len() > LABEL_BYTES_MAX, "name part must be no more than 63 bytes"),
        (!slashes && !is_name(name), concat!("name part ", qualified_name_text!())),
    ])
}

/// The value of a label. Gives one message for each fault.
pub fn label_value(text: &str) -> impl Iterator<Item = &'static str> {
    faults([
        (text.len() > LABEL_BYTES_MAX, "must be no more than 63 bytes"),
        (!text.is_empty() && !is_name(text), LABEL_VALUE_TEXT),
    ])
}

/// Adds one error for each message that there is on a text.
pub(super) fn report(
    errors: &mut Vec<FieldError>,
    path: &Path<'_>,
    text: &str,
    messages: impl Iterator<Item = &'static str>,
) {
    errors.extend(messages.map(|message| FieldError::invalid(path, &Value::text(text), message)));
}

/// The messages of those checks that found something.
fn faults<const N: usize>(checks: [(bool, &'static str); N]) -> impl Iterator<Item = &'static str> {
    checks.into_iter().filter_map(|(wrong, message)| wrong.then_some(message))
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    has_form(text, is_end, |byte| is_end(byte) || *byte == b'-')
}

fn is_name(text: &str) -> bool {
    has_form(text, u8::is_ascii_alphanumeric, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Whether the text is not empty, and its first and last byte, and those between them, are as asked for.
fn has_form(text: &str, is_end: impl Fn(&u8) -> bool, is_inner: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&is_end) && bytes.last().is_some_and(&is_end) && bytes.iter().all(is_inner)
}
