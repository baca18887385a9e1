//! A cluster: its API server is stood in for by `evenkeel serve --api-only`, which has no service accounts. So there is a `kubectl` that
//! knows a token of one and the keys of its issuer, and leaves everything else to the real one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use super::child::{Running, evenkeel};
use super::issuer::{Issuer, in_an_hour};
use super::page::Page;
use super::session::Session;

const ACCOUNT: &str = "system:serviceaccount:default:default";
const GROUPS: &str = "system:serviceaccounts,system:serviceaccounts:default";

pub(crate) fn start(session: &mut Session, _: &Page) {
    let issuer = Issuer::new("cluster");
    let claims = json!({"iss": "https://kubernetes.default.svc.cluster.local", "sub": ACCOUNT, "exp": in_an_hour()});
    let token = issuer.token(&claims);
    // Beside the reader's folder: these are not the reader's files.
    let cluster = tempfile::TempDir::new().unwrap();
    let file = |name: &str| cluster.path().join(name);
    save(&file("tokens.csv"), &format!("{token},{ACCOUNT},1,\"{GROUPS}\"\n"), 0o600);
    save(&file("token"), &format!("{token}\n"), 0o600);
    save(&file("jwks"), &issuer.key_set(), 0o600);

    let address = format!("{}:6443", session.address());
    let (data, tokens) = (file("data"), file("tokens.csv"));
    let mut server = Running::spawn(
        evenkeel(&["serve", "--api-only", "--api-listen", &address])
            .arg("--data-dir")
            .arg(&data)
            .arg("--token-file")
            .arg(tokens),
    );
    server.output_until("API ready on");

    let real = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.exists()));
    let real = real.expect("kubectl, which `cargo xtask setup` installs");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n'create token default') exec cat {token} ;;\n'get --raw /openid/v1/jwks') exec cat {keys} ;;\nesac\nexec {real} \"$@\"\n",
        token = file("token").display(),
        keys = file("jwks").display(),
        real = real.display(),
    );
    fs::create_dir(session.folder().join("bin")).unwrap();
    save(&session.folder().join("bin/kubectl"), &script, 0o755);
    session.set_variable("KUBECONFIG", data.join("kubeconfig").to_str().unwrap());
    session.keep((server, cluster));
}

fn save(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
