//! Who is calling: the sources one after the other, and what the upstream is told.
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use evenkeel::identify::{Identify, Unidentified};
use evenkeel_engine::User;
use evenkeel_gateway::config::{
    AddressIdentity, AnonymousRequests, ApiKeyIdentity, CertificateIdentity, HeaderIdentity, IdentityConfig,
    IdentitySource, SystemNames, TokenIdentity,
};
use evenkeel_gateway::identity::Identification;
use evenkeel_gateway::{ClientCertificate, Peer, Transport};
use http::request::Parts;

fn peer(address: &str) -> Peer {
    Peer { address: format!("{address}:1234").parse().unwrap(), transport: Transport::Plain, certificate: None }
}

fn with_certificate(common_name: &str, organizations: &[&str]) -> Peer {
    let organizations = organizations.iter().map(ToString::to_string).collect();
    let certificate = ClientCertificate { common_name: Some(common_name.to_owned()), organizations, not_after: None };
    let certificate = Arc::new(certificate);
    Peer { transport: Transport::Tls, certificate: Some(certificate), ..peer("192.0.2.1") }
}

fn parts(headers: &[(&str, &str)]) -> Parts {
    let request = headers.iter().fold(http::Request::builder(), |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn open(sources: Vec<IdentitySource>, anonymous: AnonymousRequests) -> Arc<Identification> {
    Identification::open(&IdentityConfig { sources, anonymous, tell_upstream: false, open_paths: Vec::new() }).unwrap()
}

fn name(found: Result<Arc<User>, Unidentified>) -> String {
    found.map_or_else(|error| error.status.to_string(), |user| user.name.to_string())
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn tokens(&self, name: &str, text: &str) -> IdentitySource {
        IdentitySource::Tokens(TokenIdentity { file: self.put(name, text) })
    }

    fn keys(&self, text: &str) -> IdentitySource {
        let header = http::HeaderName::from_static("x-api-key");
        IdentitySource::ApiKey(ApiKeyIdentity { header, file: self.put("keys.csv", text) })
    }
}

fn trusted(addresses: &[&str], certificates: &[&str]) -> HeaderIdentity {
    HeaderIdentity {
        from_addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        from_certificates: certificates.iter().map(ToString::to_string).collect(),
        ..HeaderIdentity::default()
    }
}

fn address() -> IdentitySource {
    IdentitySource::Address(AddressIdentity::default())
}

const ALICE: (&str, &str) = ("x-remote-user", "alice");

#[test]
fn headers_are_believed_from_those_who_are_trusted_and_from_nobody_else() {
    let sources = vec![IdentitySource::TrustedHeaders(trusted(&["10.0.0.0/8"], &["front"])), address()];
    let identification = open(sources, AnonymousRequests::Allow);
    for (peer, expected) in [
        (peer("10.1.2.3"), "alice"),
        (peer("[::ffff:10.1.2.3]"), "alice"),
        (peer("11.1.2.3"), "address:11.1.2.3"),
        (with_certificate("front", &[]), "alice"),
        (with_certificate("back", &["front"]), "address:192.0.2.1"),
    ] {
        let is_trusted = expected == "alice";
        assert_eq!(identification.is_trusted_proxy(&peer), is_trusted, "{peer:?}");
        let identity = identification.of(peer);
        assert_eq!(name(identity.identify(&parts(&[ALICE]))), expected);
        assert_eq!(identity.is_trusted_proxy(), is_trusted);
        let mut headers = parts(&[ALICE, ("X-Remote-Group", "system:masters"), ("accept", "*/*")]).headers;
        identity.sanitize_headers(&mut headers, &User::default());
        assert_eq!(headers.len(), if is_trusted { 3 } else { 1 });
    }
}

#[test]
fn certificates_name_users_but_not_those_of_the_system() {
    let certificate = |system_names| {
        let config =
            CertificateIdentity { user_prefix: "cert:".to_owned(), system_names, ..CertificateIdentity::default() };
        open(vec![IdentitySource::ClientCertificate(config)], AnonymousRequests::Deny)
    };
    let groups = &["staff", "system:masters"];
    let refused = certificate(SystemNames::Refuse).of(with_certificate("alice", groups)).identify(&parts(&[])).unwrap();
    assert_eq!(*refused, User::new("cert:alice", ["staff", "system:authenticated"]));
    let allowed = certificate(SystemNames::Allow).of(with_certificate("alice", groups)).identify(&parts(&[])).unwrap();
    assert_eq!(*allowed, User::new("cert:alice", ["staff", "system:masters", "system:authenticated"]));
    for nobody in [peer("10.1.2.3"), with_certificate("", &["staff"])] {
        assert_eq!(name(certificate(SystemNames::Refuse).of(nobody).identify(&parts(&[]))), "401 Unauthorized");
    }
}

#[test]
fn a_certificate_that_has_expired_is_nobodys() {
    let files = Files::new();
    let sources = vec![
        IdentitySource::TrustedHeaders(trusted(&[], &["alice"])),
        IdentitySource::ClientCertificate(CertificateIdentity::default()),
        files.tokens("a.csv", "t1,bob,1"),
        address(),
    ];
    let identification = open(sources, AnonymousRequests::Allow);
    let hour = Duration::from_secs(3600);
    for (not_after, expected) in [(SystemTime::now() + hour, "alice"), (SystemTime::now() - hour, "401 Unauthorized")] {
        let mut peer = with_certificate("alice", &[]);
        let mut certificate = (**peer.certificate.as_ref().unwrap()).clone();
        certificate.not_after = Some(not_after);
        peer.certificate = Some(Arc::new(certificate));
        let identity = identification.of(peer);
        assert_eq!(name(identity.identify(&parts(&[]))), expected);
        // Neither what it says of others nor another credential on the same connection is believed then.
        let is_expired = expected != "alice";
        let carol = if is_expired { expected } else { "carol" };
        assert_eq!(name(identity.identify(&parts(&[("x-remote-user", "carol")]))), carol);
        let token = identity.identify(&parts(&[("authorization", "Bearer t1")]));
        assert_eq!(token.is_err(), is_expired);
    }
}

#[test]
fn a_certificate_that_is_not_believed_is_never_somebody_else() {
    let files = Files::new();
    let with = |user_prefix: &str| {
        let user_prefix = user_prefix.to_owned();
        IdentitySource::ClientCertificate(CertificateIdentity { user_prefix, ..CertificateIdentity::default() })
    };
    let (tokens, others) = (|| files.tokens("a.csv", "t1,alice,1"), || files.tokens("b.csv", "t2,carol,2"));
    let nameless = Peer { certificate: Some(Arc::default()), ..with_certificate("", &[]) };
    let bearer = &[("authorization", "Bearer t1")] as &[_];
    for (sources, peer, headers, expected) in [
        (vec![with(""), address()], with_certificate("bob", &[]), &[] as &[_], "bob"),
        (vec![with(""), address()], with_certificate("system:admin", &[]), &[], "401 Unauthorized"),
        (vec![with(""), address()], nameless.clone(), &[], "401 Unauthorized"),
        (vec![with("")], nameless.clone(), &[], "401 Unauthorized"),
        (vec![with(""), address()], peer("192.0.2.1"), &[], "address:192.0.2.1"),
        // A credential that a later source would know does not make up for it, but an earlier source decides first.
        (vec![with(""), tokens(), address()], nameless.clone(), bearer, "401 Unauthorized"),
        (vec![tokens(), with(""), address()], nameless.clone(), bearer, "alice"),
        (vec![tokens(), with(""), address()], nameless, &[], "401 Unauthorized"),
        // A token that is wrong is not made up for by a certificate, but a later source may know it.
        (vec![tokens(), with(""), others()], with_certificate("bob", &[]), &[("authorization", "Bearer t2")], "carol"),
        (
            vec![tokens(), with(""), others()],
            with_certificate("bob", &[]),
            &[("authorization", "Bearer t3")],
            "401 Unauthorized",
        ),
        // Another source that reads certificates may know it.
        (vec![with(""), tokens(), with("cert:")], with_certificate("system:admin", &[]), bearer, "cert:system:admin"),
    ] {
        let context = format!("{sources:?} {peer:?} {headers:?}");
        let identity = open(sources, AnonymousRequests::Allow).of(peer);
        assert_eq!(name(identity.identify(&parts(headers))), expected, "{context}");
    }
}

#[test]
fn a_wrong_credential_is_never_somebody_else() {
    let files = Files::new();
    let sources = vec![
        files.keys("k1,robot,1"),
        files.tokens("a.csv", "t1,alice,1"),
        files.tokens("b.csv", "t2,bob,2"),
        address(),
    ];
    let identity = open(sources, AnonymousRequests::Allow).of(peer("10.1.2.3"));
    let bearer = |token| ("authorization", token);
    for (headers, expected) in [
        (&[] as &[_], "address:10.1.2.3"),
        (&[("x-api-key", "k1")], "robot"),
        (&[("x-api-key", "k2")], "401 Unauthorized"),
        (&[("x-api-key", "")], "401 Unauthorized"),
        (&[("x-api-key", "k1"), ("x-api-key", "k1")], "401 Unauthorized"),
        // Another credential that would be right does not make up for it.
        (&[("x-api-key", "k2"), bearer("Bearer t1")], "401 Unauthorized"),
        (&[bearer("Bearer t1")], "alice"),
        // A token that the first file does not know may be in the second.
        (&[bearer("Bearer t2")], "bob"),
        (&[bearer("Bearer t3")], "401 Unauthorized"),
        (&[bearer("Bearer k1")], "401 Unauthorized"),
        (&[bearer("Bearer t1"), bearer("Bearer t2")], "401 Unauthorized"),
        (&[bearer("Basic dDE6")], "address:10.1.2.3"),
        // Spellings that an upstream might accept are not overlooked, be the credential right or wrong.
        (&[bearer("Bearer\tt1")], "401 Unauthorized"),
        (&[bearer("Bearer\tt3")], "401 Unauthorized"),
        (&[bearer("Bearer \tt1")], "alice"),
        (&[("x_api_key", "k1")], "401 Unauthorized"),
        (&[("X_Api_Key", "k2")], "401 Unauthorized"),
        (&[("x-api_key", "k2")], "401 Unauthorized"),
        (&[("x-api-key", "k1"), ("x_api-key", "k1")], "401 Unauthorized"),
        (&[ALICE], "address:10.1.2.3"),
    ] {
        assert_eq!(name(identity.identify(&parts(headers))), expected, "{headers:?}");
    }
}

#[test]
fn those_whom_nobody_knows_are_anonymous_or_refused() {
    let of = |anonymous| name(open(Vec::new(), anonymous).of(peer("10.1.2.3")).identify(&parts(&[])));
    assert_eq!(of(AnonymousRequests::Allow), "system:anonymous");
    assert_eq!(of(AnonymousRequests::Deny), "401 Unauthorized");
}

#[test]
fn the_same_client_is_the_same_user_each_time() {
    let files = Files::new();
    let sources = vec![files.tokens("a.csv", "t1,alice,1"), address()];
    let identity = open(sources, AnonymousRequests::Allow).of(peer("10.1.2.3"));
    for headers in [&[] as &[_], &[("authorization", "Bearer t1")]] {
        let (one, other) = (identity.identify(&parts(headers)).unwrap(), identity.identify(&parts(headers)).unwrap());
        assert!(Arc::ptr_eq(&one, &other));
    }
}

#[test]
fn files_are_read_again_when_they_change_and_bad_ones_are_not_used() {
    let files = Files::new();
    let identity = open(vec![files.tokens("a.csv", "t1,alice,1")], AnonymousRequests::Deny).of(peer("10.1.2.3"));
    let ask = |token: &str| name(identity.identify(&parts(&[("authorization", &format!("Bearer {token}"))])));
    let until = |token: &str, expected: &str| {
        let start = Instant::now();
        while ask(token) != expected {
            assert!(start.elapsed() < Duration::from_secs(4), "{token} is still not {expected}");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    files.put("a.csv", "t2,bob,2");
    until("t2", "bob");
    assert_eq!(ask("t1"), "401 Unauthorized");
    files.put("a.csv", "t3");
    files.put("new.csv", "t4,dora,4");
    fs::rename(files.0.path().join("new.csv"), files.0.path().join("a.csv")).unwrap();
    until("t4", "dora");
}

#[test]
fn files_that_cannot_be_used_are_told_at_the_start_and_secrets_are_not() {
    let files = Files::new();
    let error = |source| {
        let config = IdentityConfig { sources: vec![source], ..IdentityConfig::default() };
        Identification::open(&config).unwrap_err().to_string()
    };
    let found = error(files.tokens("a.csv", "t1,alice,1\nsecret,bob"));
    assert!(found.contains("a.csv:2: there are 2 columns") && !found.contains("secret"), "{found}");
    let missing = IdentitySource::Tokens(TokenIdentity { file: files.0.path().join("none.csv") });
    assert!(error(missing).contains("none.csv: No such file"));
    let folder = IdentitySource::Tokens(TokenIdentity { file: files.0.path().to_owned() });
    assert!(error(folder).contains("it is a folder, not a regular file; name a regular file"));
    let identification = open(vec![files.tokens("b.csv", "secret,alice,1")], AnonymousRequests::Allow);
    assert!(!format!("{identification:?}").contains("secret"), "{identification:?}");
}

fn at(path: &str, headers: &[(&str, &str)]) -> Parts {
    let mut parts = parts(headers);
    parts.uri = path.parse().unwrap();
    parts
}

#[test]
fn open_paths_need_no_credential_and_a_wrong_one_is_ignored_there() {
    let files = Files::new();
    let config = IdentityConfig {
        sources: vec![
            IdentitySource::ClientCertificate(CertificateIdentity::default()),
            files.tokens("a.csv", "t1,alice,1"),
        ],
        anonymous: AnonymousRequests::Deny,
        open_paths: vec!["/healthz".to_owned(), "/public/*".to_owned()],
        ..IdentityConfig::default()
    };
    let identification = Identification::open(&config).unwrap();
    let nobody = "401 Unauthorized";
    let (good, wrong) = (("authorization", "Bearer t1"), ("authorization", "Bearer t2"));
    let identity = identification.of(peer("192.0.2.1"));
    for (path, headers, expected) in [
        ("/healthz", &[] as &[_], "system:anonymous"),
        ("/healthz?verbose", &[], "system:anonymous"),
        ("/public/a", &[], "system:anonymous"),
        ("/healthz", &[wrong], "system:anonymous"),
        ("/healthz", &[good], "alice"),
        ("/", &[], nobody),
        ("/", &[wrong], nobody),
        ("/?x=/healthz", &[], nobody),
        ("/public/../secret", &[], nobody),
        ("/secret", &[good], "alice"),
    ] {
        assert_eq!(name(identity.identify(&at(path, headers))), expected, "{path} {headers:?}");
    }
    // Neither does a certificate that is nobody's, or one that has expired, make a health check fail.
    let mut expired = with_certificate("alice", &[]);
    let not_after = Some(SystemTime::now() - Duration::from_secs(60));
    expired.certificate = Some(Arc::new(ClientCertificate { not_after, ..ClientCertificate::default() }));
    for peer in [with_certificate("", &[]), expired] {
        let identity = identification.of(peer);
        assert_eq!(name(identity.identify(&at("/healthz", &[]))), "system:anonymous");
        assert_eq!(name(identity.identify(&at("/", &[]))), nobody);
    }
}

#[test]
fn behind_trusted_proxies_clients_are_told_apart_by_what_those_say() {
    let files = Files::new();
    let trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    let address = IdentitySource::Address(AddressIdentity { trusted_proxies, ..AddressIdentity::default() });
    let identification = open(vec![files.tokens("a.csv", "t1,alice,1"), address], AnonymousRequests::Allow);
    let forwarded = ("x-forwarded-for", "198.51.100.1, 192.0.2.7, 10.0.0.2");
    for (peer, headers, expected, is_proxy) in [
        (peer("10.0.0.1"), &[forwarded] as &[_], "address:192.0.2.7", true),
        (peer("10.0.0.1"), &[], "address:10.0.0.1", true),
        (peer("[::ffff:10.0.0.1]"), &[forwarded], "address:192.0.2.7", true),
        // Anybody else is known by the connection, whatever is said.
        (peer("203.0.113.9"), &[forwarded], "address:203.0.113.9", false),
        (peer("10.0.0.1"), &[forwarded, ("authorization", "Bearer t1")], "alice", true),
        (peer("10.0.0.1"), &[forwarded, ("authorization", "Bearer t2")], "401 Unauthorized", true),
    ] {
        let identity = identification.of(peer.clone());
        assert_eq!(name(identity.identify(&parts(headers))), expected, "{peer:?} {headers:?}");
        assert_eq!(identity.is_trusted_proxy(), is_proxy, "{peer:?}");
    }
    // It is believed where requests come from, and not who is calling.
    let mut headers = parts(&[forwarded, ALICE, ("impersonate-user", "root")]).headers;
    identification.of(peer("10.0.0.1")).sanitize_headers(&mut headers, &User::default());
    assert_eq!(headers.keys().map(http::HeaderName::as_str).collect::<Vec<_>>(), ["x-forwarded-for"]);
}
