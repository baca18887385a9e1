//! Access to etcd: prefixes, certificates, passwords, and members that do not exist.

use std::path::Path;
use std::time::{Duration, Instant};

use evenkeel_store::{
    At, Error, EtcdConfig, EtcdIdentity, EtcdLogin, EtcdStore, EtcdTls, ListOptions, Store, WatchOptions,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::etcd_server::{EtcdServer, ServerTls};
use crate::patient::{PATIENCE, patient};
use crate::samples::{LEVEL, SCHEMA, json, text};
use crate::until::soon;

#[tokio::test]
async fn keys_are_laid_out_as_kubernetes_does() {
    let server = EtcdServer::start().await;
    let store = EtcdStore::open(&patient([server.endpoint()])).await.unwrap();
    let payload = json(SCHEMA, "probes");
    store.create(SCHEMA, "probes", payload.clone()).await.unwrap();
    store.create(LEVEL, "exempt", text("{}")).await.unwrap();
    let keys = server.etcdctl(&["get", "--prefix", "--keys-only", "/"]).unwrap();
    let keys: Vec<_> = keys.split_whitespace().collect();
    assert_eq!(keys, ["/registry/flowschemas/probes", "/registry/prioritylevelconfigurations/exempt"]);
    let value = server.etcdctl(&["get", "--print-value-only", "/registry/flowschemas/probes"]).unwrap();
    assert_eq!(value.trim_end().as_bytes(), payload);
}

#[tokio::test]
async fn stores_with_different_prefixes_do_not_see_each_other() {
    let server = EtcdServer::start().await;
    let open = async |prefix: &str| {
        let mut config = patient([server.endpoint()]);
        config.prefix = prefix.to_owned();
        EtcdStore::open(&config).await.unwrap()
    };
    let (one, other) = (open("/one").await, open("/one-more").await);
    let start = one.revision().await.unwrap();
    let mut watch = other.watch(WatchOptions::after(start)).await.unwrap();
    one.create(SCHEMA, "a", text("one")).await.unwrap();
    assert_eq!(other.get(SCHEMA, "a", At::Latest).await.unwrap(), None);
    let created = other.create(SCHEMA, "a", text("other")).await.unwrap();
    assert_eq!(soon("an event", watch.next()).await.unwrap().object(), Some(&created));
    // Both see the revisions of the whole etcd.
    assert_eq!(one.revision().await.unwrap(), created.revision);
    let list = one.list(SCHEMA, ListOptions { at: At::Latest, ..ListOptions::default() }).await.unwrap();
    assert_eq!((list.revision, &list.items[0].payload), (created.revision, &text("one")));
}

#[tokio::test]
async fn what_is_no_object_is_passed_over() {
    let server = EtcdServer::start().await;
    for key in ["/registry/flowschemas/a/b", "/registry/pods/a", "/registry/flowschemas/", "/registry/x"] {
        server.etcdctl(&["put", key, "foreign"]).unwrap();
    }
    let store = EtcdStore::open(&patient([server.endpoint()])).await.unwrap();
    let mut watch = store.watch(WatchOptions::after(store.revision().await.unwrap())).await.unwrap();
    server.etcdctl(&["put", "/registry/pods/b", "foreign"]).unwrap();
    let created = store.create(SCHEMA, "a", text("ours")).await.unwrap();
    assert_eq!(soon("an event", watch.next()).await.unwrap().object(), Some(&created));
    for at in [At::Cached, At::Latest] {
        let list = store.list(SCHEMA, ListOptions { at, ..ListOptions::default() }).await.unwrap();
        assert_eq!(list.items, std::slice::from_ref(&created));
    }
}

#[tokio::test]
async fn members_that_are_not_there_are_passed_over() {
    let server = EtcdServer::start().await;
    let nobody = EtcdServer::start().await.endpoint();
    let store = EtcdStore::open(&patient([nobody.clone(), server.endpoint(), nobody])).await.unwrap();
    let created = store.create(SCHEMA, "a", text("one")).await.unwrap();
    assert_eq!(store.get(SCHEMA, "a", At::Cached).await.unwrap(), Some(created));
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_unavailable_before_the_deadline() {
    let mut config = patient([EtcdServer::start().await.endpoint()]);
    config.call_deadline = Duration::from_millis(500);
    let start = Instant::now();
    let error = EtcdStore::open(&config).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30));
}

/// An authority, and certificates that it has signed for the server and for a client.
fn certificates(folder: &Path) -> (ServerTls, EtcdTls) {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let signed = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (certificate, key) = signed("127.0.0.1");
    let server = ServerTls {
        ca: write("ca.pem", &authority.pem()),
        certificate: write("server.pem", &certificate),
        key: write("server.key", &key),
    };
    let (certificate, key) = signed("evenkeel");
    let identity = EtcdIdentity { certificate: certificate.into(), key: key.into() };
    (server, EtcdTls { ca: authority.pem().into(), identity: Some(identity), server_name: None })
}

#[tokio::test]
async fn certificates_are_shown_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (server_tls, tls) = certificates(folder.path());
    let server = EtcdServer::start_with(Some(&server_tls)).await;
    let open = async |tls: Option<EtcdTls>, call_deadline| {
        let config = EtcdConfig { tls, call_deadline, ..patient([server.endpoint()]) };
        EtcdStore::open(&config).await
    };
    let store = open(Some(tls.clone()), PATIENCE).await.unwrap();
    let mut watch = store.watch(WatchOptions::after(store.revision().await.unwrap())).await.unwrap();
    let created = store.create(SCHEMA, "a", text("one")).await.unwrap();
    assert_eq!(soon("an event", watch.next()).await.unwrap().object(), Some(&created));

    // The server goes on reading its own certificates, so those of another authority go elsewhere.
    let (_, stranger) = certificates(tempfile::tempdir().unwrap().path());
    let wrong_name = EtcdTls { server_name: Some("another.example".to_owned()), ..tls.clone() };
    let anonymous = EtcdTls { identity: None, ..tls.clone() };
    for refused in [None, Some(anonymous), Some(stranger), Some(wrong_name)] {
        assert!(matches!(open(refused, Duration::from_millis(500)).await, Err(Error::Unavailable(_))));
    }
    let garbage = EtcdTls { ca: b"no certificate".to_vec(), ..EtcdTls::default() };
    assert!(open(Some(garbage), Duration::from_millis(500)).await.is_err());
    // The server ran all the time.
    open(Some(tls), PATIENCE).await.unwrap();
}

/// Lets in nobody but a user with this name and password.
fn protect(server: &EtcdServer, user: &str, password: &str) {
    for command in [&format!("user add {user}:{password}"), &format!("user grant-role {user} root"), "auth enable"] {
        // The role of the name is made by etcd itself, by some versions only when asked.
        let _ = server.etcdctl(&["role", "add", "root"]);
        server.etcdctl(&command.split(' ').collect::<Vec<_>>()).unwrap();
    }
}

#[tokio::test]
async fn a_token_is_renewed_when_users_change() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "a secret that signs tokens, known to nobody but etcd").unwrap();
    let mut server = EtcdServer::start().await;
    protect(&server, "root", "secret");
    server.restart_with(format!("--auth-token=jwt,sign-method=HS256,ttl=60m,priv-key={}", key.display())).await;
    let mut config = EtcdConfig::new([server.endpoint()]);
    config.login = Some(EtcdLogin { user: "root".to_owned(), password: "secret".to_owned() });
    let store = soon("the store", EtcdStore::open(&config)).await.unwrap();
    let mut watch = store.watch(WatchOptions::after(store.revision().await.unwrap())).await.unwrap();
    for name in ["a", "b"] {
        let created = store.create(SCHEMA, name, text(name)).await.unwrap();
        assert_eq!(soon("an event", watch.next()).await.unwrap().object(), Some(&created));
        assert_eq!(store.get(SCHEMA, name, At::Latest).await.unwrap(), Some(created));
        // The token belongs to a state before this user existed, and etcd no longer accepts it.
        let added = server.etcdctl(&["--user=root:secret", "user", "add", &format!("{name}:secret")]);
        assert!(added.is_some(), "the user is there");
    }
    assert!(store.revision().await.is_ok());
}

#[tokio::test]
async fn passwords_are_used_and_tokens_renewed() {
    let mut server = EtcdServer::start().await;
    protect(&server, "root", "secret");
    let open = async |password: Option<&str>, endpoint: String| {
        let mut config = patient([endpoint]);
        config.login = password.map(|password| EtcdLogin { user: "root".to_owned(), password: password.to_owned() });
        EtcdStore::open(&config).await
    };
    let wrong = open(Some("guess"), server.endpoint()).await.unwrap_err();
    assert!(matches!(wrong, Error::Denied(_)), "{wrong}");
    let none = open(None, server.endpoint()).await.unwrap_err();
    assert!(matches!(none, Error::Denied(_)), "{none}");

    let store = open(Some("secret"), server.endpoint()).await.unwrap();
    let mut watch = store.watch(WatchOptions::after(store.revision().await.unwrap())).await.unwrap();
    let first = store.create(SCHEMA, "a", text("one")).await.unwrap();
    assert_eq!(soon("an event", watch.next()).await.unwrap().object(), Some(&first));
    // A server that starts anew does not know the tokens that it gave before.
    server.restart().await;
    let second = store.create(SCHEMA, "b", text("two")).await.unwrap();
    assert_eq!(soon("an event", watch.next()).await.unwrap().object(), Some(&second));
}
