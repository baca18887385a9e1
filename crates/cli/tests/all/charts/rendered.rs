//! What helm and kubectl make of the files in `deploy/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use evenkeel_api::decode::{Node, Value as NodeValue, parse_yaml};
use serde_json::Value;
use tempfile::TempDir;

use crate::child::text;

/// The values files of the chart, `ci/NAME.yaml`.
pub(super) const VALUES: [&str; 5] = ["api-embedded", "api-etcd", "fleet", "gateway", "sidecar"];
/// The folders that `kubectl apply -k` takes.
pub(super) const OVERLAYS: [&str; 5] =
    ["base", "overlays/api-embedded", "overlays/fleet", "overlays/gateway", "overlays/sidecar"];

/// The overlays to which the component for Prometheus can be added.
pub(super) const MONITORED: [&str; 2] = ["overlays/fleet", "overlays/gateway"];

/// The objects of one rendering.
#[derive(Debug)]
pub(super) struct Rendered {
    /// Where they come from.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) objects: Vec<Value>,
}

/// A helm that works.
pub(super) struct Helm {
    program: PathBuf,
}

/// A kubectl that knows components.
pub(super) struct Kustomize;

/// The first version of kubectl that does.
const KUBECTL_MINOR_MIN: u32 = 21;

pub(super) fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

pub(super) fn chart() -> PathBuf {
    deploy("helm/evenkeel")
}

pub(super) fn values_file(name: &str) -> PathBuf {
    chart().join(format!("ci/{name}.yaml"))
}

/// A copy of the chart to change.
pub(super) fn copy_of_chart() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&chart(), folder.path());
    folder
}

/// Copies what is in a folder.
pub(super) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from.join(".")).arg(to).status().unwrap();
    assert!(status.success());
}

/// A program in the environment that `cargo xtask setup` makes.
pub(super) fn installed(program: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-client").join("bin").join(program)
}

/// Everything that is rendered: the chart with each of its values files, each overlay, those with the component for
/// Prometheus, and `deploy/sidecar.yaml`.
pub(super) fn everything() -> Vec<Rendered> {
    let mut all = vec![Rendered::new("deploy/sidecar.yaml", fs::read_to_string(deploy("sidecar.yaml")).unwrap())];
    if let Some(helm) = Helm::find() {
        all.extend(VALUES.map(|values| helm.render(values, &[])));
    }
    if let Some(kustomize) = Kustomize::find() {
        all.extend(OVERLAYS.map(|overlay| kustomize.render(overlay)));
        all.extend(MONITORED.map(|overlay| kustomize.render_monitored(overlay)));
    }
    all
}

// === impl Helm ===

impl Helm {
    pub(super) fn find() -> Option<Self> {
        let works = |program: &PathBuf| {
            let version = Command::new(program).args(["version", "--short"]).output();
            version.is_ok_and(|output| output.stdout.starts_with(b"v3."))
        };
        let program = [installed("helm"), PathBuf::from("helm")].into_iter().find(works);
        if program.is_none() {
            evenkeel_missing_tool::skip("helm 3 is not installed");
        }
        program.map(|program| Self { program })
    }

    /// The chart with a values file and some more values, as `--set` takes them.
    pub(super) fn render(&self, values: &str, more: &[&str]) -> Rendered {
        self.try_render(values, more).unwrap_or_else(|error| panic!("{values} with {more:?}: {error}"))
    }

    /// The same, or what helm says is wrong.
    pub(super) fn try_render(&self, values: &str, more: &[&str]) -> Result<Rendered, String> {
        self.render_chart(&chart(), values, more)
    }

    /// The same for a copy of the chart.
    pub(super) fn render_chart(&self, chart: &Path, values: &str, more: &[&str]) -> Result<Rendered, String> {
        let mut command = Command::new(&self.program);
        command.args(["template", "shop", "--namespace", "demo"]).arg(chart).arg("--values").arg(values_file(values));
        for value in more {
            command.args(["--set", value]);
        }
        let output = command.output().unwrap();
        if !output.status.success() {
            return Err(text(&output.stderr));
        }
        Ok(Rendered::new(&format!("helm {values}"), text(&output.stdout)))
    }

    /// The chart with a fault in one of its templates.
    pub(super) fn render_fault(&self, values: &str, file: &str, right: &str, wrong: &str) -> Rendered {
        let folder = copy_of_chart();
        let path = folder.path().join("templates").join(file);
        let template = fs::read_to_string(&path).unwrap();
        assert!(template.contains(right), "{file} has no {right:?}");
        fs::write(&path, template.replacen(right, wrong, 1)).unwrap();
        let rendered = self.render_chart(folder.path(), values, &[]).unwrap();
        Rendered { name: wrong.to_owned(), ..rendered }
    }

    /// The chart for this version of Kubernetes, or what helm says is wrong.
    pub(super) fn render_for(&self, kubernetes: &str, values: &str, more: &[&str]) -> Result<Rendered, String> {
        let mut arguments = format!("shop deploy/helm/evenkeel --namespace demo --kube-version {kubernetes}.0");
        arguments += &format!(" --values deploy/helm/evenkeel/ci/{values}.yaml");
        for value in more {
            arguments += &format!(" --set '{value}'");
        }
        Ok(Rendered::new(&format!("helm {values} for Kubernetes {kubernetes}"), self.template(&arguments)?))
    }

    /// What is installed by `helm install` with these arguments, as they are typed in the root of the repository.
    pub(super) fn template(&self, arguments: &str) -> Result<String, String> {
        let mut command = Command::new("bash");
        command.arg("-c").arg(format!("\"$0\" template {arguments}")).arg(&self.program);
        let output = command.current_dir(deploy("..")).output().unwrap();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// What `helm lint` says, if it is not content.
    pub(super) fn lint(&self, values: &str) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        let output =
            command.args(["lint", "--strict"]).arg(chart()).arg("--values").arg(values_file(values)).output().unwrap();
        if output.status.success() { Ok(()) } else { Err(text(&output.stdout) + &text(&output.stderr)) }
    }
}

// === impl Kustomize ===

impl Kustomize {
    pub(super) fn find() -> Option<Self> {
        let output = Command::new("kubectl").args(["version", "--client", "--output=json"]).output();
        let minor = output.ok().and_then(|output| {
            let version: Value = serde_json::from_slice(&output.stdout).ok()?;
            let minor = version["clientVersion"]["minor"].as_str()?.trim_end_matches('+').to_owned();
            minor.parse::<u32>().ok()
        });
        if minor.is_none_or(|minor| minor < KUBECTL_MINOR_MIN) {
            evenkeel_missing_tool::skip(&format!("kubectl 1.{KUBECTL_MINOR_MIN} or newer is not installed"));
            return None;
        }
        Some(Self)
    }

    #[expect(clippy::unused_self, reason = "there is one only if kubectl is there")]
    pub(super) fn render(&self, overlay: &str) -> Rendered {
        kustomize(&deploy("kustomize"), overlay)
    }

    /// The overlay with the component for Prometheus, whose lines are comments.
    pub(super) fn render_monitored(&self, overlay: &str) -> Rendered {
        self.render_monitored_with(overlay, "")
    }

    /// The same with more lines at the end of its kustomization.
    #[expect(clippy::unused_self, reason = "there is one only if kubectl is there")]
    pub(super) fn render_monitored_with(&self, overlay: &str, more: &str) -> Rendered {
        let folder = tempfile::tempdir().unwrap();
        copy(&deploy("kustomize"), folder.path());
        let file = folder.path().join(overlay).join("kustomization.yaml");
        let comments = fs::read_to_string(&file).unwrap();
        let lines = comments.replace("# components:", "components:").replace("# - ../../", "- ../../");
        assert_ne!(lines, comments, "{overlay} has no comment that adds the component");
        fs::write(&file, lines + more).unwrap();
        let rendered = kustomize(folder.path(), overlay);
        Rendered { name: format!("{} with monitoring", rendered.name), ..rendered }
    }
}

fn kustomize(folder: &Path, overlay: &str) -> Rendered {
    let output = Command::new("kubectl").arg("kustomize").arg(folder.join(overlay)).output().unwrap();
    assert!(output.status.success(), "{overlay}: {}", text(&output.stderr));
    Rendered::new(&format!("kustomize {overlay}"), text(&output.stdout))
}

// === impl Rendered ===

impl Rendered {
    pub(super) fn new(name: &str, text: String) -> Self {
        let documents = parse_yaml(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let objects = documents.iter().map(|document| json(&document.root)).filter(|object| !object.is_null());
        Self { name: name.to_owned(), objects: objects.collect(), text }
    }

    pub(super) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// The pods' template and what makes pods of it.
    pub(super) fn workload(&self) -> &Value {
        let mut workloads = self.of_kind("Deployment").chain(self.of_kind("StatefulSet"));
        let workload = workloads.next().unwrap_or_else(|| panic!("{}: no workload", self.name));
        assert!(workloads.next().is_none(), "{}: more than one workload", self.name);
        workload
    }

    pub(super) fn template(&self) -> &Value {
        &self.workload()["spec"]["template"]
    }

    /// The container of Evenkeel.
    pub(super) fn container(&self) -> &Value {
        let mut containers = list(&self.template()["spec"]["containers"]).iter();
        containers.find(|container| container["name"] == "evenkeel").unwrap_or_else(|| panic!("{}", self.name))
    }

    /// The files of the `ConfigMap` that this volume is made of, with their texts.
    pub(super) fn files(&self, volume: &str) -> Vec<(&str, &str)> {
        let volumes = list(&self.template()["spec"]["volumes"]).iter();
        let volume = volumes.into_iter().find(|one| one["name"] == volume);
        let Some(name) = volume.and_then(|volume| volume["configMap"]["name"].as_str()) else { return Vec::new() };
        let map = self.of_kind("ConfigMap").find(|map| map["metadata"]["name"] == name);
        let map = map.unwrap_or_else(|| panic!("{}: no ConfigMap {name}", self.name));
        let files = map["data"].as_object().unwrap().iter();
        files.map(|(file, text)| (file.as_str(), text.as_str().unwrap())).collect()
    }
}

/// The items of a list that may be absent.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The values of flags, `--name=value`.
pub(super) fn arguments(container: &Value) -> Vec<&str> {
    list(&container["args"]).iter().map(string).collect()
}

pub(super) fn json(node: &Node) -> Value {
    match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::Bool(value) => Value::Bool(*value),
        NodeValue::Number(number) => serde_json::from_str(number).unwrap(),
        NodeValue::String(text) => Value::String(text.clone()),
        NodeValue::List(items) => items.iter().map(json).collect(),
        NodeValue::Map(members) => members.iter().map(|member| (member.key.clone(), json(&member.value))).collect(),
    }
}
