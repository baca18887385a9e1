//! Names of header fields as services read them: many do not tell underscores from hyphens, and would take
//! `X_Remote_User` for the other.

/// Whether a name is this one, which is in lower case and has hyphens.
pub fn matches(name: &str, known: &str) -> bool {
    name.len() == known.len() && starts_with(name, known)
}

/// Whether two names are the same but for hyphens and underscores.
pub fn same(one: &str, other: &str) -> bool {
    let hyphened = |byte: u8| if byte == b'_' { b'-' } else { byte };
    one.len() == other.len() && one.bytes().map(hyphened).eq(other.bytes().map(hyphened))
}

/// Whether a name begins like this.
pub fn starts_with(name: &str, prefix: &str) -> bool {
    let same = |(byte, known): (u8, u8)| byte == known || (byte == b'_' && known == b'-');
    name.len() >= prefix.len() && name.bytes().zip(prefix.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_are_hyphens_and_nothing_else_is() {
        assert!(matches("x_remote-user", "x-remote-user") && matches("x-remote-user", "x-remote-user"));
        assert!(!matches("x-remote-users", "x-remote-user") && !matches("x-remote-use", "x-remote-user"));
        assert!(same("x_api-key", "x-api_key") && !same("x-api-key", "x-api-keys") && !same("xa", "x-"));
        assert!(!matches("x.remote-user", "x-remote-user"));
        assert!(starts_with("x_forwarded_by", "x-forwarded-") && !starts_with("x-forward", "x-forwarded-"));
    }
}
