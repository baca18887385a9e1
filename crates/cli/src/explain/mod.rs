//! `evenkeel explain`: where a request goes, why, and how long it would wait.

mod action;
mod audit;
mod curl;
mod gateway;
mod limit;
mod oracle;
mod question;
mod report;
mod shell_words;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use clap::{ArgGroup, Args};
use evenkeel::objects::Objects;
use evenkeel_api::Preset;
use evenkeel_api::bootstrap::{self, KubernetesVersion};
use evenkeel_apiserver::Verb;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_gateway::Config;
use evenkeel_gateway::objects::source;
use evenkeel_gateway::observe::admin::TOKEN_VARIABLE;
use http::{HeaderName, HeaderValue};

use crate::exit::{Exit, WrongUsage};
use crate::object_files::{SourceFile, configuration, standard_input_once};
use crate::remote::cluster::LIMITS;
use crate::remote::{self, Access, ClusterObjects, GATEWAY, Pem, Server, kubeconfig};
use crate::terminal::{ColorChoice, OutputFormat, pretty_json, print, printable_json};
use crate::tool_settings::ToolSettings;
use crate::usage::{concurrency, is_kubectl_plugin};
use action::ResourcePlace;
use oracle::{Oracle, OwnDecisions, Source};
use question::{Question, header, is_target, known_method};

const EXAMPLES: &str = "\
Examples:
  A request to your own service, with your objects:
    evenkeel explain GET /orders --user alice --objects objects.yaml
  With everything that the settings file of a gateway says, also who the sender is:
    evenkeel explain --config evenkeel.yaml --from 10.0.0.7 -- curl -H 'X-API-Key: k1' http://shop.example/orders
  A request to a Kubernetes API, as for `kubectl auth can-i`, or by its URL:
    evenkeel explain list pods -n shop --as system:serviceaccount:shop:web
    evenkeel explain GET /api/v1/pods --user alice --preset kubernetes --objects flowcontrol.yaml
  With the objects of a cluster:
    evenkeel explain list pods -A --as system:serviceaccount:a:b --context production
  With a running gateway, and how long the request would wait now:
    evenkeel explain POST /orders --user alice --live http://127.0.0.1:9901
  Why the limit of a gateway with `concurrency: auto` is what it is:
    evenkeel explain --limit
  A request with a header, from an address:
    evenkeel explain GET /orders --config evenkeel.yaml -H 'X-Plan: gold' --from 10.0.0.7
  A request as curl would send it:
    evenkeel explain -- curl -X DELETE -u alice https://shop.example/orders/7
  A request that a kube-apiserver has recorded:
    tail -n 1 audit.log | evenkeel explain --audit - --objects flowcontrol.yaml";

const SOURCES: &str = "Where the objects are from";
const REQUEST: &str = "The request";

/// Explains where a request goes: the flow schemas that do not match it and why, the one that does, its priority level, flow,
/// queues and seats, and with --live how long it would wait now.
///
/// The decision is made by the same code as in a gateway. With `--config`, everything is as the settings file of a gateway says.
/// Otherwise the preset is `plain`, as that of `serve`; for a verb and a resource, an audit event, the objects of an API server, and as
/// `kubectl evenkeel explain`, it is `kubernetes`.
///
/// Without --objects, --server, --context, --kubeconfig or --live, the objects are those of --config, or of the preset. As `kubectl evenkeel
/// explain`, they are those of kubectl's current context. The mandatory objects are added if they are missing. As in a server, users get the group system:authenticated, and service accounts get their groups.
/// Without --user, the user is system:anonymous, or with --config whoever the gateway would take the sender for.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
#[command(group(ArgGroup::new("remote").args(["server", "live", "limit"])))]
pub(crate) struct Explain {
    /// The method, and the path or URL of the request. Without a method, it is GET. For a Kubernetes API, also a verb and a resource, as for
    /// `kubectl auth can-i`: `list pods`, `get deployments.apps/web`.
    #[arg(value_names = ["METHOD", "URL"], num_args = 0..=2, help_heading = REQUEST)]
    request: Vec<String>,
    /// The user who sends it.
    #[arg(long, visible_alias = "as", value_name = "NAME", help_heading = REQUEST)]
    user: Option<String>,
    /// A group of the user. May be given several times.
    #[arg(long = "group", visible_alias = "as-group", value_name = "NAME", help_heading = REQUEST)]
    groups: Vec<String>,
    /// The namespace of the resource [default: that of the context, or default].
    #[arg(short, long, value_name = "NAME", requires = "request", help_heading = REQUEST)]
    namespace: Option<String>,
    /// The resource in all namespaces.
    #[arg(short = 'A', long, requires = "request", conflicts_with = "namespace", help_heading = REQUEST)]
    all_namespaces: bool,
    /// A subresource of the resource, such as log or status.
    #[arg(long, value_name = "NAME", requires = "request", help_heading = REQUEST)]
    subresource: Option<String>,
    /// A header of the request, as `NAME: VALUE`, for what matches by headers. May be given several times.
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = header, conflicts_with = "audit", help_heading = REQUEST)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The language model that the body of the request names, for routes with `cost: tokens` [default: that of the body of a curl command].
    #[arg(long, value_name = "NAME", conflicts_with = "audit", help_heading = REQUEST)]
    model: Option<String>,
    /// The address that the request comes from, for identities and for what tells clients apart by address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "audit", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), help_heading = REQUEST)]
    from: IpAddr,
    /// Read the request from an audit event in this file, or `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["request", "user", "groups"], help_heading = REQUEST)]
    audit: Option<PathBuf>,
    /// Read the request from a curl command line. X-Remote-User, Impersonate-User and -u name the user.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["request", "audit"], help_heading = REQUEST)]
    curl: Option<String>,
    /// The curl command after `--`, without quotes around it.
    #[arg(last = true, value_name = "CURL", conflicts_with_all = ["request", "audit", "curl"], help_heading = REQUEST)]
    command: Vec<String>,

    /// Files or directories with flow schemas and priority levels, or `-` for standard input.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = SOURCES)]
    objects: Vec<PathBuf>,
    /// The URL of an API server.
    #[arg(long, value_name = "URL", conflicts_with = "objects", help_heading = SOURCES)]
    server: Option<String>,
    /// A bearer token for --server, --live or --limit.
    #[arg(long, value_name = "TOKEN", requires = "remote", help_heading = SOURCES)]
    token: Option<String>,
    /// A file with a bearer token for --server, --live or --limit [default for --live and --limit: the variable `EVENKEEL_ADMIN_TOKEN`].
    #[arg(long, value_name = "FILE", requires = "remote", conflicts_with = "token", help_heading = SOURCES)]
    token_file: Option<PathBuf>,
    /// CA certificates used to verify the server, in PEM [default: the system's].
    #[arg(long, value_name = "FILE", requires = "remote", help_heading = SOURCES)]
    certificate_authority: Option<PathBuf>,
    /// A client certificate for --server, --live or --limit, in PEM.
    #[arg(long, value_name = "FILE", requires = "client_key", help_heading = SOURCES)]
    client_certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    #[arg(long, value_name = "FILE", requires_all = ["remote", "client_certificate"], help_heading = SOURCES)]
    client_key: Option<PathBuf>,
    /// A kubeconfig that names an API server [default: $KUBECONFIG, or ~/.kube/config].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["objects", "server"], help_heading = SOURCES)]
    kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME", conflicts_with_all = ["objects", "server"], help_heading = SOURCES)]
    context: Option<String>,
    /// The URL of a gateway's admin endpoint. The gateway explains the request with its own objects, routes and state.
    #[arg(long, value_name = "URL", conflicts_with_all = ["objects", "server", "kubeconfig", "context", "config", "concurrency"], help_heading = SOURCES)]
    live: Option<String>,

    /// Explain instead why the limit of a gateway is what it is: the limit, its bounds, what it does, and the latest decisions. The URL is that of
    /// the gateway's admin endpoint [default: `http://127.0.0.1:9901`].
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = GATEWAY, conflicts_with_all = ["request", "user", "groups", "audit", "curl", "command", "objects", "kubeconfig", "context", "config", "preset", "kubernetes", "concurrency"])]
    limit: Option<String>,

    /// The settings file of a gateway: its objects, routes, identities, preset and concurrency. Without --user, the user is
    /// whoever the gateway would take the sender for.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How URLs are interpreted and which objects are added: `kubernetes` or `plain`
    /// [default: that of --config, or plain; kubernetes for a cluster, an audit event, or a verb and a resource].
    #[arg(long, value_name = "PRESET", value_parser = Preset::from_str)]
    preset: Option<Preset>,
    /// Whose objects the preset `kubernetes` starts with: a release of Kubernetes [default: the newest known].
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["objects", "server", "kubeconfig", "context", "live"])]
    kubernetes: Option<KubernetesVersion>,
    /// How many seats the server has, or `auto` or `auto:MIN..MAX`: a limit that finds itself, as it starts
    /// [default: as --config says, or auto; 600 with --preset kubernetes].
    #[arg(long, visible_alias = "seats", value_name = "N", value_parser = concurrency)]
    concurrency: Option<Concurrency>,

    /// How the explanation is printed. Several audit events give several JSON documents.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,
    /// When text is coloured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

// === impl Explain ===

impl Explain {
    pub(crate) fn run(&self) -> Result<Exit> {
        // Everything that can go wrong means that the tool could not do its work.
        self.explain().map_err(|error| match error.downcast::<WrongUsage>() {
            Ok(usage) => usage.into(),
            Err(error) => WrongUsage(format!("{error:#}")).into(),
        })
    }

    fn explain(&self) -> Result<Exit> {
        if let Some(url) = &self.limit {
            return self.explain_limit(url);
        }
        standard_input_once(self.audit.iter().chain(&self.objects))?;
        let cluster = self.cluster()?;
        let mut settings = ToolSettings::read(self.config.as_deref())?;
        let preset = settings.choose_preset(self.preset, self.is_about_cluster());
        let namespace = cluster.as_ref().and_then(|access| access.namespace.as_deref());
        let questions = self.questions(preset.preset, namespace)?;
        let runtime = remote::runtime()?;
        let source = runtime.block_on(self.source(&settings, cluster.as_ref()))?;
        let paint = self.color.paint(&io::stdout());
        let mut page = String::new();
        for question in &questions {
            let explanation = runtime.block_on(source.explain(question))?;
            match self.output {
                OutputFormat::Json => page += &pretty_json(&explanation)?,
                OutputFormat::Text => {
                    page += if page.is_empty() { "" } else { "\n" };
                    page += &report::report(question, &explanation, &source.objects, paint);
                }
            }
        }
        print(&page)?;
        if self.live.is_none() && self.output == OutputFormat::Text {
            let first = settings.concurrency(None).first();
            preset
                .tell(self.concurrency.as_ref(), &format!("limits are those of the {first} seats that it starts with"));
        }
        Ok(Exit::Success)
    }

    fn explain_limit(&self, url: &str) -> Result<Exit> {
        let runtime = remote::runtime()?;
        let limits = runtime.block_on(limit::limits(&self.gateway(url)?))?;
        print(match self.output {
            OutputFormat::Json => printable_json(&pretty_json(&limits)?).into_owned(),
            OutputFormat::Text => limits.text(self.color.paint(&io::stdout())),
        })?;
        Ok(Exit::Success)
    }

    /// The requests that are asked about; `namespace` is that of the context.
    fn questions(&self, preset: Preset, namespace: Option<&str>) -> Result<Vec<Question>> {
        let read = match (&self.audit, &self.curl, self.command.as_slice(), self.request.as_slice()) {
            (Some(path), ..) => {
                let SourceFile { name, text, .. } = SourceFile::read_one(path)?;
                let read = audit::read(&String::from_utf8_lossy(&text));
                return read.map_err(|error| WrongUsage(format!("{name}: {error}")).into());
            }
            (None, Some(line), ..) => shell_words::words(line).and_then(|words| curl::read(&words)),
            (None, None, words @ [_, ..], _) => curl::read(words),
            (None, None, [], [verb, resource]) if preset == Preset::Kubernetes && is_about_resource(verb, resource) => {
                action::question(verb, resource, self.place(namespace))
            }
            (None, None, [], [_, url] | [url]) if self.has_place() => Err(format!(
                "--namespace, --all-namespaces and --subresource are for a verb and a resource, such as `list pods`; {url:?} is neither"
            )),
            (None, None, [], [method, url]) => Question::named(Some(method), url),
            (None, None, [], [url]) => Question::named(None, url),
            _ => Err(
                "there is no request to explain; name one, for example `GET /orders`, or see `evenkeel explain --help`"
                    .to_owned(),
            ),
        };
        let mut question = read.map_err(WrongUsage)?;
        question.user = self.user.clone().or(question.user);
        question.groups.extend(self.groups.iter().cloned());
        question.headers.extend(self.headers.iter().cloned());
        question.model = self.model.clone().or(question.model);
        Ok(vec![question])
    }

    fn has_place(&self) -> bool {
        self.namespace.is_some() || self.all_namespaces || self.subresource.is_some()
    }

    fn place<'a>(&'a self, current_namespace: Option<&'a str>) -> ResourcePlace<'a> {
        let (namespace, subresource) = (self.namespace.as_deref(), self.subresource.as_deref());
        ResourcePlace { namespace, is_all_namespaces: self.all_namespaces, subresource, current_namespace }
    }

    async fn source(&self, settings: &ToolSettings, cluster: Option<&Access>) -> Result<Source> {
        if let Some(url) = &self.live {
            let gateway = Box::new(self.gateway(url)?);
            return Ok(Source {
                oracle: Oracle::Live { gateway, from: self.from },
                objects: format!("those of {url}"),
            });
        }
        let config = settings.config();
        let (objects, from) = self.objects(config, cluster).await?;
        let seats = |service: Option<&str>| settings.concurrency_of(service, self.concurrency.as_ref()).first();
        let mut own = OwnDecisions::new(config, seats, &objects)?;
        own.sent_from(self.from);
        if self.config.is_some() {
            own.identify(config, self.user.is_none() && self.audit.is_none())?;
        }
        let objects = match &config.fleet {
            Some(fleet) => format!("{from}; limits are those of all gateways of the fleet {} together", fleet.service),
            None => from,
        };
        Ok(Source { oracle: Oracle::Own(Box::new(own)), objects })
    }

    /// The objects, and where they are from.
    async fn objects(&self, config: &Config, cluster: Option<&Access>) -> Result<(Objects, String)> {
        let preset = config.preset;
        if !self.objects.is_empty() {
            let objects = configuration(&self.objects, preset)?;
            let names: Vec<String> = self.objects.iter().map(|path| path.display().to_string()).collect();
            return Ok((objects.into_iter().collect(), format!("those of {}", names.join(", "))));
        }
        if let Some(access) = cluster {
            let ClusterObjects { url, objects, .. } = ClusterObjects::fetch(access, preset).await?;
            return Ok((objects.into_iter().collect(), format!("those of {url}")));
        }
        let from = match (&config.objects, &self.config, self.kubernetes) {
            (Some(path), ..) => format!("those of {}", path.display()),
            (None, Some(file), _) if config.short_form().is_some() => {
                format!("those of `levels` and `match` in {}", file.display())
            }
            (None, _, Some(version)) if preset == Preset::Kubernetes => {
                let suggested = bootstrap::suggested_by(version).to_objects();
                let objects = bootstrap::mandatory().to_objects().chain(suggested).collect();
                return Ok((objects, format!("those that Kubernetes {version} starts with")));
            }
            (None, ..) => format!("those that the preset {preset} starts with"),
        };
        let objects = source(config).next().await.map_err(|error| WrongUsage(error.to_string()))?;
        Ok((objects, from))
    }

    /// The API server whose objects are used, if there is one.
    fn cluster(&self) -> Result<Option<Access>> {
        if !self.objects.is_empty() || self.live.is_some() {
            return Ok(None);
        }
        if let Some(server) = &self.server {
            return self.access(server).map(Some);
        }
        if self.kubeconfig.is_none() && self.context.is_none() && !self.is_for_current_context() {
            return Ok(None);
        }
        kubeconfig::read(&kubeconfig::paths(self.kubeconfig.as_deref())?, self.context.as_deref()).map(Some)
    }

    /// Whether the request is one to a cluster, if nothing says what kind of server it is about.
    fn is_about_cluster(&self) -> bool {
        let has_cluster = self.server.is_some() || self.kubeconfig.is_some() || self.context.is_some();
        let is_named = matches!(self.request.as_slice(), [verb, resource] if is_about_resource(verb, resource));
        let has_words = is_named || self.has_place() || self.kubernetes.is_some() || self.audit.is_some();
        has_cluster || has_words || is_kubectl_plugin()
    }

    /// Whether kubectl runs this, and nothing says that it is about another server than that of kubectl.
    fn is_for_current_context(&self) -> bool {
        is_kubectl_plugin() && self.config.is_none() && self.preset.is_none_or(Preset::is_kubernetes)
    }

    /// The gateway whose admin endpoint is at this URL.
    fn gateway(&self, url: &str) -> Result<Server> {
        let variable = || std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let mut access = self.access(url)?;
        access.token = access.token.or_else(variable);
        Server::new(&access, LIMITS)
    }

    /// How to ask the server or gateway at this URL.
    fn access(&self, url: &str) -> Result<Access> {
        let token = self.token_file.as_deref().map(kubeconfig::token_of).transpose()?;
        let file = |path: &Option<PathBuf>| path.clone().map(Pem::File);
        Ok(Access {
            server: url.to_owned(),
            token: self.token.clone().or(token),
            ca: file(&self.certificate_authority),
            certificate: file(&self.client_certificate),
            key: file(&self.client_key),
            ..Access::default()
        })
    }
}

/// Whether two words are a verb and a resource. For a service that is not Kubernetes, they are a method and a path.
fn is_about_resource(verb: &str, resource: &str) -> bool {
    if resource.starts_with('/') || resource.contains("://") {
        return false;
    }
    // `deployments.apps/web` looks like a host and a path.
    let is_method = known_method(verb).is_some_and(|method| method == verb);
    Verb::named(verb).is_some() || !is_method && !is_target(resource)
}
