//! Numbers in parameters, and the error texts for invalid ones (API-76, API-156).

use evenkeel_api::validate::Value;

/// A whole number with a sign or without.
pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| problem("ParseInt", text))
}

/// A whole number without a sign.
pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    // A plus sign, which Rust accepts, is not part of a number here.
    let digits = if text.starts_with('+') { "" } else { text };
    digits.parse().map_err(|_| problem("ParseUint", text))
}

/// Whether a parameter is true (API-76).
pub(crate) fn is_true(text: &str) -> bool {
    text != "0" && !text.eq_ignore_ascii_case("false")
}

fn problem(function: &str, text: &str) -> String {
    let digits = text.strip_prefix('-').filter(|_| function == "ParseInt").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let what = if is_number { "value out of range" } else { "invalid syntax" };
    format!("strconv.{function}: parsing {}: {what}", Value::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_76_numbers() {
        assert_eq!((parse_int("-5"), parse_uint("5")), (Ok(-5), Ok(5)));
        for (text, what) in
            [("", "invalid syntax"), ("1.5", "invalid syntax"), ("99999999999999999999", "value out of range")]
        {
            assert_eq!(parse_int(text), Err(format!("strconv.ParseInt: parsing {text:?}: {what}")));
            assert_eq!(parse_uint(text), Err(format!("strconv.ParseUint: parsing {text:?}: {what}")));
        }
        for text in ["-1", "+1"] {
            assert_eq!(parse_uint(text), Err(format!("strconv.ParseUint: parsing {text:?}: invalid syntax")));
        }
        assert!(is_true("") && is_true("maybe") && !is_true("False") && !is_true("0"));
    }
}
