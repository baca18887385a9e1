//! A value in etcd that is no object: the log names it, all others take effect, and it can be deleted.

use std::process::Command;

use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};

use super::etcd_server::EtcdServer;
use super::folder::folder;
use super::gateway::{everybody, schema_governs, serve};
use super::peer::Upstream;

#[tokio::test]
async fn one_unreadable_value_is_named_and_stops_nothing() {
    if Command::new("etcd").arg("--version").output().is_err() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let etcd = EtcdServer::start().await;
    let (upstream, folder) = (Upstream::start(), folder());
    let store = format!("etcd://{}", etcd.endpoint());
    let (mut served, address) = serve(&upstream, folder.path(), &["--store", &store]);
    etcd.etcdctl(&["put", "/registry/flowschemas/bad", "garbage"]).unwrap();
    let line = served.process.line_with("an object does not take effect");
    assert!(line.contains("bad"), "{line}");
    let api: Api<FlowSchema> = Api::all(served.admin().await);
    let manager = PatchParams::apply("test");
    let applied = api.patch("everybody", &manager, &Patch::Apply(everybody("exempt"))).await.unwrap();
    schema_governs(address, &applied.uid().unwrap());
    served.stop();

    // It starts with such a value, too.
    let (mut served, address) = serve(&upstream, folder.path(), &["--store", &store]);
    schema_governs(address, &applied.uid().unwrap());
    let api: Api<FlowSchema> = Api::all(served.admin().await);
    let error = api.list(&ListParams::default()).await.unwrap_err().to_string();
    assert!(error.contains("bad"), "{error}");
    api.delete("bad", &DeleteParams::default()).await.unwrap();
    assert!(api.list(&ListParams::default()).await.is_ok());
    served.process.line_with("resolved: an unreadable object");
}
