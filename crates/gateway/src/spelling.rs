//! Names of header fields as services read them: many do not tell underscores from hyphens, and would take
//! `X_Remote_User` for the other.

/// Whether a name is this one, which is in lower case and has hyphens.
pub(crate) fn is(name: &str, known: &str) -> bool {
    name.len() == known.len() && begins(name, known)
}

/// Whether a name begins like this.
pub(crate) fn begins(name: &str, prefix: &str) -> bool {
    let same = |(byte, known): (u8, u8)| byte == known || (byte == b'_' && known == b'-');
    name.len() >= prefix.len() && name.bytes().zip(prefix.bytes()).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_are_hyphens_and_nothing_else_is() {
        assert!(is("x_remote-user", "x-remote-user") && is("x-remote-user", "x-remote-user"));
        assert!(!is("x-remote-users", "x-remote-user") && !is("x-remote-use", "x-remote-user"));
        assert!(!is("x.remote-user", "x-remote-user"));
        assert!(begins("x_forwarded_by", "x-forwarded-") && !begins("x-forward", "x-forwarded-"));
    }
}
