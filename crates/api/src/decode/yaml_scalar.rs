//! The meaning of plain YAML scalars: the rules of YAML 1.1, which Kubernetes follows.
//!
//! So `yes` and `off` are booleans and `010` is eight. A text that looks like one of these has to be quoted, here
//! as there.

use super::Value;

/// The value of a plain scalar.
pub(super) fn plain_value(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Value::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan" | ".NaN"
        | ".NAN" => return Err(format!("{text} is not a number that JSON knows")),
        _ => match number(text) {
            Some(literal) => Value::Number(literal.into()),
            None => Value::String(text.to_owned()),
        },
    })
}

/// The name that a plain scalar stands for: numbers and booleans are named by how JSON writes them.
pub(super) fn plain_key(text: &str) -> String {
    match plain_value(text) {
        Ok(Value::Bool(value)) => value.to_string(),
        Ok(Value::Number(literal)) => literal.into(),
        Ok(Value::Null) => "null".to_owned(),
        _ => text.to_owned(),
    }
}

/// The number as JSON writes it, if the text is one.
fn number(text: &str) -> Option<String> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let digits = text.replace('_', "");
    integer(&digits).or_else(|| fraction(&digits))
}

fn integer(text: &str) -> Option<String> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match magnitude.get(..2) {
        Some("0x" | "0X") => (16, &magnitude[2..]),
        Some("0b" | "0B") => (2, &magnitude[2..]),
        Some("0o" | "0O") => (8, &magnitude[2..]),
        _ if magnitude.len() > 1 && magnitude.starts_with('0') => (8, &magnitude[1..]),
        _ => (10, magnitude),
    };
    // The parser of numbers would take another sign here.
    let digits = Some(digits).filter(|digits| digits.starts_with(|first: char| first.is_digit(radix)))?;
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if negative { -value } else { value };
    (value >= i128::from(i64::MIN)).then(|| value.to_string())
}

fn fraction(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let only_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let well_formed = only_digits(whole)
        && only_digits(decimals)
        && only_digits(exponent)
        && !exponent.is_empty()
        && !(whole.is_empty() && decimals.is_empty());
    let value: f64 = well_formed.then(|| text.parse().ok()).flatten()?;
    value.is_finite().then(|| write_double(value))
}

/// A double as the JSON of a kube-apiserver has it: without an exponent in the middle range, so that 5.0 is 5.
fn write_double(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_they_mean_to_kubernetes() {
        let number = |literal: &str| Value::Number(literal.into());
        let string = |text: &str| Value::String(text.to_owned());
        for (text, value) in [
            ("", Value::Null),
            ("~", Value::Null),
            ("yes", Value::Bool(true)),
            ("Off", Value::Bool(false)),
            ("nO", string("nO")),
            ("5", number("5")),
            ("-5", number("-5")),
            ("+5", number("5")),
            ("010", number("8")),
            ("0x1F", number("31")),
            ("0b101", number("5")),
            ("0o17", number("15")),
            ("1_000", number("1000")),
            ("5.0", number("5")),
            ("1e3", number("1000")),
            (".5", number("0.5")),
            ("5.", number("5")),
            ("1e30", number("1e+30")),
            ("1e-7", number("1e-7")),
            ("0.0", number("0")),
            ("09", number("9")),
            ("18446744073709551615", number("18446744073709551615")),
            ("--5", string("--5")),
            ("0x", string("0x")),
            ("0x-5", string("0x-5")),
            (".", string(".")),
            ("-", string("-")),
            ("1e", string("1e")),
            ("1.2.3", string("1.2.3")),
            ("2024-01-02", string("2024-01-02")),
            ("/healthz", string("/healthz")),
            ("*", string("*")),
        ] {
            assert_eq!(plain_value(text), Ok(value), "{text}");
        }
        assert!(plain_value(".inf").is_err());
    }

    #[test]
    fn names_are_texts() {
        assert_eq!(["yes", "5.0", "~", "a"].map(plain_key), ["true", "5", "null", "a"]);
    }
}
