//! The pods of the five values files, started for real: with the rendered arguments, settings and objects, on loopback.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use super::pod::{Pod, Secrets};
use super::rendered::Helm;
use crate::child::{PATIENCE, Running, address_after, text};
use crate::etcd_server::{EtcdServer, ServerTls};
use crate::folder::folder;
use crate::peer::{Upstream, get};

/// What the pages tell the user to do before an installation.
struct User {
    folder: TempDir,
}

const TOKEN: &str = "a-token-that-nobody-guesses";
const LEVEL: &str = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: vip}\n\
                     spec: {type: Limited, limited: {nominalConcurrencyShares: 7, limitResponse: {type: Reject}}}\n";
/// Without the wait in which endpoints are updated.
const AT_ONCE: &str = "drain.noticeSeconds=0";

// === impl User ===

impl User {
    /// Makes the files of the API: `evenkeel serve --api-only --data-dir DIR`, until it is ready.
    fn new() -> Self {
        let folder = folder();
        let arguments = ["serve", "--api-only", "--api-listen", "127.0.0.1:0", "--data-dir"];
        let mut running = Running::start(&[&arguments[..], &[folder.path().to_str().unwrap()]].concat());
        running.output_until("API ready on");
        stop(running);
        Self { folder }
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// The Secrets that the values files name.
    fn secrets(&self) -> Secrets {
        let secret = |files: &[(&str, String)]| -> BTreeMap<String, String> {
            files.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect()
        };
        let own = |name: &'static str| (name, self.file(name));
        let tls = [("tls.crt", self.file("serving.crt")), ("tls.key", self.file("serving.key"))];
        let users = "viewer-token,carol,carol,\"evenkeel:viewers\"\n";
        Secrets::from([
            ("evenkeel-admin".to_owned(), secret(&[("token", TOKEN.to_owned())])),
            ("evenkeel-api".to_owned(), secret(&[own("ca.crt"), own("ca.key"), own("admin-token.csv")])),
            ("evenkeel-api-tokens".to_owned(), secret(&[("tokens.csv", users.to_owned())])),
            ("orders-tls".to_owned(), secret(&tls)),
            ("orders-keys".to_owned(), secret(&[("keys.csv", "key-of-alice,alice,alice\n".to_owned())])),
        ])
    }

    /// An etcd that asks for a client certificate and a password, and the Secrets for it.
    async fn protected_etcd(&self) -> (EtcdServer, Secrets) {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let signed = |names: &[&str]| {
            let key = KeyPair::generate().unwrap();
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
            (certificate.pem(), key.serialize_pem())
        };
        let write = |name: &str, text: &str| {
            let path = self.folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        // The address is for etcdctl; Evenkeel expects the name in the values.
        let (certificate, key) = signed(&["etcd", "127.0.0.1"]);
        let tls = ServerTls {
            ca: write("etcd-ca.crt", &authority.pem()),
            certificate: write("etcd.crt", &certificate),
            key: write("etcd.key", &key),
        };
        let (certificate, key) = signed(&["evenkeel"]);
        let etcd = EtcdServer::start_with(Some(&tls)).await;
        let access = [
            format!("--cacert={}", tls.ca.display()),
            format!("--cert={}", write("client.crt", &certificate).display()),
            format!("--key={}", write("client.key", &key).display()),
        ];
        // The role of the name is made by etcd itself, by some versions only when asked.
        let may_fail = "role add root";
        for command in [
            may_fail,
            "user add root:secret",
            "user grant-role root root",
            "user add evenkeel:password-of-evenkeel",
            "role add evenkeel",
            "role grant-permission evenkeel readwrite --prefix /evenkeel/",
            "user grant-role evenkeel evenkeel",
            "auth enable",
        ] {
            let arguments: Vec<&str> = access.iter().map(String::as_str).chain(command.split(' ')).collect();
            assert!(etcd.etcdctl(&arguments).is_some() || command == may_fail, "{command}");
        }
        let mut secrets = self.secrets();
        let secret = |files: &[(&str, &str)]| -> BTreeMap<String, String> {
            files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let client = secret(&[("ca.crt", &authority.pem()), ("tls.crt", &certificate), ("tls.key", &key)]);
        secrets.insert("etcd-client".to_owned(), client);
        secrets.insert("etcd-password".to_owned(), secret(&[("password", "password-of-evenkeel")]));
        (etcd, secrets)
    }

    /// kubectl with the kubeconfig that was made with the Secret, at the address to which a port is forwarded.
    fn kubectl(&self, address: SocketAddr, arguments: &[&str]) -> Output {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.folder.path().join("kubeconfig")).args(arguments);
        let server = format!("--server=https://127.0.0.1:{}", address.port());
        command.arg(server).env("HOME", self.folder.path()).env_remove("KUBECONFIG").output().unwrap()
    }

    /// Applies a priority level.
    fn apply(&self, address: SocketAddr) {
        let file = self.folder.path().join("vip.yaml");
        fs::write(&file, LEVEL).unwrap();
        let output = self.kubectl(address, &["apply", "--filename", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

fn stop(mut running: Running) {
    running.signal("TERM");
    let (status, _) = running.end();
    assert_eq!(status.code(), Some(0), "{}", running.rest());
}

fn until(what: &str, mut ask: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ask() {
        assert!(start.elapsed() < PATIENCE, "gave up waiting: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The probes and the scrape of a gateway that has started.
fn assert_healthy(pod: &Pod, admin: SocketAddr) {
    for path in ["/livez", "/readyz"] {
        assert_eq!(get(admin, path).0, 200, "{path}");
    }
    assert_eq!(get(admin, "/metrics").0, 401);
    let (status, metrics) = pod.ask(admin, "/metrics");
    assert!(status == 200 && metrics.contains("evenkeel_build_info"), "{metrics}");
}

fn api_address(running: &mut Running) -> SocketAddr {
    address_after(&running.output_until("API ready on"), "API ready on https://")
}

#[test]
fn the_gateway_serves_with_tls_and_api_keys() {
    let Some(helm) = Helm::find() else { return };
    let (user, upstream) = (User::new(), Upstream::start());
    let pod = Pod::new(&helm.render("gateway", &[AT_ONCE]), &user.secrets(), &upstream.url());
    let (running, addresses) = pod.start_gateway();
    assert_healthy(&pod, addresses.admin);
    let url = format!("https://127.0.0.1:{}/hello", addresses.http.port());
    let ca = user.folder.path().join("ca.crt");
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--header", "X-Api-Key: key-of-alice", &url, "--cacert"]).arg(ca);
    match command.output() {
        Ok(output) => assert_eq!(text(&output.stdout), "upstream saw /hello\n", "{}", text(&output.stderr)),
        Err(_) => evenkeel_missing_tool::skip("curl is not installed, and no request was sent"),
    }
    stop(running);
}

#[test]
fn the_sidecar_serves_and_follows_its_config_maps() {
    let Some(helm) = Helm::find() else { return };
    let (user, upstream) = (User::new(), Upstream::start());
    let pod = Pod::new(&helm.render("sidecar", &[AT_ONCE]), &user.secrets(), &upstream.url());
    let (mut running, addresses) = pod.start_gateway();
    assert_healthy(&pod, addresses.admin);
    assert_eq!(get(addresses.http, "/hello"), (200, "upstream saw /hello\n".to_owned()));

    pod.change("/etc/evenkeel/settings", "evenkeel.yaml", |old| old.replace("concurrency: 50", "concurrency: 7"));
    running.line_with("settings reloaded; changed: concurrency");
    assert!(pod.ask(addresses.admin, "/config").1.contains("concurrency: 7\n"));
    pod.change("/etc/evenkeel/objects", "objects.yaml", |old| old.to_owned() + "---\n" + LEVEL);
    let levels = "/debug/api_priority_and_fairness/dump_priority_levels";
    until("the new level", || pod.ask(addresses.admin, levels).1.contains("\nvip,"));
    stop(running);
}

#[test]
fn the_embedded_store_keeps_objects_across_restarts() {
    let Some(helm) = Helm::find() else { return };
    let (user, upstream) = (User::new(), Upstream::start());
    let pod = Pod::new(&helm.render("api-embedded", &[AT_ONCE]), &user.secrets(), &upstream.url());
    let (mut running, addresses) = pod.start_gateway();
    assert_healthy(&pod, addresses.admin);
    assert_eq!(get(addresses.http, "/hello"), (200, "upstream saw /hello\n".to_owned()));
    user.apply(api_address(&mut running));
    stop(running);
    assert!(pod.path("/var/lib/evenkeel/store.redb").is_file());

    let (mut running, _) = pod.start_gateway();
    let output =
        user.kubectl(api_address(&mut running), &["get", "prioritylevelconfiguration", "vip", "--output=name"]);
    assert!(text(&output.stdout).contains("/vip"), "{}", text(&output.stderr));
    stop(running);
}

/// What is applied at the API governs all gateways of the fleet, each of which also serves the API.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fleet_follows_the_api_through_etcd() {
    let Some(helm) = Helm::find() else { return };
    if Command::new("etcd").arg("--version").output().is_err() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (user, upstream) = (User::new(), Upstream::start());
    let (etcd, secrets) = user.protected_etcd().await;
    let members = format!("api.etcd.endpoints={{{}}}", etcd.endpoint());
    let api = Pod::new(&helm.render("api-etcd", &[&members]), &secrets, "");
    let access = [
        "api.etcd.tls.secretName=etcd-client",
        "api.etcd.tls.clientCertificate=true",
        "api.etcd.tls.serverName=etcd",
        "api.etcd.user=evenkeel",
        "api.etcd.passwordSecretName=etcd-password",
    ];
    let fleet = helm.render("fleet", &[&[members.as_str(), AT_ONCE][..], &access[..]].concat());

    let mut api = api.start();
    let api_address = api_address(&mut api);
    for path in ["/livez", "/readyz"] {
        let output = user.kubectl(api_address, &["get", "--raw", path]);
        assert_eq!(text(&output.stdout), "ok", "{}", text(&output.stderr));
    }
    let viewer = ["get", "flowschemas", "--output=name", "--token=viewer-token"];
    assert!(user.kubectl(api_address, &viewer).status.success());

    let pods = [(); 2].map(|()| Pod::new(&fleet, &secrets, &upstream.url()));
    let gateways = pods.each_ref().map(Pod::start_gateway);
    user.apply(api_address);
    for (pod, (_, addresses)) in pods.iter().zip(&gateways) {
        assert_healthy(pod, addresses.admin);
        let levels = "/debug/api_priority_and_fairness/dump_priority_levels";
        until("the new level", || pod.ask(addresses.admin, levels).1.contains("\nvip,"));
    }
    for (mut running, _) in gateways {
        // The same CA and the same token everywhere, so that one kubeconfig is enough.
        let address = self::api_address(&mut running);
        let output = user.kubectl(address, &["get", "prioritylevelconfiguration", "vip", "--output=name"]);
        assert!(text(&output.stdout).contains("/vip"), "{}", text(&output.stderr));
        stop(running);
    }
    stop(api);
}

/// FL-2: with `fleet.enabled`, the pods share the seats of their service, by way of an etcd that asks for a certificate and a password.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pods_of_a_fleet_share_their_seats_by_an_etcd_with_tls_and_a_user() {
    let Some(helm) = Helm::find() else { return };
    if Command::new("etcd").arg("--version").output().is_err() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (user, upstream) = (User::new(), Upstream::start());
    let (etcd, mut secrets) = user.protected_etcd().await;
    let members = format!("fleet.endpoints={{{}}}", etcd.endpoint());
    let rendered = helm
        .render("shared-seats", &[&members, "fleet.tls.serverName=etcd", "upstreams[0].url=http://orders:80", AT_ONCE]);
    let pods = [(); 2].map(|()| Pod::new(&rendered, &secrets, &upstream.url()));
    let gateways = pods.each_ref().map(Pod::start_gateway);
    for (pod, (_, addresses)) in pods.iter().zip(&gateways) {
        until("a pod that has seats", || get(addresses.admin, "/readyz").0 == 200);
        assert_healthy(pod, addresses.admin);
        until("two pods that share 600 seats", || {
            let page = pod.ask(addresses.admin, "/metrics").1;
            let lines = [
                "evenkeel_fleet_instances 2.0",
                "evenkeel_fleet_seats 600.0",
                "evenkeel_fleet_footing{footing=\"grant\"} 1",
            ];
            lines.iter().all(|line| page.lines().any(|found| found == *line))
        });
        assert_eq!(get(addresses.http, "/hello"), (200, "upstream saw /hello\n".to_owned()));
        let (status, page) = pod.ask(addresses.admin, "/readyz?verbose");
        assert!(status == 200 && page.contains("[+]fleet ok: ") && page.contains(" of 600 seats"), "{page}");
    }
    for (running, _) in gateways {
        stop(running);
    }

    // Whom etcd does not let in gets no seats, and says so.
    let password = secrets.get_mut("etcd-password").and_then(|files| files.get_mut("password")).unwrap();
    *password = "another".to_owned();
    let stranger = Pod::new(&rendered, &secrets, &upstream.url());
    let (running, addresses) = stranger.start_gateway();
    until("no seats", || {
        stranger.ask(addresses.admin, "/readyz?verbose").1.contains("the fleet has given it no seats")
    });
    stop(running);
}
