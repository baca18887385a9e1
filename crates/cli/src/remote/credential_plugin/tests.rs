//! Plugins that do what they should, and plugins that do not. They are scripts that a shell reads: a file that has just been
//! written cannot always be executed at once.

use std::fs;
use std::time::Instant;

use evenkeel_api::decode::parse_yaml;
use tempfile::TempDir;

use super::*;

const V1: &str = "client.authentication.k8s.io/v1";
const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";

/// A folder with a script, which gets its folder and everything of `fields` that its `args` have.
struct Script {
    folder: TempDir,
}

// === impl Script ===

impl Script {
    fn new(script: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("plugin.sh"), script).unwrap();
        Self { folder }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers write literals")]
    fn plugin(&self, version: &str, arguments: &[&str], fields: Value) -> Result<CredentialPlugin> {
        let script = self.folder.path().join("plugin.sh").display().to_string();
        let arguments = [&[&*script], arguments].concat();
        let mut exec = json!({"apiVersion": version, "command": "sh", "args": arguments});
        exec.as_object_mut().unwrap().append(fields.as_object().cloned().as_mut().unwrap());
        plugin(&exec)
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

/// JSON is YAML.
fn plugin(exec: &Value) -> Result<CredentialPlugin> {
    let documents = parse_yaml(exec.to_string().as_bytes()).unwrap();
    let cluster = || Ok(json!({"server": "https://cluster", "config": {"audience": "a"}}));
    CredentialPlugin::read(&documents[0].root, Path::new("/folder/of/kubeconfig"), cluster)
}

fn never() -> Value {
    json!({"interactiveMode": "Never"})
}

async fn fault(script: &str) -> String {
    let plugin = Script::new(script);
    let error = plugin.plugin(V1, &[], never()).unwrap().run(PluginTerminal::Withheld).await.unwrap_err();
    format!("{error:#}").replace("the credential plugin \"sh\" of the kubeconfig", "PLUGIN")
}

#[tokio::test]
async fn a_plugin_is_started_as_kubectl_starts_it() {
    let script = Script::new(
        r#"cd "$(dirname "$0")"
printf '%s' "$KUBERNETES_EXEC_INFO" > info
printf '%s\n' "$@" > arguments
printf '%s' "$AWS_PROFILE" > variable
cat > input
printf '{"apiVersion": "%s", "kind": "ExecCredential", "status": {"token": "k8s-aws-v1.abc", "expirationTimestamp": "2026-11-18T08:00:00Z"}}' "$1"
"#,
    );
    for version in [V1, V1BETA1] {
        let fields = json!({
            "interactiveMode": "Never",
            "env": [{"name": "AWS_PROFILE", "value": "two words"}],
            "provideClusterInfo": version == V1,
        });
        let plugin = script.plugin(version, &[version, "$HOME; `id`", "a b"], fields).unwrap();
        let credential = plugin.run(PluginTerminal::Shared).await.unwrap();
        assert_eq!(credential.token.as_deref(), Some("k8s-aws-v1.abc"));
        assert!(credential.certificate.is_none());
        // 2026-11-18T08:00:00Z; it is renewed a little earlier.
        assert!(!credential.is_expired(1_794_988_789) && credential.is_expired(1_794_988_790));
        assert_eq!(script.file("arguments"), format!("{version}\n$HOME; `id`\na b\n"), "no shell reads them");
        assert_eq!((script.file("variable"), script.file("input")), ("two words".to_owned(), String::new()));
        let info: Value = serde_json::from_str(&script.file("info")).unwrap();
        let mut spec = json!({"interactive": false});
        if version == V1 {
            spec["cluster"] = json!({"server": "https://cluster", "config": {"audience": "a"}});
        }
        assert_eq!(info, json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec}));
    }
}

#[tokio::test]
async fn a_plugin_may_print_a_client_certificate() {
    let status = json!({"clientCertificateData": "CERT", "clientKeyData": "KEY"});
    let printed = json!({"apiVersion": V1, "kind": "ExecCredential", "status": status});
    let script = Script::new(&format!("cat <<'END'\n{printed}\nEND\n"));
    let credential = script.plugin(V1, &[], never()).unwrap().run(PluginTerminal::Withheld).await.unwrap();
    let certificate = credential.certificate.as_ref().unwrap();
    assert_eq!((&*certificate.certificate, &*certificate.key), (&b"CERT"[..], &b"KEY"[..]));
    assert!(credential.token.is_none() && !credential.is_expired(i64::MAX), "without a time, it does not expire");
    assert!(!format!("{credential:?}").contains("KEY"));
}

#[test]
fn whether_a_plugin_may_ask_depends_on_the_terminal() {
    use PluginTerminal::{Shared, Withheld};
    let script = Script::new("");
    let asks = |mode: &str, terminal, is_terminal| {
        let plugin = script.plugin(V1, &[], json!({"interactiveMode": mode})).unwrap();
        plugin.is_interactive(terminal, is_terminal).ok()
    };
    assert_eq!(asks("Never", Shared, true), Some(false));
    assert_eq!([asks("IfAvailable", Shared, true), asks("IfAvailable", Shared, false)], [Some(true), Some(false)]);
    assert_eq!([asks("Always", Shared, true), asks("Always", Shared, false)], [Some(true), None]);
    assert_eq!([asks("IfAvailable", Withheld, true), asks("Always", Withheld, true)], [Some(false), None]);
    // The older version has a default.
    let plugin = script.plugin(V1BETA1, &[], json!({})).unwrap();
    assert_eq!(plugin.interaction, Interaction::IfAvailable);
}

#[test]
fn a_path_begins_from_the_folder_of_the_kubeconfig() {
    let command = |command: &str| {
        let exec =
            json!({"apiVersion": V1BETA1, "command": command, "env": null, "args": null, "futureField": {"a": 1}});
        plugin(&exec).unwrap().command.display().to_string()
    };
    assert_eq!(command("aws"), "aws");
    assert_eq!(command("./bin/aws"), "/folder/of/kubeconfig/./bin/aws");
    assert_eq!(command("/usr/bin/aws"), "/usr/bin/aws");
}

#[test]
fn a_wrong_description_is_refused() {
    for (exec, part) in [
        (json!({"command": "aws"}), "exec: apiVersion \"\" is not supported; update the plugin"),
        (
            json!({"apiVersion": V1, "command": "aws"}),
            "exec: `interactiveMode` is missing, which client.authentication.k8s.io/v1 needs",
        ),
        (json!({"apiVersion": V1, "interactiveMode": "Never"}), "exec: `command` is missing"),
        (json!({"apiVersion": V1, "command": "aws", "interactiveMode": "Maybe"}), "exec: unknown variant `Maybe`"),
        (json!({"apiVersion": V1, "command": "aws", "args": [1]}), "exec: "),
        (json!({"apiVersion": V1, "command": "aws", "env": [{"value": "a"}]}), "exec: missing field `name`"),
    ] {
        let told = plugin(&exec).unwrap_err().to_string();
        assert!(told.contains(part), "{told}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_output_is_told_without_it() {
    let print = |text: String| format!("cat <<'END'\n{text}\nEND\n");
    let printed =
        |status: Value| print(json!({"apiVersion": V1, "kind": "ExecCredential", "status": status}).to_string());
    for (script, part) in [
        (print("secret".to_owned()), "the output of PLUGIN is not an ExecCredential in JSON (line 1, column 1)"),
        (
            print(json!({"apiVersion": V1, "kind": "Secret"}).to_string()),
            "is of the kind \"Secret\"; it must be ExecCredential",
        ),
        (
            print(json!({"apiVersion": V1BETA1, "kind": "ExecCredential"}).to_string()),
            "has the apiVersion \"client.authentication.k8s.io/v1beta1\", while the kubeconfig names client.authentication.k8s.io/v1",
        ),
        (print(json!({"apiVersion": V1, "kind": "ExecCredential"}).to_string()), "has no `status`"),
        (printed(json!({"token": ""})), "has neither a token nor a client certificate"),
        (printed(json!({"clientCertificateData": "secret"})), "has a client certificate without its key"),
        (printed(json!({"clientKeyData": "secret"})), "has the key of a client certificate, but no certificate"),
        (
            printed(json!({"token": "secret", "expirationTimestamp": "soon"})),
            "has a wrong expirationTimestamp: parsing time \"soon\"",
        ),
        ("yes secret".to_owned(), "its output has more than 1048576 bytes"),
    ] {
        let told = fault(&script).await;
        assert!(told.contains(part) && !told.contains("secret"), "{told}");
    }
}

#[tokio::test]
async fn a_plugin_that_fails_is_quoted() {
    let told = fault("echo 'The SSO session has expired.' >&2; printf '\\033[31mlog in again\\n' >&2; exit 3").await;
    let quoted =
        "PLUGIN failed (exit status: 3): The SSO session has expired.; \\u{1b}[31mlog in again; check with `kubectl";
    assert!(told.starts_with(quoted), "{told}");
    // Only the end of many messages.
    let told = fault("yes message | head -n 100000 >&2; exit 1").await;
    assert!(told.len() < 3000 && told.contains("message; message"), "{told}");
}

#[tokio::test]
async fn a_plugin_that_is_not_there_comes_with_advice() {
    let absent = |fields: Value| {
        let mut exec = json!({"apiVersion": V1, "command": "absent-credential-plugin", "interactiveMode": "Never"});
        exec.as_object_mut().unwrap().append(fields.as_object().cloned().as_mut().unwrap());
        plugin(&exec).unwrap()
    };
    let told = absent(json!({})).run(PluginTerminal::Withheld).await.unwrap_err().to_string();
    assert!(
        told.starts_with("cannot run the credential plugin \"absent-credential-plugin\" of the kubeconfig: "),
        "{told}"
    );
    assert!(told.ends_with("; install it, or add its directory to PATH"), "{told}");
    let told = absent(json!({"installHint": "Install it:\n  gcloud components install\n"}));
    let told = told.run(PluginTerminal::Withheld).await.unwrap_err().to_string();
    assert!(told.ends_with("; Install it: gcloud components install"), "{told}");
}

/// Time stands still but for the plugin's limit: nothing else is waited for.
#[tokio::test(start_paused = true)]
async fn a_plugin_that_hangs_is_ended() {
    let began = Instant::now();
    let told = fault("exec sleep 600").await;
    assert_eq!(told, "PLUGIN has not finished within 60s, and was ended");
    assert!(began.elapsed() < TIME_MAX);
}
