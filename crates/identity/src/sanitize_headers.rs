//! Sets the identity headers that the upstream gets, and removes those that clients must not set.

use evenkeel_engine::User;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::{IdentityConfig, IdentitySource};
use crate::header_names;

/// The headers that name the caller, and whether the program sets them.
#[derive(Debug)]
pub(crate) struct HeaderSanitizer {
    /// The headers of the settings, in lower case and with hyphens, beside those that always name the caller.
    named: Vec<String>,
    tells_upstream: bool,
}

/// Who has set the headers of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A proxy whose headers are trusted.
    TrustedProxy,
    /// A proxy that is trusted to say where requests come from, and nothing else.
    Forwarder,
    /// Any other client.
    Outsider,
}

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");

/// The prefixes of headers that tell Kubernetes who is calling, or as whom to act.
const PREFIXES: [&str; 2] = ["x-remote-extra-", "impersonate-"];
const NAMES: [&str; 3] = ["x-remote-user", "x-remote-group", "x-remote-uid"];

// === impl HeaderSanitizer ===

impl HeaderSanitizer {
    pub(crate) fn new(config: &IdentityConfig) -> Self {
        let mut named = Vec::new();
        for source in &config.sources {
            if let IdentitySource::TrustedHeaders(headers) = source {
                named.extend([&headers.user_header, &headers.group_header].map(|name| name.as_str().replace('_', "-")));
            }
        }
        Self { named, tells_upstream: config.tell_upstream }
    }

    /// Removes the headers that name the caller, and sets them anew if the upstream is to know.
    ///
    /// Headers of a trusted proxy are left as they are, unless the program sets them itself.
    pub(crate) fn apply(&self, headers: &mut HeaderMap, user: &User, sender: Sender) {
        match sender {
            Sender::Outsider => remove(headers, |name| self.is_about_identity(name) || is_about_origin(name)),
            Sender::TrustedProxy if !self.tells_upstream => {}
            Sender::TrustedProxy | Sender::Forwarder => remove(headers, |name| self.is_about_identity(name)),
        }
        if self.tells_upstream {
            tell(headers, user);
        }
    }

    /// Looks at hyphens and underscores as the same, since many services do, and would take `X_Remote_User` for the other.
    fn is_about_identity(&self, name: &str) -> bool {
        let is = |known: &str| header_names::matches(name, known);
        (matches!(name.as_bytes().first(), Some(b'x' | b'i'))
            && (NAMES.into_iter().any(is)
                || PREFIXES.into_iter().any(|prefix| header_names::starts_with(name, prefix))))
            || self.named.iter().any(|known| is(known))
    }
}

/// Whether a header is about where a request comes from, as proxies tell each other.
fn is_about_origin(name: &str) -> bool {
    name.starts_with('x')
        && (header_names::starts_with(name, "x-forwarded-") || header_names::matches(name, "x-real-ip"))
}

fn remove(headers: &mut HeaderMap, is_removed: impl Fn(&str) -> bool) {
    // Hardly any request has such headers, and looking for them allocates nothing.
    while let Some(name) = headers.keys().find(|name| is_removed(name.as_str())).cloned() {
        headers.remove(name);
    }
}

fn tell(headers: &mut HeaderMap, user: &User) {
    // Names that are not valid header values do not get this far.
    if let Ok(name) = HeaderValue::from_bytes(user.name.as_bytes()) {
        headers.insert(USER, name);
    }
    for group in user.groups.iter().filter_map(|group| HeaderValue::from_bytes(group.as_bytes()).ok()) {
        headers.append(GROUP, group);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::HeaderIdentity;

    fn sanitizer(tell_upstream: bool) -> HeaderSanitizer {
        let headers = HeaderIdentity {
            user_header: HeaderName::from_static("x-tenant"),
            group_header: HeaderName::from_static("my_plan"),
            ..HeaderIdentity::default()
        };
        let sources = vec![IdentitySource::TrustedHeaders(headers)];
        HeaderSanitizer::new(&IdentityConfig { sources, tell_upstream, ..IdentityConfig::default() })
    }

    fn headers(names: &[&str]) -> HeaderMap {
        names.iter().map(|name| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_static("root"))).collect()
    }

    const FORGED: [&str; 10] = [
        "X-Remote-User",
        "x_remote_user",
        "X-REMOTE_Group",
        "X-Remote-Uid",
        "X-Remote-Extra-Scopes",
        "X_Remote_Extra_a",
        "Impersonate-User",
        "impersonate_extra_b",
        "X_Tenant",
        "My-Plan",
    ];
    const HARMLESS: [&str; 5] = ["accept", "x-remote-users", "x-remote", "impersonated", "x-forwarded"];
    const ORIGIN: [&str; 4] = ["X-Forwarded-For", "x_forwarded_port", "X-Forwarded-Client-Cert", "X_Real-IP"];

    #[test]
    fn what_an_outsider_says_of_itself_is_removed_and_the_rest_stays() {
        let mut all = headers(&FORGED);
        all.extend(headers(&ORIGIN));
        all.extend(headers(&HARMLESS));
        sanitizer(false).apply(&mut all, &User::default(), Sender::Outsider);
        let mut left: Vec<_> = all.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        let mut expected = HARMLESS;
        expected.sort_unstable();
        assert_eq!(left, expected);
    }

    #[test]
    fn what_a_trusted_proxy_says_stays_unless_the_gateway_says_it() {
        let mut all = headers(&FORGED);
        sanitizer(false).apply(&mut all, &User::default(), Sender::TrustedProxy);
        assert_eq!(all, headers(&FORGED));
        let mut origin = headers(&ORIGIN);
        sanitizer(false).apply(&mut origin, &User::default(), Sender::TrustedProxy);
        assert_eq!(origin, headers(&ORIGIN));
        let user = User::new("alice", ["staff", "system:authenticated"]);
        for sender in [Sender::TrustedProxy, Sender::Outsider] {
            let mut all = headers(&FORGED);
            sanitizer(true).apply(&mut all, &user, sender);
            let said = |name| all.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
            assert_eq!((said(USER), said(GROUP)), (vec!["alice"], vec!["staff", "system:authenticated"]));
            assert_eq!(all.keys_len(), 2);
        }
    }

    proptest! {
        /// Whatever the case of its letters, whichever of its hyphens are underscores, however often it comes.
        #[test]
        fn no_header_of_an_outsider_survives_in_any_spelling(
            which in proptest::collection::vec((0..FORGED.len(), any::<u64>(), 1..3_usize), 1..8),
            tells in any::<bool>(),
        ) {
            let mut all = HeaderMap::new();
            for (index, shape, times) in which {
                let spelt: String = FORGED[index].chars().enumerate().map(|(place, letter)| {
                    match (letter, shape >> (place % 64) & 1) {
                        ('-' | '_', 0) => '-',
                        ('-' | '_', _) => '_',
                        (letter, 0) => letter.to_ascii_lowercase(),
                        (letter, _) => letter.to_ascii_uppercase(),
                    }
                }).collect();
                for _ in 0..times {
                    all.append(spelt.parse::<HeaderName>().unwrap(), HeaderValue::from_static("root"));
                }
            }
            sanitizer(tells).apply(&mut all, &User::new("alice", ["staff"]), Sender::Outsider);
            prop_assert!(all.values().all(|value| value != "root"), "{:?}", all);
            prop_assert_eq!(all.len(), if tells { 2 } else { 0 });
        }
    }
}
