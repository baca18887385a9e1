//! A kubeconfig: which server a context means, and how to authenticate there.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use evenkeel_api::decode::{Node, Value, parse_yaml};
use serde::Deserialize;
use serde_json::json;

use super::credential_plugin::CredentialPlugin;

/// An API server, and the credentials for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Access {
    pub(crate) server: String,
    pub(crate) token: Option<String>,
    pub(crate) ca: Option<Pem>,
    pub(crate) certificate: Option<Pem>,
    pub(crate) key: Option<Pem>,
    pub(crate) server_name: Option<String>,
    /// The namespace of the context.
    pub(crate) namespace: Option<String>,
    /// A program that knows the token or the certificate.
    pub(crate) plugin: Option<CredentialPlugin>,
}

/// A certificate or a key: in a file, or as its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pem {
    File(PathBuf),
    Text(Vec<u8>),
}

/// The extension of a cluster that is meant for credential plugins.
const PLUGIN_EXTENSION: &str = "client.authentication.k8s.io/exec";

/// Several files that count as one, and the folders that their paths begin from.
struct Files(Vec<(PathBuf, Node)>);

/// The files that `kubectl` would read: the one that was named, those of `KUBECONFIG`, or `~/.kube/config`.
pub(crate) fn paths(named: Option<&Path>) -> Result<Vec<PathBuf>> {
    if let Some(path) = named {
        return Ok(vec![path.to_owned()]);
    }
    let listed: Vec<PathBuf> =
        std::env::var_os("KUBECONFIG").map(|list| std::env::split_paths(&list).collect()).unwrap_or_default();
    let existing: Vec<PathBuf> = listed.into_iter().filter(|path| path.is_file()).collect();
    if !existing.is_empty() {
        return Ok(existing);
    }
    let home =
        std::env::home_dir().ok_or_else(|| anyhow!("there is no home directory; name a file with --kubeconfig"))?;
    Ok(vec![home.join(".kube/config")])
}

/// The server and credentials of a context, or of the current one.
pub(crate) fn read(paths: &[PathBuf], context: Option<&str>) -> Result<Access> {
    let mut files = Vec::new();
    for path in paths {
        let text = evenkeel_files::read_once(path).map_err(|error| unreadable(path, &error))?;
        let documents = parse_yaml(&text).map_err(|error| anyhow!("{}: {error}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        files.extend(documents.into_iter().map(|document| (folder.clone(), document.root)));
    }
    Files(files).access(context)
}

// === impl Files ===

impl Files {
    fn access(&self, context: Option<&str>) -> Result<Access> {
        let current = || self.0.iter().find_map(|(_, root)| text(root, "current-context"));
        let Some(name) = context.map(ToOwned::to_owned).or_else(current) else {
            bail!("the kubeconfig has no current context; name one with --context")
        };
        let (_, context) = self.entry("contexts", &name, "context")?;
        let named = |field: &str| text(context, field).ok_or_else(|| anyhow!("the context {name:?} has no {field}"));
        let (folder, cluster) = self.entry("clusters", &named("cluster")?, "cluster")?;
        let server =
            text(cluster, "server").ok_or_else(|| anyhow!("the cluster of the context {name:?} has no server"))?;
        if cluster.get("insecure-skip-tls-verify").is_some_and(|node| node.value == Value::Bool(true)) {
            bail!(
                "the cluster of the context {name:?} skips the verification of certificates, which is not supported; \
                   give its authority (certificate-authority)"
            );
        }
        let mut access = Access {
            server,
            server_name: text(cluster, "tls-server-name"),
            namespace: text(context, "namespace"),
            ..Access::default()
        };
        access.ca = pem(folder, cluster, "certificate-authority")?;
        if let Ok(user) = named("user") {
            let (folder, user) = self.entry("users", &user, "user")?;
            if user.get("username").is_some() {
                bail!(
                    "the user of the context {name:?} authenticates by `username`, which API servers do not support any more; \
                     give it a token with `kubectl config set-credentials` (`kubectl create token NAME` prints one)"
                );
            }
            if let Some(provider) = user.get("auth-provider") {
                bail!("the user of the context {name:?} {}", auth_provider_advice(provider));
            }
            if let Some(exec) = user.get("exec") {
                let plugin = CredentialPlugin::read(exec, folder, || cluster_info(cluster, &access));
                access.plugin = Some(
                    plugin.map_err(|error| anyhow!("the user of the context {name:?} cannot be used: {error:#}"))?,
                );
            }
            access.token = match (text(user, "token"), text(user, "tokenFile")) {
                (Some(token), _) => Some(token),
                (None, Some(file)) => Some(token_of(&folder.join(file))?),
                (None, None) => None,
            };
            access.certificate = pem(folder, user, "client-certificate")?;
            access.key = pem(folder, user, "client-key")?;
        }
        Ok(access)
    }

    /// The content of a named entry of a list, and the folder of its file. The first of several counts.
    fn entry(&self, list: &str, name: &str, content: &str) -> Result<(&Path, &Node)> {
        let entries = self.0.iter().filter_map(|(folder, root)| match &root.get(list)?.value {
            Value::List(items) => Some(items.iter().map(move |item| (folder.as_path(), item))),
            _ => None,
        });
        let mut named = entries.flatten().filter(|(_, item)| text(item, "name").as_deref() == Some(name));
        let found = named.find_map(|(folder, item)| Some((folder, item.get(content)?)));
        found.ok_or_else(|| anyhow!("the kubeconfig has no {content} {name:?}"))
    }
}

/// The facts about a cluster for a plugin. The cluster's authority has been read.
fn cluster_info(cluster: &Node, access: &Access) -> Result<serde_json::Value> {
    let mut info = json!({"server": access.server});
    for field in ["tls-server-name", "proxy-url"] {
        if let Some(value) = text(cluster, field) {
            info[field] = value.into();
        }
    }
    let authority = match &access.ca {
        Some(Pem::Text(authority)) => Some(authority.clone()),
        Some(Pem::File(path)) => Some(evenkeel_files::read_once(path).map_err(|error| unreadable(path, &error))?),
        None => None,
    };
    if let Some(authority) = authority {
        info["certificate-authority-data"] = BASE64_STANDARD.encode(authority).into();
    }
    if let Some(Value::List(extensions)) = cluster.get("extensions").map(|extensions| &extensions.value) {
        let of_plugins = extensions.iter().find(|item| text(item, "name").as_deref() == Some(PLUGIN_EXTENSION));
        if let Some(config) = of_plugins.and_then(|item| item.get("extension")) {
            info["config"] = serde_json::Value::deserialize(config)
                .map_err(|error| anyhow!("the extension {PLUGIN_EXTENSION:?} of the cluster: {error}"))?;
        }
    }
    Ok(info)
}

/// The advice on an `auth-provider`, which kubectl does not have since 1.26.
fn auth_provider_advice(provider: &Node) -> String {
    let name = text(provider, "name").unwrap_or_default();
    let advice = match name.as_str() {
        "gcp" => "run `gcloud container clusters get-credentials CLUSTER`, which writes a credential plugin (`exec`)",
        "azure" => "run `kubelogin convert-kubeconfig`, which replaces it by a credential plugin (`exec`)",
        "oidc" => "use a credential plugin (`exec`) such as `kubectl oidc-login`",
        _ => "use a credential plugin (`exec`)",
    };
    format!(
        "authenticates by the auth-provider {name:?}, which kubectl 1.26 has removed; {advice}, or give it a token with `kubectl config set-credentials`"
    )
}

fn text(node: &Node, name: &str) -> Option<String> {
    node.get(name).and_then(Node::as_str).filter(|text| !text.is_empty()).map(ToOwned::to_owned)
}

/// The data of a field, or else its file.
fn pem(folder: &Path, node: &Node, field: &str) -> Result<Option<Pem>> {
    let data = format!("{field}-data");
    match (text(node, &data), text(node, field)) {
        (Some(encoded), _) => {
            let decoded = BASE64_STANDARD.decode(encoded.trim());
            Ok(Some(Pem::Text(decoded.map_err(|error| anyhow!("the kubeconfig: {data}: {error}"))?)))
        }
        (None, Some(path)) => Ok(Some(Pem::File(folder.join(path)))),
        (None, None) => Ok(None),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot read {}: {error}; name a file that exists and is readable", path.display())
}

/// The token in a file.
pub(crate) fn token_of(path: &Path) -> Result<String> {
    let token = evenkeel_files::read_once(path).map_err(|error| unreadable(path, &error))?;
    let token = String::from_utf8(token).map_err(|_| anyhow!("{}: the token is not valid UTF-8", path.display()))?;
    match token.trim() {
        "" => Err(anyhow!("{} is empty; it must have a token", path.display())),
        token => Ok(token.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
apiVersion: v1
kind: Config
current-context: b
clusters:
- {name: one, cluster: {server: 'https://one:6443', certificate-authority-data: cGVt}}
- {name: two, cluster: {server: 'https://two', certificate-authority: ca.pem, tls-server-name: kubernetes}}
- {name: loose, cluster: {server: 'https://three', insecure-skip-tls-verify: true}}
contexts:
- {name: a, context: {cluster: one, user: token}}
- {name: b, context: {cluster: two, user: certificate}}
- {name: c, context: {cluster: two, user: exec}}
- {name: d, context: {cluster: loose, user: token}}
- {name: e, context: {cluster: absent, user: token}}
- {name: f, context: {cluster: two, user: old}}
- {name: g, context: {cluster: two, user: gcp}}
- {name: h, context: {cluster: two, user: password}}
users:
- {name: token, user: {token: secret}}
- {name: certificate, user: {client-certificate: /pki/a.crt, client-key-data: a2V5}}
- {name: exec, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}}}
- {name: old, user: {exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: aws}}}
- {name: gcp, user: {auth-provider: {name: gcp}}}
- {name: password, user: {username: alice, password: secret}}
";

    fn access(context: Option<&str>) -> Result<Access> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, CONFIG).unwrap();
        let mut access = read(&[path], context)?;
        if let Some(Pem::File(path)) = &mut access.ca {
            *path = path.strip_prefix(folder.path()).unwrap().to_owned();
        }
        Ok(access)
    }

    #[test]
    fn contexts_name_a_server_and_a_user() {
        let a = access(Some("a")).unwrap();
        assert_eq!(
            (&*a.server, a.token.as_deref(), a.ca),
            ("https://one:6443", Some("secret"), Some(Pem::Text(b"pem".into())))
        );
        let current = access(None).unwrap();
        assert_eq!((&*current.server, current.server_name.as_deref()), ("https://two", Some("kubernetes")));
        assert_eq!(current.ca, Some(Pem::File("ca.pem".into())), "paths begin from the folder of the file");
        assert_eq!(current.certificate, Some(Pem::File("/pki/a.crt".into())));
        assert_eq!(current.key, Some(Pem::Text(b"key".into())));
        assert!(access(Some("c")).unwrap().plugin.is_some(), "it is run when the server is asked");
    }

    #[test]
    fn what_is_not_supported_or_absent_is_named() {
        for (context, part) in [
            (
                "f",
                "the context \"f\" cannot be used: exec: apiVersion \"client.authentication.k8s.io/v1alpha1\" is not supported; update the plugin",
            ),
            (
                "g",
                "auth-provider \"gcp\", which kubectl 1.26 has removed; run `gcloud container clusters get-credentials",
            ),
            ("h", "authenticates by `username`, which API servers do not support any more"),
            ("d", "skips the verification of certificates"),
            ("e", "the kubeconfig has no cluster \"absent\""),
            ("x", "the kubeconfig has no context \"x\""),
        ] {
            let told = access(Some(context)).unwrap_err().to_string();
            assert!(told.contains(part), "{told}");
        }
        assert!(
            read(&["/absent/config".into()], None).unwrap_err().to_string().starts_with("cannot read /absent/config")
        );
    }
}
