//! Who gets in, and how far.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use http::{Method, Request};
use kube::client::Body;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::{Value, json};

use super::child::PATIENCE;
use super::folder::folder;
use super::served::Served;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const EXEMPT: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt";

/// The status of the answer, and its body.
async fn ask(client: &kube::Client, method: Method, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

async fn status(client: &kube::Client, method: Method, path: &str) -> u16 {
    ask(client, method, path, &[]).await.0
}

#[tokio::test]
async fn nobody_and_liars_are_told_apart() {
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let nobody = server.user(json!({})).await;
    let (code, body) = ask(&nobody, Method::GET, SCHEMAS, &[]).await;
    let message = "flowschemas.flowcontrol.apiserver.k8s.io is forbidden: User \"system:anonymous\" cannot list resource \
                   \"flowschemas\" in API group \"flowcontrol.apiserver.k8s.io\" at the cluster scope";
    assert_eq!((code, &body["message"]), (403, &json!(message)));
    assert_eq!(status(&nobody, Method::GET, "/livez").await, 200);
    let liar = server.user(json!({"token": "made-up"})).await;
    let (code, body) = ask(&liar, Method::GET, SCHEMAS, &[]).await;
    assert_eq!((code, &body["message"]), (401, &json!("Unauthorized")));
}

#[tokio::test]
async fn a_viewer_reads_and_the_token_file_is_read_again() {
    let folder = folder();
    let tokens = folder.path().join("tokens.csv");
    write_tokens(&tokens, "first,vera,1,\"evenkeel:viewers\"\nother,nobody,2,\"\"\n");
    let server = Served::api(&folder.path().join("data"), &["--token-file", tokens.to_str().unwrap()]);
    let viewer = server.user(json!({"token": "first"})).await;
    assert_eq!(status(&viewer, Method::GET, SCHEMAS).await, 200);
    assert_eq!(status(&viewer, Method::DELETE, EXEMPT).await, 403);
    let nobody = server.user(json!({"token": "other"})).await;
    assert_eq!(status(&nobody, Method::GET, SCHEMAS).await, 403);
    write_tokens(&tokens, "second,vera,1,\"evenkeel:viewers\"\n");
    let renewed = server.user(json!({"token": "second"})).await;
    let until = Instant::now() + PATIENCE;
    while status(&renewed, Method::GET, SCHEMAS).await != 200 {
        assert!(Instant::now() < until, "the file is not read again");
    }
    assert_eq!(status(&viewer, Method::GET, SCHEMAS).await, 401);
    assert_eq!(status(&server.admin().await, Method::GET, SCHEMAS).await, 200);
}

fn write_tokens(path: &Path, lines: &str) {
    let new = path.with_extension("new");
    fs::write(&new, lines).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(new, path).unwrap();
}

#[tokio::test]
async fn client_certificates_of_the_authority_are_believed() {
    let folder = folder();
    let server = Served::api(folder.path(), &[]);
    let authority = fs::read_to_string(server.file("ca.crt")).unwrap();
    let key = KeyPair::from_pem(&fs::read_to_string(server.file("ca.key")).unwrap()).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "evenkeel-ca");
    assert!(authority.contains("BEGIN CERTIFICATE"));
    let issuer = Issuer::new(params, key);
    for (organization, expected) in [("system:masters", [200, 200]), ("evenkeel:viewers", [200, 403])] {
        let client = server.user(certificate(folder.path(), organization, &issuer)).await;
        let delete = format!("{EXEMPT}?dryRun=All");
        let codes = [status(&client, Method::GET, SCHEMAS).await, status(&client, Method::DELETE, &delete).await];
        assert_eq!(codes, expected, "{organization}");
    }
    let stranger = Issuer::new(CertificateParams::default(), KeyPair::generate().unwrap());
    let client = server.user(certificate(folder.path(), "system:masters", &stranger)).await;
    let request = Request::builder().uri(SCHEMAS).body(Body::empty()).unwrap();
    assert!(client.send(request).await.is_err(), "a certificate of a stranger must not get through");
}

/// A certificate of somebody in that group, as a kubeconfig names it.
fn certificate(folder: &Path, organization: &str, issuer: &Issuer<'_, KeyPair>) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "carol");
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let (certificate_path, key_path) = (folder.join("client.crt"), folder.join("client.key"));
    fs::write(&certificate_path, certificate.pem()).unwrap();
    fs::write(&key_path, key.serialize_pem()).unwrap();
    json!({"client-certificate": certificate_path, "client-key": key_path})
}

#[tokio::test]
async fn the_administrator_may_act_as_somebody_else_and_a_viewer_may_not() {
    let folder = folder();
    let tokens = folder.path().join("tokens.csv");
    write_tokens(&tokens, "first,vera,1,\"evenkeel:viewers\"\n");
    let server = Served::api(&folder.path().join("data"), &["--token-file", tokens.to_str().unwrap()]);
    let as_viewer = [("Impersonate-User", "victor"), ("Impersonate-Group", "evenkeel:viewers")];
    let admin = server.admin().await;
    assert_eq!(ask(&admin, Method::GET, SCHEMAS, &as_viewer).await.0, 200);
    let (code, body) = ask(&admin, Method::DELETE, EXEMPT, &as_viewer).await;
    assert!(code == 403 && body["message"].as_str().unwrap().contains("User \"victor\" cannot delete"), "{body}");
    let viewer = server.user(json!({"token": "first"})).await;
    let (code, body) = ask(&viewer, Method::GET, SCHEMAS, &[("Impersonate-User", "root")]).await;
    assert!(
        code == 403 && body["message"].as_str().unwrap().contains("cannot impersonate resource \"users\""),
        "{body}"
    );
}

#[tokio::test]
async fn the_certificate_is_for_the_names_that_were_given() {
    let folder = folder();
    let names = ["--api-name", "gateway.example", "--api-name", "192.0.2.7"];
    let server = Served::api_on("0.0.0.0:0", folder.path(), &names);
    for name in ["gateway.example", "192.0.2.7", "localhost"] {
        assert_eq!(status(&server.admin_at(name).await, Method::GET, SCHEMAS).await, 200, "{name}");
    }
    let stranger = server.admin_at("other.example").await;
    let request = Request::get(SCHEMAS).body(Body::empty()).unwrap();
    assert!(stranger.send(request).await.is_err());
}
