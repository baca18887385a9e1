//! The dashboard in a real browser, under load: what it shows, how it is used with a keyboard, what it asks for, and that nothing
//! in it jumps.
//!
//! Pictures are kept in `target/browser`. `cargo xtask browser` runs this with an optimised build, and is strict about the time
//! until the page is usable.

use crate::browser::{Browser, text};
use crate::child::{PATIENCE, Running, address_after};

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

const OBJECTS: &str = include_str!("../../src/demo/tenants.yaml");

const SETTINGS: &str = "\
concurrency: 4
identity: {sources: [{trustedHeaders: {fromAddresses: [127.0.0.0/8], userHeader: x-tenant}}]}
";

/// How long the service works on a request.
const SERVICE: Duration = Duration::from_millis(20);
/// The connections of each tenant. The greedy one has more than may run and wait together.
const TENANTS: [(&str, usize); 3] = [("greedy", 16), ("polite-1", 2), ("polite-2", 2)];

/// Notes whatever moves by itself, and what the content security policy forbids.
const WATCH: &str = r#"
    window.shifts = [];
    const name = (node) => node && (node.id || node.className || node.nodeName);
    new PerformanceObserver((list) => {
      for (const shift of list.getEntries()) {
        if (!shift.hadRecentInput) shifts.push(`${shift.value.toFixed(5)} ${shift.sources.map((one) => name(one.node))}`);
      }
    }).observe({ type: "layout-shift", buffered: true });
    document.addEventListener("securitypolicyviolation", (event) => console.error(`forbidden: ${event.blockedURI}`));
"#;

/// Widths and colours, each for a picture.
const LOOKS: [(u32, &str); 4] = [(1280, "light"), (1280, "dark"), (400, "light"), (1600, "dark")];

/// A service that works on each request for a while, and its clients, for as long as the test runs.
fn start_service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || respond(&stream));
        }
    });
    address
}

fn respond(stream: &TcpStream) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines().map_while(Result::ok);
    loop {
        lines.by_ref().find(String::is_empty)?;
        thread::sleep(SERVICE);
        (&*stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}

fn start_clients(gateway: SocketAddr) {
    for (tenant, connections) in TENANTS {
        for _ in 0..connections {
            thread::spawn(move || while send_all(gateway, tenant).is_none() {});
        }
    }
}

/// Sends requests until the connection ends. `None` is the end; a gateway that is gone is the end of the client.
fn send_all(gateway: SocketAddr, tenant: &str) -> Option<()> {
    let Ok(mut stream) = TcpStream::connect(gateway) else { return Some(()) };
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        write!(stream, "GET /orders HTTP/1.1\r\nHost: test\r\nX-Tenant: {tenant}\r\n\r\n").ok()?;
        let (mut line, mut length, mut is_rejected) = (String::new(), 0, false);
        while line != "\r\n" {
            line.clear();
            (reader.read_line(&mut line).ok()? > 0).then_some(())?;
            is_rejected |= line.starts_with("HTTP/1.1 429");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        reader.read_exact(&mut vec![0; length]).ok()?;
        if is_rejected {
            thread::sleep(SERVICE);
        }
    }
}

/// A gateway under load, and its objects.
struct Loaded {
    _gateway: Running,
    folder: TempDir,
    url: String,
}

impl Loaded {
    fn start(settings_text: &str) -> Self {
        Self::start_with(settings_text, OBJECTS)
    }

    fn start_with(settings_text: &str, objects_text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let [settings, objects] = ["settings.yaml", "objects"].map(|name| folder.path().join(name));
        fs::write(&settings, settings_text).unwrap();
        fs::create_dir(&objects).unwrap();
        fs::write(objects.join("tenants.yaml"), objects_text).unwrap();
        fs::write(folder.path().join("new.yaml"), OBJECTS).unwrap();
        let upstream = format!("http://{}", start_service());
        let [settings, objects] = [&settings, &objects].map(|path| path.to_str().unwrap());
        let ports = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-filter"];
        let filter = "info,evenkeel_gateway::observe::log::rejections=off";
        let rest = [filter, "--upstream", &upstream, "--config", settings, "--objects", objects];
        let mut gateway = Running::start(&[&ports[..], &rest[..]].concat());
        let line = gateway.line_with("ready: ");
        start_clients(address_after(&line, "listening on "));
        let url = format!("http://{}/", address_after(&line, "admin on "));
        Self { _gateway: gateway, folder, url }
    }

    /// Lets fewer requests wait.
    fn edit_objects(&self) {
        let objects = self.folder.path().join("objects");
        let (unseen, file) = (objects.join(".tenants.yaml"), objects.join("tenants.yaml"));
        fs::write(&unseen, OBJECTS.replace("queueLengthLimit: 10", "queueLengthLimit: 9")).unwrap();
        fs::rename(unseen, file).unwrap();
    }
}

/// Where pictures are kept: beside what cargo builds.
fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("browser")
}

/// The page has been drawn, and nothing has gone wrong in it.
fn check_page(browser: &mut Browser, url: &str, width: u32) {
    let [shown, room] = ["scrollWidth", "clientWidth"]
        .map(|of| browser.value(&format!("document.documentElement.{of}")).as_u64().unwrap());
    assert!(shown <= room, "at {width} pixels, the page is {shown} wide");
    assert_eq!(browser.value("shifts"), json!([]), "at {width} pixels, something moves");
    let report = browser.report();
    assert_eq!(report.faults, Vec::<String>::new());
    let elsewhere: BTreeSet<_> = report.requests.iter().filter(|asked| !asked.starts_with(url)).collect();
    // The icon is part of the page.
    assert!(elsewhere.iter().all(|asked| *asked == "data:,"), "{elsewhere:?}");
}

/// Everything that can be used or that is a picture has a name, for those who do not see it.
fn check_names(browser: &mut Browser) {
    const NAMED: [&str; 7] = ["button", "combobox", "image", "link", "region", "textbox", "columnheader"];
    let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
    let role = |node: &Value| text(&node["role"]["value"]);
    let nodes: Vec<_> = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] != true).collect();
    let nameless =
        nodes.iter().filter(|node| NAMED.contains(&role(node).as_str()) && text(&node["name"]["value"]).is_empty());
    assert_eq!(nameless.collect::<Vec<_>>(), Vec::<&&Value>::new());
    let roles: BTreeSet<_> = nodes.iter().map(|node| role(node)).collect();
    assert!(NAMED.iter().all(|role| roles.contains(*role)), "{roles:?}");
}

const USABLE: &str = "Boolean(document.documentElement?.dataset.usableMs)";

#[test]
fn the_dashboard_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        return evenkeel_missing_tool::skip("Chromium is not installed");
    };
    let loaded = Loaded::start(SETTINGS);
    let url = loaded.url.as_str();
    browser.prepare(WATCH);

    // From the first frame on, while the load begins.
    browser.open(url, 1280, "light");
    browser.wait_for(USABLE);
    let says = |id: &str, part: &str| format!("document.getElementById({id:?}).textContent.includes({part:?})");
    for (id, part) in [
        ("sentence", "limited as intended"),
        ("sentence", "the others are fine: greedy has "),
        ("level-rows", "tenants"),
        ("level-rows", "queue-full"),
        ("flow-rows", "greedy"),
        ("matrix", "waits ↓ behind →greedy"),
        ("schema-rows", "never hit"),
        ("upstream-rows", "serving"),
        ("live-text", "live, "),
    ] {
        browser.wait_for(&says(id, part));
    }
    browser.wait_for("document.querySelector('#chart path.area').getBBox().width > 5");
    browser.wait_for("document.getElementById('limit').hidden");
    check_page(&mut browser, url, 1280);
    check_names(&mut browser);

    // With a keyboard: a level is chosen and left again.
    let pressed = "document.activeElement.getAttribute('aria-pressed')";
    browser.value(
        "[...document.querySelectorAll('#level-rows button')].find((one) => one.textContent === 'tenants').focus()",
    );
    browser.press("Enter");
    browser.wait_for(&format!("{pressed} === 'true' && document.getElementById('chart-level').value === 'tenants'"));
    // Frames come, and the focus stays.
    browser.value("window.shown = document.getElementById('live-text').textContent");
    browser.wait_for("document.getElementById('live-text').textContent !== shown");
    browser.press("Escape");
    browser.wait_for(&format!("{pressed} === 'false' && document.getElementById('chart-level').value === ''"));
    browser.value("document.querySelector('#explain [name=user]').focus()");
    browser.value("document.activeElement.value = 'somebody'");
    browser.press("Enter");
    browser.wait_for(&says("explained", "somebody"));

    loaded.edit_objects();
    browser.wait_for(&says("events", "the objects changed: level tenants edited"));
    check_page(&mut browser, url, 1280);

    let mut fastest = u64::MAX;
    for (width, scheme) in LOOKS {
        browser.open(url, width, scheme);
        browser.wait_for(USABLE);
        let usable = text(&browser.value("document.documentElement.dataset.usableMs"));
        fastest = fastest.min(usable.parse().unwrap());
        // A second frame, in which nothing has moved.
        browser.value("window.shown = document.getElementById('live-text').textContent");
        browser.wait_for("document.getElementById('live-text').textContent !== shown");
        check_page(&mut browser, url, width);
        browser.picture(&pictures().join(format!("{scheme}-{width}.png")));
    }
    println!("the dashboard is usable after {fastest} ms, bar: at most 300 with an optimised build");
    if let Ok(bar) = env::var("EVENKEEL_USABLE_MS_MAX") {
        assert!(fastest <= bar.parse().unwrap(), "the page is usable after {fastest} ms, which is more than {bar}");
    }
}

/// AL-7: the limit as a line, and the reason where somebody points.
#[test]
fn the_limit_that_finds_itself_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        return evenkeel_missing_tool::skip("Chromium is not installed");
    };
    // So few seats that requests wait all the time, also on a busy machine: nothing is tried while nobody waits (AL-2).
    let loaded = Loaded::start(&SETTINGS.replace("concurrency: 4", "concurrency: auto:1..4"));
    let url = loaded.url.as_str();
    browser.prepare(WATCH);
    browser.open(url, 1280, "light");
    browser.wait_for(USABLE);
    for shown in [
        "!document.getElementById('limit').hidden",
        "document.querySelector('#limit-chart path.current').getBBox().width > 5",
        "/ of [0-9]+ to 4; ./.test(document.getElementById('limit-now').textContent)",
        "/^[0-9:]+ UTC: ./.test(document.getElementById('limit-why').textContent)",
    ] {
        browser.wait_for(shown);
    }
    // Pointed at the right edge, it tells the limit of that time, and what was decided last before it.
    browser.value(
        "{ const chart = document.getElementById('limit-chart'); const { right, top } = chart.getBoundingClientRect(); \
         chart.dispatchEvent(new PointerEvent('pointermove', { clientX: right - 20, clientY: top + 20 })); }",
    );
    browser.wait_for("/ seats; [0-9:]+ UTC ./.test(document.getElementById('limit-why').textContent)");
    check_page(&mut browser, url, 1280);
    check_names(&mut browser);
    browser.picture(&pictures().join("limit-light-1280.png"));
}

/// SH-3: what would be under a shadow, beside a canary and clients with rates.
#[test]
fn sh_3_the_shadow_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        return evenkeel_missing_tool::skip("Chromium is not installed");
    };
    let new = "{objects: new.yaml, concurrency: 2, percent: 25, returnIf: {rejectedPercent: 100}}";
    let settings = format!("{SETTINGS}shadow: {new}\n");
    let schema = "  name: tenants\nspec:\n  priorityLevelConfiguration";
    let with_rate = schema.replacen('\n', "\n  annotations: {evenkeel.dev/rate: 10/s}\n", 1);
    assert!(OBJECTS.contains(schema));
    let loaded = Loaded::start_with(&settings, &OBJECTS.replace(schema, &with_rate));
    let url = loaded.url.as_str();
    browser.prepare(WATCH);
    browser.open(url, 1280, "light");
    browser.wait_for(USABLE);
    browser.wait_for("!document.getElementById('shadow').hidden");
    for (id, part) in [
        ("shadow-summary", "Under the new configuration "),
        ("shadow-canary", "The canary has 25 % of the flows and 2 seats: "),
        ("shadow-caveat", "Service times are those of reality"),
        ("shadow-rows", "greedy"),
        ("rate-rows", "10/s"),
    ] {
        browser.wait_for(&format!("document.getElementById({id:?}).textContent.includes({part:?})"));
    }
    check_page(&mut browser, url, 1280);
    check_names(&mut browser);
    for (width, scheme) in LOOKS {
        browser.open(url, width, scheme);
        browser.wait_for(
            "!document.getElementById('shadow')?.hidden && document.getElementById('shadow-rows')?.children.length > 2",
        );
        check_page(&mut browser, url, width);
        browser.picture(&pictures().join(format!("shadow-{scheme}-{width}.png")));
    }
}

/// By name.
const MODELS: [&str; 3] = ["llama3:8b", "meta-llama/Llama-3.1-70B", "qwen-72b"];

/// A stream of tokens of this model. `None` if the gateway is gone.
fn ask_model(gateway: SocketAddr, model: &str) -> Option<()> {
    let mut stream = TcpStream::connect(gateway).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let body =
        json!({"model": model, "stream": true, "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]});
    let body = body.to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nConnection: close";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    io::copy(&mut stream, &mut io::sink()).ok().map(drop)
}

/// LM-8: what each language model does, while it does it.
#[test]
fn lm_8_language_models_in_a_browser() {
    let Some(mut browser) = Browser::start() else {
        return evenkeel_missing_tool::skip("Chromium is not installed");
    };
    let mut models = Running::start(&["demo", "--llm-server", "127.0.0.1:0"]);
    let upstream = format!("http://{}", address_after(&models.output_until("is at"), "is at http://"));
    let ports = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--upstream", &upstream];
    let mut gateway = Running::start(&[&ports[..], &["--preset", "llm", "--concurrency", "32"]].concat());
    let line = gateway.line_with("ready: ");
    let address = address_after(&line, "listening on ");
    for name in MODELS {
        thread::spawn(move || while ask_model(address, name).is_some() {});
    }
    let url = format!("http://{}/", address_after(&line, "admin on "));
    browser.prepare(WATCH);
    let is_busy = "[...document.querySelectorAll('#model-rows tr')].map((row) => [...row.children].map((one) => one.textContent)) \
                   .filter(([, running, , output]) => running === '1' && parseFloat(output) > 0).length === 3";
    browser.open(&url, 1280, "light");
    browser.wait_for(USABLE);
    browser.wait_for(is_busy);
    let rows =
        browser.value("[...document.querySelectorAll('#model-rows td:first-child')].map((one) => one.textContent)");
    assert_eq!(rows, json!(MODELS));
    for (width, scheme) in LOOKS {
        browser.open(&url, width, scheme);
        browser.wait_for(USABLE);
        browser.wait_for(is_busy);
        check_page(&mut browser, &url, width);
        browser.picture(&pictures().join(format!("models-{scheme}-{width}.png")));
    }
    check_names(&mut browser);
}
