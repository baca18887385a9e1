//! `evenkeel top`: one frame as text and as JSON, of a recorded kube-apiserver and of a gateway; and the live screen in a
//! terminal, which is given back as it was.

use crate::child;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{str, thread};

use child::{Running, address_after, evenkeel, run, text};
use evenkeel_gateway::observe::frame::{Frame, Level, VERSION};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::terminal::InTerminal;

/// A server with documents of our own.
struct FakeServer {
    address: SocketAddr,
    pages: Arc<Mutex<Pages>>,
}

#[derive(Default)]
struct Pages {
    documents: BTreeMap<String, String>,
    /// The status of all paths that begin with this.
    refused: Option<(&'static str, &'static str)>,
    /// The heads of all requests.
    heads: Vec<String>,
}

const DUMPS: &str = "/debug/api_priority_and_fairness/";
const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/";
const ENTER_SCREEN: &str = "\x1b[?1049h";
const LEAVE_SCREEN: &str = "\x1b[?1049l";

fn recorded(name: &str) -> String {
    let file = File::open(evenkeel_recorded::golden().join(format!("replay/{name}.txt.gz"))).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

// === impl FakeServer ===

impl FakeServer {
    /// With what a kube-apiserver has responded.
    fn kube() -> Self {
        let server = Self::start("127.0.0.1:0");
        let mut pages = server.pages.lock().unwrap();
        pages.documents.insert("/metrics".to_owned(), recorded("metrics"));
        for dump in ["dump_priority_levels", "dump_queues", "dump_requests"] {
            pages.documents.insert(format!("{DUMPS}{dump}"), recorded(dump));
        }
        drop(pages);
        server
    }

    /// With frames that follow each other, one more each time.
    fn gateway(address: &str) -> Self {
        let server = Self::start(address);
        server.pages.lock().unwrap().documents.insert("/debug/frames".to_owned(), String::new());
        server
    }

    fn start(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let pages = Arc::<Mutex<Pages>>::default();
        let shared = Arc::clone(&pages);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let pages = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, &pages));
            }
        });
        Self { address, pages }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn serve(stream: &TcpStream, pages: &Mutex<Pages>) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    loop {
        let request = lines.next()?;
        let headers: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let path = request.split([' ', '?']).nth(1)?.to_owned();
        let (status, body) = {
            let mut pages = pages.lock().unwrap();
            pages.heads.push(format!("{request}\n{}", headers.join("\n")));
            match (pages.refused, pages.documents.get(&path)) {
                (Some((prefix, status)), _) if path.starts_with(prefix) => (status, String::new()),
                (_, Some(body)) => ("200 OK", body.clone()),
                (_, None) => ("404 Not Found", String::new()),
            }
        };
        if path == "/debug/frames" && status == "200 OK" {
            return stream_frames(stream);
        }
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut stream = stream;
        stream.write_all((head + &body).as_bytes()).ok()?;
    }
}

fn stream_frames(mut stream: &TcpStream) -> Option<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n").ok()?;
    for number in 1.. {
        let mut frame = Frame::new(1_763_290_293_000 + number * 1000, 1000);
        let waiting = i64::try_from(number).ok()?;
        frame.levels.push(Level { name: "orders\u{1b}[2J".to_owned(), waiting, ..Level::default() });
        frame.diagnosis.text = format!("frame number {number}");
        let json = serde_json::to_string(&frame).ok()?;
        write!(stream, "event: frame\ndata: {json}\n\n").ok()?;
        thread::sleep(Duration::from_millis(100));
    }
    None
}

#[test]
fn a_recorded_kube_apiserver_as_text() {
    let server = FakeServer::kube();
    let output = run(&["top", "--kube", &server.url(), "--once", "--interval", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    assert!(page.starts_with(&format!("{}\nseats 9 of 30 (30 %) + 15 exempt   waiting 12", server.url())), "{page}");
    for line in ["batch-runner  its own requests  batch", "batch               1        6        0      0  ▪▪▪▪▪▪"]
    {
        assert!(page.lines().any(|found| found.starts_with(line)), "{page}");
    }
}

#[test]
fn frames_of_a_recorded_kube_apiserver_as_json() {
    let server = FakeServer::kube();
    let output = run(&["top", "--kube", &server.url(), "--once", "-o", "json", "--interval", "1"]);
    let frame: Frame = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((frame.version, frame.levels.len(), frame.server.concurrency), (VERSION, 10, 30));
    let batch = frame.level("batch").unwrap();
    assert_eq!((batch.in_use, batch.waiting, batch.flows[0].distinguisher.as_str()), (1, 12, "batch-runner"));
    // One document a line.
    assert_eq!(text(&output.stdout).lines().count(), 1);
}

/// TL-3 and TL-5, for a command that needs a server.
#[test]
fn a_reader_that_has_seen_enough_is_no_error_and_a_full_disk_is_one() {
    let (kube, gateway) = (FakeServer::kube(), FakeServer::gateway("127.0.0.1:0"));
    let (kube, gateway) = (kube.url(), gateway.url());
    for arguments in [
        &["top", "--kube", &kube, "--once", "--interval", "1"][..],
        &["top", "--kube", &kube, "--once", "--interval", "1", "-o", "json"],
        &["top", &gateway, "-o", "json"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = evenkeel(arguments).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{arguments:?}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = evenkeel(arguments).stdout(full).output().unwrap();
        let fault = "evenkeel: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), fault), "{arguments:?}");
    }
}

#[test]
fn a_kube_apiserver_without_dumps() {
    let server = FakeServer::kube();
    server.pages.lock().unwrap().refused = Some((DUMPS, "403 Forbidden"));
    let output = run(&["top", "--kube", &server.url(), "--once", "--interval", "1"]);
    let page = text(&output.stdout);
    assert!(page.contains("workload-low"), "{page}");
    assert!(
        page.contains(
            "Unknown: /debug/api_priority_and_fairness/dump_priority_levels is forbidden (403); grant the user"
        ),
        "{page}"
    );
    assert!(page.contains("Unknown: /debug/api_priority_and_fairness/dump_queues is forbidden (403)"), "{page}");
    // Nobody asks again for what is refused, and with --no-dumps not even once.
    let asked = |server: &FakeServer| {
        let pages = server.pages.lock().unwrap();
        pages.heads.iter().filter(|head| head.contains("dump_requests")).count()
    };
    assert_eq!(asked(&server), 1);
    let server = FakeServer::kube();
    let output = run(&["top", "--kube", &server.url(), "--once", "--no-dumps", "--interval", "1"]);
    assert_eq!((output.status.code(), asked(&server)), (Some(0), 0));
}

#[test]
fn several_kube_apiservers_are_added_up() {
    let servers = [FakeServer::kube(), FakeServer::kube(), FakeServer::kube()];
    let urls = servers.each_ref().map(FakeServer::url);
    let frame = |urls: &[String]| -> Frame {
        let named: Vec<&str> = urls.iter().flat_map(|url| ["--kube", url.as_str()]).collect();
        let output = run(&[&["top", "--once", "-o", "json", "--interval", "1"][..], &named].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (one, three) = (frame(&urls[..1]), frame(&urls));
    assert_eq!(three.server.concurrency, 3 * one.server.concurrency);
    assert_eq!(three.levels.len(), one.levels.len());
    for (level, sum) in one.levels.iter().zip(&three.levels) {
        let figures = |level: &Level| [level.nominal, level.current, level.in_use, level.waiting];
        assert_eq!(figures(sum), figures(level).map(|figure| 3 * figure), "{}", level.name);
        assert_eq!(
            sum.schemas.iter().map(|schema| schema.hits).sum::<u64>(),
            3 * level.schemas.iter().map(|schema| schema.hits).sum::<u64>()
        );
    }
    let page = text(&run(&["top", "--once", "--interval", "1", "--kube", &urls[0], "--kube", &urls[1]]).stdout);
    assert!(page.starts_with(&format!("{} and another\n", urls[0])), "{page}");
}

/// Everything that the tools ask a kube-apiserver for is allowed by the manifest for it, and nothing else is.
#[test]
fn the_manifest_of_permissions_has_what_the_tools_need() {
    let server = FakeServer::kube();
    let objects = evenkeel_api::bootstrap::mandatory();
    let (schemas, levels) = (serde_json::json!(objects.flow_schemas), serde_json::json!(objects.priority_levels));
    for (resource, kind, items) in [
        ("flowschemas", "FlowSchemaList", schemas),
        ("prioritylevelconfigurations", "PriorityLevelConfigurationList", levels),
    ] {
        let list = serde_json::json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind, "items": items});
        server.pages.lock().unwrap().documents.insert(format!("{GROUP}{resource}"), list.to_string());
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let contexts = "{current-context: a, contexts: [{name: a, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'URL'}}]}";
    fs::write(&config, contexts.replace("URL", &server.url())).unwrap();
    let config = ["--kubeconfig", config.to_str().unwrap()];
    for arguments in
        [&["check", "--with-suggested"][..], &["explain", "list", "pods"], &["top", "--once", "--interval", "1"]]
    {
        let output = run(&[arguments, &config].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let mut asked: Vec<String> = server
        .pages
        .lock()
        .unwrap()
        .heads
        .iter()
        .map(|head| {
            let mut words = head.split([' ', '?']);
            assert_eq!(words.next(), Some("GET"));
            words.next().unwrap().to_owned()
        })
        .collect();
    asked.sort_unstable();
    asked.dedup();
    let manifest =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/cluster-reader.yaml")).unwrap();
    let role = &evenkeel_api::decode::parse_yaml(manifest.as_bytes()).unwrap()[0].root;
    let role: Value = serde::Deserialize::deserialize(role).unwrap();
    let texts = |value: &Value| {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(role["rules"][0]["apiGroups"], serde_json::json!(["flowcontrol.apiserver.k8s.io"]));
    assert_eq!(
        (&role["rules"][0]["verbs"], &role["rules"][1]["verbs"]),
        (&serde_json::json!(["get", "list"]), &serde_json::json!(["get"]))
    );
    let resources = texts(&role["rules"][0]["resources"]).into_iter().map(|resource| format!("{GROUP}{resource}"));
    let mut allowed: Vec<String> = resources.chain(texts(&role["rules"][1]["nonResourceURLs"])).collect();
    allowed.sort_unstable();
    assert_eq!(asked, allowed);
}

#[test]
fn tokens_are_sent_only_where_they_belong() {
    let token_of = |arguments: &[&str], server: &FakeServer| {
        evenkeel(&[&["top", "--once", "-o", "json"], arguments].concat())
            .env("EVENKEEL_ADMIN_TOKEN", "from-the-variable")
            .output()
            .unwrap();
        let head = server.pages.lock().unwrap().heads.first().cloned().unwrap_or_default();
        head.lines().find_map(|line| line.strip_prefix("authorization: ").map(ToOwned::to_owned))
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "from-the-file\n").unwrap();
    let file = file.to_str().unwrap();
    let gateway = FakeServer::gateway("127.0.0.1:0");
    assert_eq!(token_of(&[&gateway.url()], &gateway).as_deref(), Some("Bearer from-the-variable"));
    let gateway = FakeServer::gateway("127.0.0.1:0");
    assert_eq!(token_of(&[&gateway.url(), "--token-file", file], &gateway).as_deref(), Some("Bearer from-the-file"));
    // The token of a gateway is nothing for a kube-apiserver.
    let kube = FakeServer::kube();
    assert_eq!(token_of(&["--kube", &kube.url()], &kube), None);
    let kube = FakeServer::kube();
    let config = format!(
        "{{current-context: a, contexts: [{{name: a, context: {{cluster: c, user: u}}}}], \
         clusters: [{{name: c, cluster: {{server: '{}'}}}}], users: [{{name: u, user: {{token: of-the-user}}}}]}}",
        kube.url()
    );
    let path = folder.path().join("config");
    fs::write(&path, config).unwrap();
    assert_eq!(token_of(&["--kubeconfig", path.to_str().unwrap()], &kube).as_deref(), Some("Bearer of-the-user"));
}

#[test]
fn what_goes_wrong_is_said() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = format!("http://{free}");
    let server = FakeServer::start("127.0.0.1:0");
    server.pages.lock().unwrap().documents.insert("/metrics".to_owned(), "up 1\n".to_owned());
    let url = server.url();
    for (arguments, code, part) in [
        (&["--once", &*unreachable][..], 2, "no connection: "),
        (
            &["--once", &*url],
            2,
            "/debug/frames does not exist (404); name the admin endpoint of a gateway, or use --kube",
        ),
        (&["--once", "--kube", &*url], 2, "/metrics has no metrics of flow control"),
        (&["--once", "gateway"], 2, "\"gateway\" is not a URL; it must begin with http:// or https://"),
        (&["--once", &*url, "--kube", &*url], 2, "cannot be used with"),
        (&[&*url], 2, "standard output is not a terminal; use --once"),
    ] {
        let output = run(&[&["top"], arguments].concat());
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn a_running_gateway() {
    let mut gateway = Running::start(&[
        "serve",
        "--upstream",
        "http://127.0.0.1:9",
        "--concurrency",
        "7",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ]);
    let admin = address_after(&gateway.line_with("ready: "), "admin on ");
    let output = run(&["top", &format!("http://{admin}"), "--once", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let frame: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(frame["server"]["concurrency"], 7);
    let page = text(&run(&["top", &format!("http://{admin}"), "--once"]).stdout);
    assert!(page.contains("seats 0 of 7 (0 %)") && page.contains("everyone"), "{page}");
    gateway.insist("TERM");
}

#[test]
fn an_api_server_over_tls_by_its_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["serve", "--api-only", "--api-listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let mut process = Running::start(&arguments);
    let ready = process.output_until("API ready on");
    let url = format!("https://{}", address_after(&ready, "API ready on https://"));
    let kubeconfig = data.join("kubeconfig");
    let kubeconfig = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let output = run(&[&["top", "--once", "-o", "json", "--interval", "1"][..], &kubeconfig].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let frame: Frame = serde_json::from_slice(&output.stdout).unwrap();
    let exempt = frame.level("exempt").unwrap_or_else(|| panic!("{frame:?}"));
    // It sees its own requests.
    assert!(exempt.schemas.iter().any(|schema| schema.hits > 0), "{exempt:?}");
    // Without the authority and the token, nothing is asked.
    let output = run(&["top", "--once", "--kube", &url]);
    assert!(text(&output.stderr).contains(&format!("cannot read from {url}: no TLS")), "{}", text(&output.stderr));
    let ca = data.join("ca.crt");
    let output = run(&["top", "--once", "--kube", &url, "--certificate-authority", ca.to_str().unwrap()]);
    let told = text(&output.stderr);
    assert!(told.contains("/metrics is forbidden (403)"), "{told}");
    let line = process.line_with("path=\"/metrics\"");
    let expected =
        "a request to the API is forbidden user=\"system:anonymous\" method=\"GET\" path=\"/metrics\" reason=\"path\"";
    assert!(line.ends_with(expected), "{line}");
    process.insist("TERM");
}

#[test]
fn a_screen_is_drawn_and_given_back() {
    let server = FakeServer::gateway("127.0.0.1:0");
    let mut top = InTerminal::start(&["top", &server.url()]);
    top.writes(ENTER_SCREEN);
    top.shows("frame number");
    top.shows("live");
    top.types("2");
    top.shows("No flow has held seats");
    top.types("?");
    top.shows("Ctrl-C");
    assert!(!top.output().contains(LEAVE_SCREEN));
    // What is open is closed, and then it ends.
    top.types("xq");
    assert_eq!(top.end(), Some(0));
    top.writes(LEAVE_SCREEN);
    // Neither colour (NO_COLOR is set) nor what the server would have the terminal do.
    let output = top.output();
    assert!(!output.contains("\x1b[38;5;") && !output.contains("orders\x1b"), "{output:?}");
}

#[test]
fn signals_and_ctrl_c_end_the_screen() {
    let server = FakeServer::gateway("127.0.0.1:0");
    for end in ["-TERM", "-INT", "-HUP", "\u{3}"] {
        let mut top = InTerminal::start(&["top", &server.url()]);
        top.shows("frame number");
        if end.starts_with('-') {
            top.signal(end);
        } else {
            top.types(end);
        }
        assert_eq!(top.end(), Some(0), "{end:?}");
        top.writes(LEAVE_SCREEN);
    }
}

#[test]
fn a_server_that_comes_late_is_found() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut top = InTerminal::start(&["top", &format!("http://{free}")]);
    top.shows("no connection");
    let _server = FakeServer::gateway(&free.to_string());
    top.shows("frame number");
    top.types("q");
    assert_eq!(top.end(), Some(0));
}
