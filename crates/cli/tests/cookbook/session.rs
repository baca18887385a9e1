//! A reader with an empty folder and some terminals.

use std::any::Any;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::child::{PATIENCE, Running, address_apart};
use super::output::agrees;
use super::page::{Run, Section, Step};

/// The admin endpoint of gateways. What it shows is asked for again until it is what the page says: requests that were sent in the
/// background may still be on their way.
const ADMIN: &str = ":9901/";
/// After so long it is not going to change any more.
const SETTLED: Duration = Duration::from_secs(30);

/// Servers that a page starts, and where each listens once it is ready.
const SERVERS: [(&str, Listens); 11] = [
    ("python3 service.py", Listens::OnPort(9000)),
    ("python3 events.py", Listens::OnPort(9001)),
    ("python3 search.py", Listens::OnPort(9001)),
    ("python3 queries.py", Listens::OnPort(9000)),
    ("python3 app.py", Listens::OnSocket("app.sock")),
    ("nginx -p . -c nginx.conf -e error.log", Listens::OnPort(8000)),
    ("haproxy -f haproxy.cfg", Listens::OnPort(8000)),
    ("etcd --config-file etcd.yaml", Listens::OnPort(2379)),
    ("evenkeel serve --config second.yaml", Listens::OnPort(8081)),
    ("evenkeel demo --llm-server 127.0.0.1:9000", Listens::OnPort(9000)),
    ("evenkeel demo --llm-server 127.0.0.1:11434", Listens::OnPort(11434)),
];

#[derive(Clone, Copy, Debug)]
enum Listens {
    /// Of the session's address.
    OnPort(u16),
    /// A file in the session's folder.
    OnSocket(&'static str),
}

/// Ends on request: a server that is killed leaves its worker processes behind.
struct Server(Running);

pub(crate) struct Session {
    /// The gateway that runs. Another one takes its place.
    gateway: Option<Running>,
    /// What else was started. It ends before the folder goes.
    running: Vec<Box<dyn Any>>,
    folder: TempDir,
    address: Ipv4Addr,
    /// What the page has, and what it is here.
    exchanged: Vec<(String, String)>,
    variables: Vec<(String, String)>,
    on_cargo_run: Option<Start>,
}

/// Starts something in a session.
type Start = Box<dyn FnOnce(&mut Session)>;

impl Drop for Server {
    fn drop(&mut self) {
        self.0.insist("TERM");
    }
}

// === impl Session ===

impl Session {
    pub(crate) fn new() -> Self {
        let address = address_apart();
        let exchanged = vec![("127.0.0.1".to_owned(), address.to_string())];
        let folder = TempDir::new().unwrap();
        Self {
            gateway: None,
            running: Vec::new(),
            folder,
            address,
            exchanged,
            variables: Vec::new(),
            on_cargo_run: None,
        }
    }

    /// An address at which nobody else listens.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.address
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// From now on, this text of the page becomes that.
    pub(crate) fn exchange(&mut self, printed: &str, here: &str) {
        self.exchanged.push((printed.to_owned(), here.to_owned()));
    }

    pub(crate) fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// What `cargo run` does.
    pub(crate) fn on_cargo_run(&mut self, start: impl FnOnce(&mut Self) + 'static) {
        self.on_cargo_run = Some(Box::new(start));
    }

    /// Ends with the session.
    pub(crate) fn keep(&mut self, running: impl Any) {
        self.running.push(Box::new(running));
    }

    /// Does everything that a section says.
    pub(crate) fn follow(&mut self, section: &Section) {
        for step in &section.steps {
            match step {
                Step::Save { name, text } => self.save(name, text),
                Step::Run(run) => self.run(section.page, run),
            }
        }
    }

    /// Saves a file as a whole, since it may be followed.
    pub(crate) fn save(&self, name: &str, text: &str) {
        let path = self.folder().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let unseen = self.folder().join(".unseen");
        fs::write(&unseen, self.exchanged(text)).unwrap();
        fs::rename(unseen, path).unwrap();
    }

    fn exchanged(&self, text: &str) -> String {
        self.exchanged.iter().fold(text.to_owned(), |text, (printed, here)| text.replace(printed, here))
    }

    fn run(&mut self, page: &str, run: &Run) {
        let command = self.exchanged(&run.command);
        if let Some((_, listens)) = SERVERS.iter().find(|(server, _)| *server == run.command) {
            let server = Running::spawn(&mut self.bash(&format!("exec {command}")));
            self.keep(Server(server));
            self.await_listener(*listens);
        } else if command.starts_with("evenkeel serve ") {
            let before = self.gateway.take().filter(|_| command.contains(" --takeover"));
            let mut gateway = Running::spawn(&mut self.bash(&format!("exec {command} {}", self.default_addresses())));
            let ready = gateway.line_with("ready: ");
            // The page may show that line; others, such as warnings about the machine, are not on it.
            if let Some(shown) = run.output.last() {
                let shown = self.exchanged(shown);
                assert!(
                    agrees(std::slice::from_ref(&shown), &ready),
                    "{page}:{}: {shown:?} is not {ready:?}",
                    run.line
                );
            }
            self.gateway = Some(gateway);
            self.keep(before);
        } else if command == "cargo run" {
            let start = self.on_cargo_run.take().expect("a program to run");
            start(self);
        } else {
            let expected: Vec<String> = run.output.iter().map(|line| self.exchanged(line)).collect();
            self.compare(&format!("{page}:{}", run.line), &command, &expected);
        }
    }

    fn await_listener(&self, listens: Listens) {
        let until = Instant::now() + PATIENCE;
        let is_ready = || match listens {
            Listens::OnPort(port) => TcpStream::connect(SocketAddr::new(IpAddr::V4(self.address), port)).is_ok(),
            Listens::OnSocket(name) => UnixStream::connect(self.folder().join(name)).is_ok(),
        };
        while !is_ready() {
            assert!(Instant::now() < until, "nobody listens {listens:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// The flags that move a gateway's default addresses to this session's.
    fn default_addresses(&self) -> String {
        let address = self.address;
        let settings = fs::read_to_string(self.folder().join("evenkeel.yaml")).unwrap_or_default();
        let listen = if settings.contains("listen:") { String::new() } else { format!("--listen {address}:8080") };
        format!("--admin-listen {address}:9901 {listen}")
    }

    fn compare(&self, place: &str, command: &str, expected: &[String]) {
        let until = Instant::now() + SETTLED;
        loop {
            let (status, output) = self.shell(command);
            if agrees(expected, &output) && (status.success() || !expected.is_empty()) {
                return;
            }
            assert!(
                command.contains(ADMIN) && Instant::now() < until,
                "{place}: {command}\n--- the page says\n{}\n--- it prints ({status})\n{output}",
                expected.join("\n"),
            );
        }
    }

    /// Runs a command to its end: how it ended, and what it printed. What it leaves in the background goes on.
    fn shell(&self, command: &str) -> (ExitStatus, String) {
        // A pipe would stay open for as long as something in the background has it.
        let printed = self.folder().join(".printed");
        let file = File::create(&printed).unwrap();
        let mut bash = self.bash(command);
        let mut child = bash.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                child.kill().unwrap();
                panic!("it does not end: {command}");
            }
            thread::sleep(Duration::from_millis(2));
        };
        (status, fs::read_to_string(printed).unwrap())
    }

    fn bash(&self, command: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_evenkeel")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}/bin:{}:{path}", self.folder().display(), binary.display());
        let mut bash = Command::new("bash");
        bash.args(["-c", command]).current_dir(self.folder()).stdin(Stdio::null());
        bash.env_remove("RUST_LOG").env("NO_COLOR", "1").env("PATH", path).env("HOME", self.folder());
        bash.envs(self.variables.iter().map(|(name, value)| (name, value)));
        bash
    }
}
