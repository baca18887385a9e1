//! Credential plugins of a kubeconfig (`users[].user.exec`): programs that print a token or a client certificate, as those of EKS,
//! GKE and AKS do. They are started as kubectl starts them: directly, without a shell.

mod credential;
#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use evenkeel_api::decode::Node;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::terminal::printable;
pub(crate) use credential::{ClientCertificate, Credential};

/// The variable in which a plugin finds what it is asked for.
const INFO_VARIABLE: &str = "KUBERNETES_EXEC_INFO";
const GROUP: &str = "client.authentication.k8s.io";
const KIND: &str = "ExecCredential";
/// Tokens and certificates are a few kilobytes.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// How much of the messages of a plugin an error quotes.
const MESSAGE_BYTES_MAX: usize = 2000;
/// The time limit of a plugin that asks no questions. Some start an interpreter and send several requests.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The time limit of a plugin that may ask questions: its user looks up a code, or signs in with a browser.
const TIME_MAX_INTERACTIVE: Duration = Duration::from_secs(600);

/// A plugin, and how it is started.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CredentialPlugin {
    version: ProtocolVersion,
    /// A name, which is searched for in `PATH`, or a path.
    command: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    interaction: Interaction,
    /// The kubeconfig's hint on how to get the plugin.
    install_hint: Option<String>,
    /// The facts about the cluster for the plugin.
    cluster: Option<Value>,
}

/// Whether a plugin has the terminal while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PluginTerminal {
    /// The program may ask questions, and its messages are shown as they come.
    Shared,
    /// Something else is shown. Messages of the plugin are in the error if it fails.
    Withheld,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProtocolVersion {
    V1,
    V1Beta1,
}

/// `interactiveMode`: whether a plugin reads from standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Interaction {
    Never,
    IfAvailable,
    Always,
}

/// `exec` as it is written. Unknown fields are allowed: newer versions may add some.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    api_version: Option<String>,
    #[serde(default)]
    command: String,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
    interactive_mode: Option<Interaction>,
    provide_cluster_info: Option<bool>,
    install_hint: Option<String>,
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    #[serde(default)]
    value: String,
}

// === impl CredentialPlugin ===

impl CredentialPlugin {
    /// The plugin that an `exec` describes. A path with a slash begins from the folder of the kubeconfig. `cluster` is called if the
    /// plugin wants to know the cluster.
    pub(super) fn read(exec: &Node, folder: &Path, cluster: impl FnOnce() -> Result<Value>) -> Result<Self> {
        let written = Value::deserialize(exec).map_err(|error| anyhow!("exec: {error}"))?;
        let written: Written = serde_json::from_value(written).map_err(|error| anyhow!("exec: {error}"))?;
        if written.command.is_empty() {
            bail!("exec: `command` is missing");
        }
        let version = ProtocolVersion::named(written.api_version.as_deref().unwrap_or_default())?;
        let interaction = match (written.interactive_mode, version) {
            (Some(interaction), _) => interaction,
            (None, ProtocolVersion::V1Beta1) => Interaction::IfAvailable,
            (None, ProtocolVersion::V1) => {
                bail!("exec: `interactiveMode` is missing, which {version} needs; use Never, IfAvailable or Always")
            }
        };
        let command = PathBuf::from(&written.command);
        let variables = written.env.unwrap_or_default().into_iter().map(|variable| (variable.name, variable.value));
        Ok(Self {
            version,
            command: if written.command.contains('/') { folder.join(command) } else { command },
            arguments: written.args.unwrap_or_default(),
            variables: variables.collect(),
            interaction,
            install_hint: written.install_hint.filter(|hint| !hint.trim().is_empty()),
            cluster: if written.provide_cluster_info == Some(true) { Some(cluster()?) } else { None },
        })
    }

    /// Runs the plugin, and reads the credential that it prints.
    pub(super) async fn run(&self, terminal: PluginTerminal) -> Result<Credential> {
        let is_interactive = self.is_interactive(terminal, io::stdin().is_terminal())?;
        let time_max = if is_interactive { TIME_MAX_INTERACTIVE } else { TIME_MAX };
        let output = timeout(time_max, self.output(terminal, is_interactive)).await;
        let output = output.map_err(|_| anyhow!("{self} has not finished within {time_max:?}, and was ended"))??;
        Credential::parse(&output, self.version).map_err(|fault| anyhow!("the output of {self} {fault}"))
    }

    /// The output of the plugin, which is ended when this future is dropped.
    async fn output(&self, terminal: PluginTerminal, is_interactive: bool) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.command);
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env(INFO_VARIABLE, self.info(is_interactive).to_string());
        command.stdin(if is_interactive { Stdio::inherit() } else { Stdio::null() });
        command.stdout(Stdio::piped());
        let is_shown = terminal == PluginTerminal::Shared;
        command.stderr(if is_shown { Stdio::inherit() } else { Stdio::piped() });
        let mut child = command.kill_on_drop(true).spawn().map_err(|error| self.unavailable(&error))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let printed = async {
            let mut printed = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut printed).await?;
            }
            if printed.len() as u64 > OUTPUT_BYTES_MAX {
                return Err(io::Error::other(format!("its output has more than {OUTPUT_BYTES_MAX} bytes")));
            }
            Ok(printed)
        };
        let message = async {
            match stderr {
                Some(stderr) => last_bytes(stderr).await,
                None => Ok(Vec::new()),
            }
        };
        let ended = tokio::try_join!(printed, message, child.wait());
        let (printed, message, status) = ended.map_err(|error| anyhow!("cannot run {self}: {error}"))?;
        if !status.success() {
            let message = String::from_utf8_lossy(&message);
            let message = match message.trim() {
                "" => String::new(),
                message => format!(": {}", printable(&message.lines().collect::<Vec<_>>().join("; "))),
            };
            bail!("{self} failed ({status}){message}; check with `kubectl get flowschemas` whether kubectl can use it");
        }
        Ok(printed)
    }

    /// Whether the plugin gets standard input, which is a terminal or not.
    fn is_interactive(&self, terminal: PluginTerminal, is_terminal: bool) -> Result<bool> {
        let can_ask = is_terminal && terminal == PluginTerminal::Shared;
        match self.interaction {
            Interaction::Never => Ok(false),
            Interaction::IfAvailable => Ok(can_ask),
            Interaction::Always if can_ask => Ok(true),
            Interaction::Always => bail!(
                "{self} has to ask for something (interactiveMode: Always), and there is no terminal to ask on; sign in from a terminal \
                 first, or name a context whose user has a token with --context"
            ),
        }
    }

    /// The `ExecCredential` that the plugin is asked with.
    fn info(&self, is_interactive: bool) -> Value {
        let mut spec = json!({"interactive": is_interactive});
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
        }
        json!({"apiVersion": self.version.to_string(), "kind": KIND, "spec": spec})
    }

    fn unavailable(&self, error: &io::Error) -> anyhow::Error {
        let advice = match (&self.install_hint, error.kind()) {
            (Some(hint), _) => printable(&hint.lines().map(str::trim).collect::<Vec<_>>().join(" ")).into_owned(),
            (None, io::ErrorKind::NotFound) => "install it, or add its directory to PATH".to_owned(),
            (None, _) => "it must be a program that you may run".to_owned(),
        };
        anyhow!("cannot run {self}: {error}; {advice}")
    }
}

impl std::fmt::Display for CredentialPlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the credential plugin {:?} of the kubeconfig", self.command.display().to_string())
    }
}

/// The end of a stream, which is read to its end.
async fn last_bytes(mut stream: impl AsyncRead + Unpin) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let length = stream.read(&mut piece).await?;
        if length == 0 {
            return Ok(kept);
        }
        kept.extend_from_slice(&piece[..length]);
        let excess = kept.len().saturating_sub(MESSAGE_BYTES_MAX);
        kept.drain(..excess);
    }
}

// === impl ProtocolVersion ===

impl ProtocolVersion {
    fn named(api_version: &str) -> Result<Self> {
        let version = api_version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/'));
        match version {
            Some("v1") => Ok(Self::V1),
            Some("v1beta1") => Ok(Self::V1Beta1),
            _ => bail!(
                "exec: apiVersion {api_version:?} is not supported; update the plugin, and make the kubeconfig again, with \
                 {GROUP}/v1 or v1beta1 (`aws eks update-kubeconfig`, `gcloud container clusters get-credentials`, `kubelogin convert-kubeconfig`)"
            ),
        }
    }
}

impl std::fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let version = match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        };
        write!(f, "{GROUP}/{version}")
    }
}
