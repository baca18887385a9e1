//! A gateway with its API under load, a recorded kube-apiserver, and a Prometheus that scrapes both.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;

use super::file;
use super::rules::RULES;
use crate::child::{PATIENCE, Running, address_after, address_apart};

/// A gateway that serves the API too, and the clients that keep it busy until it is dropped.
pub(super) struct Gateway {
    /// Before the folder, so that the process ends first.
    _process: Running,
    pub(super) admin: SocketAddr,
    pub(super) api: SocketAddr,
    folder: TempDir,
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

/// A Prometheus that scrapes every two seconds: a scrape may take as long, which it does on a busy machine.
pub(super) struct Prometheus {
    _process: Running,
    _folder: TempDir,
    address: SocketAddr,
}

const ADMIN_TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// How long the service behind the gateway works on a request.
const SERVICE_TIME: Duration = Duration::from_millis(20);
/// How long clients pause whose requests are rejected.
const PAUSE: Duration = Duration::from_millis(20);

/// A level for each way to be rejected.
const OBJECTS: &str = r#"
{kind: PriorityLevelConfiguration, apiVersion: flowcontrol.apiserver.k8s.io/v1, metadata: {name: web}, spec: {type: Limited,
  limited: {nominalConcurrencyShares: 40, lendablePercent: 50, borrowingLimitPercent: 10,
  limitResponse: {type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 3}}}}}
---
{kind: PriorityLevelConfiguration, apiVersion: flowcontrol.apiserver.k8s.io/v1, metadata: {name: batch}, spec: {type: Limited,
  limited: {nominalConcurrencyShares: 20, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}}
---
{kind: PriorityLevelConfiguration, apiVersion: flowcontrol.apiserver.k8s.io/v1, metadata: {name: streams,
  annotations: {evenkeel.dev/max-long-running: "0"}}, spec: {type: Limited,
  limited: {nominalConcurrencyShares: 20, limitResponse: {type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 3}}}}}
"#;

/// The flow of this schema has a rate, and its requests a cost.
const WITH_RATE: &str = "stranger";

fn schema(name: &str, level: &str) -> String {
    let annotations = if name == WITH_RATE { "evenkeel.dev/rate: 20/s;burst=1, evenkeel.dev/cost: bytes" } else { "" };
    format!(
        "---\n{{kind: FlowSchema, apiVersion: flowcontrol.apiserver.k8s.io/v1, metadata: {{name: {name}, annotations: {{{annotations}}}}}, spec: {{matchingPrecedence: 100, \
         priorityLevelConfiguration: {{name: {level}}}, distinguisherMethod: {{type: ByUser}}, \
         rules: [{{subjects: [{{kind: User, user: {{name: {name}}}}}], nonResourceRules: [{{verbs: ['*'], nonResourceURLs: ['*']}}]}}]}}}}\n"
    )
}

/// Asks for a path: the status, and the body. HTTP/1.0, so that the body is sent as it is.
pub(super) fn fetch(address: SocketAddr, path: &str, headers: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Ok((status, response.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()))
}

/// A server that sends the same to everybody.
fn serve(body: impl Into<Arc<str>>, after: Duration) -> SocketAddr {
    serve_on(TcpListener::bind("127.0.0.1:0").unwrap(), body, after)
}

/// The same, on this socket.
pub(super) fn serve_on(listener: TcpListener, body: impl Into<Arc<str>>, after: Duration) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    let body = body.into();
    let answer = move |mut stream: TcpStream, body: &str| -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        while let Some(Ok(_)) = lines.next() {
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
            thread::sleep(after);
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\r\n{body}"
            )?;
        }
        Ok(())
    };
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let body = Arc::clone(&body);
            // Clients leave when they like.
            thread::spawn(move || answer(stream, &body));
        }
    });
    address
}

/// The metrics that a real kube-apiserver showed.
pub(super) fn recorded() -> String {
    let file = File::open(evenkeel_recorded::golden().join("replay/metrics.txt.gz")).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// Scrapes an API as its administrator, with curl: it has TLS.
pub(super) fn scrape_api(address: SocketAddr, data: &Path) -> String {
    let authorization = format!("Authorization: Bearer {}", api_token(data));
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--header", "Accept: text/plain", "--header", &authorization]);
    let output = curl.arg("--cacert").arg(data.join("ca.crt")).arg(format!("https://{address}/metrics")).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run curl: {error}; `cargo xtask setup` installs it"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn api_token(data: &Path) -> String {
    let tokens = fs::read_to_string(data.join("admin-token.csv")).unwrap();
    tokens.split(',').next().unwrap().to_owned()
}

// === impl Gateway ===

impl Gateway {
    /// Two upstreams, one of which never responds; clients that wait, are rejected for every reason, or are unknown.
    pub(super) fn under_load() -> Self {
        let folder = TempDir::new().unwrap();
        let (service, dead) = (serve("ok", SERVICE_TIME), address_apart());
        let settings = format!(
            "listen: [{{address: 127.0.0.1:0}}]\n\
             admin: {{address: 127.0.0.1:0, tokenFile: admin-token}}\n\
             upstreams: [{{url: http://{service}}}, {{url: http://{dead}:9}}]\n\
             health: {{pause: 100ms, pauseMax: 100ms}}\n\
             concurrency: auto:10..10\n\
             identity: {{sources: [{{trustedHeaders: {{fromAddresses: [127.0.0.0/8]}}}}], anonymous: deny}}\n\
             requests: {{routes: [{{path: /events, longRunning: true}}]}}\n\
             log: {{access: json, accessFile: access.log}}\n"
        );
        let names =
            [("web", "web"), ("batch", "batch"), ("streams", "streams"), ("lost", "gone"), ("stranger", "catch-all")];
        let objects = names.iter().fold(OBJECTS.to_owned(), |objects, (name, level)| objects + &schema(name, level));
        let place = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let token = place("admin-token", ADMIN_TOKEN);
        fs::set_permissions(token, fs::Permissions::from_mode(0o600)).unwrap();
        let (settings, objects) = (place("evenkeel.yaml", &settings), place("objects.yaml", &objects));
        let data = folder.path().join("data");
        let api = ["--api-listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
        let arguments = [&["serve", "--config", &settings, "--objects", &objects][..], &api].concat();
        let mut process = Running::start(&arguments);
        let api = address_after(&process.output_until("API ready on"), "API ready on https://");
        let line = process.line_with("ready: ");
        let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
        let is_over = Arc::<AtomicBool>::default();
        let client = |(target, path, user, pause): (SocketAddr, &'static str, &'static str, Duration)| {
            let is_over = Arc::clone(&is_over);
            let headers = if user.is_empty() { String::new() } else { format!("X-Remote-User: {user}\r\n") };
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    // A response that does not come shows in the metrics, if at all.
                    let _ = fetch(target, path, &headers);
                    thread::sleep(pause);
                }
            })
        };
        let web = std::iter::repeat_n((address, "/", "web", Duration::ZERO), 12);
        let batch = std::iter::repeat_n((address, "/", "batch", PAUSE), 4);
        let others = [
            (address, "/", "stranger", PAUSE),
            (address, "/events", "streams", PAUSE),
            (address, "/", "", PAUSE),
            (admin, "/metrics", "", PAUSE),
        ];
        let clients = web.chain(batch).chain(others).map(client).collect();
        Self { _process: process, admin, api, folder, is_over, clients }
    }

    /// What a scrape of the admin endpoint shows.
    pub(super) fn page(&self) -> String {
        let headers = format!("Accept: text/plain\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n");
        let (status, page) = fetch(self.admin, "/metrics", &headers).unwrap();
        assert_eq!(status, 200);
        page
    }

    /// What a scrape of the API shows.
    pub(super) fn api_page(&self) -> String {
        scrape_api(self.api, &self.data())
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            // It has nothing to say.
            let _ = client.join();
        }
    }
}

// === impl Prometheus ===

impl Prometheus {
    /// Scrapes the gateway as the job `evenkeel`, its API as `evenkeel-api`, and what was recorded as `kube-apiserver`.
    pub(super) fn start(gateway: &Gateway) -> Self {
        let data = gateway.data();
        let authority = data.join("ca.crt").display().to_string();
        let recorded = serve(recorded(), Duration::ZERO);
        Self::scraping(&format!(
            "- {{job_name: evenkeel, authorization: {{credentials: {ADMIN_TOKEN}}}, static_configs: [{{targets: ['{}']}}]}}\n\
             - {{job_name: evenkeel-api, scheme: https, tls_config: {{ca_file: '{authority}'}}, \
                authorization: {{credentials: '{}'}}, static_configs: [{{targets: ['{}']}}]}}\n\
             - {{job_name: kube-apiserver, static_configs: [{{targets: ['{recorded}']}}]}}\n",
            gateway.admin,
            api_token(&data),
            gateway.api,
        ))
    }

    /// Scrapes what these `scrape_configs` say.
    pub(super) fn scraping(jobs: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let address = SocketAddr::from((address_apart(), 9090));
        let rules = file(RULES).display().to_string();
        let config = format!(
            "global: {{scrape_interval: 2s, evaluation_interval: 1s}}\n\
             rule_files: ['{rules}']\n\
             scrape_configs:\n{jobs}"
        );
        let path = folder.path().join("prometheus.yml");
        fs::write(&path, config).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", path.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={address}"));
        let mut process = Running::spawn(&mut command);
        process.line_with("Server is ready to receive web requests");
        Self { _process: process, _folder: folder, address }
    }

    /// What the HTTP API says.
    pub(super) fn ask(&self, path: &str) -> Value {
        let (status, body) = fetch(self.address, path, "").unwrap();
        let answer: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"));
        assert!(status == 200 && answer["status"] == "success", "{path}: {answer}");
        answer["data"].clone()
    }

    /// The series that an expression gives now.
    pub(super) fn query(&self, expression: &str) -> Vec<Value> {
        let mut encoded = String::new();
        for byte in expression.bytes() {
            write!(encoded, "%{byte:02x}").unwrap();
        }
        self.ask(&format!("/api/v1/query?query={encoded}"))["result"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until an expression gives something.
    pub(super) fn wait_for(&self, what: &str, expression: &str) -> Vec<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.query(expression);
            if !found.is_empty() {
                return found;
            }
            assert!(Instant::now() < until, "{what}: nothing comes of {expression}");
            thread::sleep(Duration::from_millis(200));
        }
    }
}
