//! The life of a server: what it leaves on the disk, what it finds there again, and how it stops.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::pin::pin;
use std::process::Command;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::api::{PostParams, WatchParams};
use kube::config::Kubeconfig;
use kube::{Api, ResourceExt};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};
use tokio_stream::StreamExt;

use super::child;
use super::folder::folder;
use super::kube_rs::schema;
use super::served::{Served, client, run};

#[tokio::test]
async fn a_restart_keeps_token_authority_and_objects() {
    let folder = folder();
    let server = Served::api_apart(folder.path());
    assert_eq!(fs::metadata(server.kubeconfig()).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = || {
        ["admin-token.csv", "ca.crt", "ca.key", "kubeconfig"].map(|name| fs::read(folder.path().join(name)).unwrap())
    };
    let before = kept();
    let api: Api<FlowSchema> = Api::all(server.admin().await);
    let created = api.create(&PostParams::default(), &schema("kept", 600)).await.unwrap();
    let server = server.restart();
    assert_eq!(kept(), before);
    let api: Api<FlowSchema> = Api::all(server.admin().await);
    assert_eq!(api.get("kept").await.unwrap().uid(), created.uid());
}

#[tokio::test]
async fn an_authority_that_is_renewed_is_trusted_by_those_who_have_the_old_one() {
    let folder = folder();
    let server = Served::api_apart(folder.path());
    let before = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    // The same authority as it would be shortly before its end.
    let (authority, key) = (server.file("ca.crt"), fs::read_to_string(server.file("ca.key")).unwrap());
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "evenkeel-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_1970 + Duration::from_secs(24 * 3600);
    let ends_soon = params.self_signed(&KeyPair::from_pem(&key).unwrap()).unwrap().pem();
    fs::write(&authority, &ends_soon).unwrap();
    let server = server.restart();
    assert_ne!(fs::read_to_string(&authority).unwrap(), ends_soon);
    assert_eq!(fs::read_to_string(server.file("ca.key")).unwrap(), key);
    for kubeconfig in [before, Kubeconfig::read_from(server.kubeconfig()).unwrap()] {
        Api::<FlowSchema>::all(client(kubeconfig).await).get("catch-all").await.unwrap();
    }
}

#[tokio::test]
async fn a_second_server_changes_nothing_for_the_first() {
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let names = ["admin-token.csv", "ca.crt", "serving.crt", "serving.key", "kubeconfig"];
    let all = || names.map(|name| fs::read(folder.path().join(name)).unwrap());
    let before = all();
    let data = folder.path().to_str().unwrap();
    let second = child::run(&["serve", "--api-only", "--data-dir", data, "--api-listen", "127.0.0.1:0"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(child::text(&second.stderr).contains("in use"), "{}", child::text(&second.stderr));
    assert_eq!(all(), before);
    Api::<FlowSchema>::all(server.admin().await).get("catch-all").await.unwrap();
}

#[tokio::test]
async fn a_write_that_was_answered_survives_a_crash() {
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let api: Api<FlowSchema> = Api::all(server.admin().await);
    for number in 0..20 {
        api.create(&PostParams::default(), &schema(&format!("kept-{number}"), 600)).await.unwrap();
    }
    // It is killed.
    drop(server);
    let server = Served::api(folder.path(), &[]);
    let api: Api<FlowSchema> = Api::all(server.admin().await);
    for number in 0..20 {
        api.get(&format!("kept-{number}")).await.unwrap();
    }
}

#[tokio::test]
async fn a_signal_stops_it_while_somebody_watches() {
    for signal in ["TERM", "INT"] {
        let folder = folder();
        let mut server = Served::api(folder.path(), &[]);
        let api: Api<FlowSchema> = Api::all(server.admin().await);
        let mut watch = pin!(api.watch(&WatchParams::default(), "0").await.unwrap());
        assert!(watch.next().await.unwrap().is_ok());
        server.process.signal(signal);
        let (status, _) = server.process.end();
        assert_eq!(status.code(), Some(0), "{signal}: {}", server.process.rest());
        // All that is left is the end.
        while watch.next().await.is_some_and(|event| event.is_ok()) {}
    }
}

#[test]
fn curl_talks_to_it_over_both_versions_of_http() {
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    if Command::new("curl").arg("--version").output().is_err() {
        return evenkeel_missing_tool::skip("curl is not installed");
    }
    let url = format!("https://{}/readyz?verbose", server.address);
    for version in ["--http1.1", "--http2"] {
        let mut curl = Command::new("curl");
        curl.args(["-sS", version, "--cacert", server.file("ca.crt").to_str().unwrap(), &url]);
        let ended = run(&mut curl, "");
        assert!(ended.code == Some(0) && ended.output.ends_with("readyz check passed\n"), "{ended:?}");
    }
}
