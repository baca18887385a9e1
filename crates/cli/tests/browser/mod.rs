//! A headless Chromium, driven over its protocol for developers: messages of JSON, each ended by a zero byte, on two pipes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::child::PATIENCE;

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// What the browser said without being asked.
    events: Vec<Value>,
    session: Option<String>,
    calls: u64,
    _profile: TempDir,
}

/// What the page asked for, and what went wrong in it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) requests: Vec<String>,
    pub(crate) faults: Vec<String>,
}

/// The names that it has in packages of Debian and others.
const PROGRAMS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];

/// The protocol is on the descriptors 3 and 4. A shell connects them with our pipes.
const ON_PIPES: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

const FLAGS: [&str; 7] = [
    "--headless",
    // It opens nothing but our own page, and build machines run it as root.
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
];

// === impl Browser ===

impl Browser {
    /// `None` if none is installed.
    pub(crate) fn start() -> Option<Self> {
        let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|it| it.status.success());
        let program = PROGRAMS.into_iter().find(is_there)?;
        let profile = TempDir::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", ON_PIPES, program]).args(FLAGS);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        thread::spawn(move || {
            let pieces = BufReader::new(output).split(0).map_while(Result::ok);
            pieces.map_while(|piece| serde_json::from_slice(&piece).ok()).try_for_each(|message| sender.send(message))
        });
        let mut browser =
            Self { child, input, messages, events: Vec::new(), session: None, calls: 0, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = Some(text(&browser.call("Target.attachToTarget", &target)["sessionId"]));
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Calls a method, and waits for its result.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.input.flush().unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left).unwrap_or_else(|why| panic!("{method}: {why}"));
            if message["id"] != self.calls {
                self.events.push(message);
            } else if let Some(error) = message.get("error") {
                panic!("{method}: {error}");
            } else {
                return message["result"].clone();
            }
        }
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", &parameters);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let until = Instant::now() + PATIENCE;
        while self.value(expression) != true {
            if Instant::now() > until {
                let page = self.value("document.body.innerText");
                panic!("it never came to {expression}; the page says:\n{}", text(&page));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a script in each page before its own scripts.
    pub(crate) fn prepare(&mut self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", &json!({"source": script}));
    }

    /// Opens an address, as a window of this width and with these colours.
    pub(crate) fn open(&mut self, url: &str, width: u32, scheme: &str) {
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", &media);
        let opened = self.call("Page.navigate", &json!({"url": url}));
        assert!(opened.get("errorText").is_none(), "{url}: {opened}");
    }

    /// Presses a key that the page handles by its name.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "Tab" => 9,
            other => panic!("no code of {other}"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Keeps a picture of the whole page.
    pub(crate) fn picture(&mut self, file: &Path) {
        let picture = self.call("Page.captureScreenshot", &json!({"captureBeyondViewport": true}));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, STANDARD.decode(text(&picture["data"])).unwrap()).unwrap();
    }

    /// What the page has asked for since the last report, and what went wrong.
    pub(crate) fn report(&mut self) -> Report {
        let mut report = Report::default();
        for event in self.events.drain(..) {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => report.requests.push(text(&parameters["request"]["url"])),
                "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" => {
                    report.faults.push(parameters.to_string());
                }
                _ => {}
            }
        }
        report
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A string of a message; empty if it is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
