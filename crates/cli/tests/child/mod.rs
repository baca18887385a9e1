//! The binary as a child process.

#![allow(dead_code, unreachable_pub, reason = "no test needs all of it")]

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{self, Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// No test waits longer than this for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A command that runs, and what it says on standard error.
pub struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    lines: Receiver<String>,
    said: Vec<String>,
}

/// The binary, with nothing of this process's surroundings that could change what it prints.
pub fn evenkeel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(arguments).env_remove("RUST_LOG").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs the binary to its end, which it must come to.
pub fn run(arguments: &[&str]) -> Output {
    let child = evenkeel(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    let (sender, output) = channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    output.recv_timeout(PATIENCE).map_or_else(
        |_| {
            Command::new("kill").args(["-KILL", &id]).status().unwrap();
            panic!("{arguments:?} does not end");
        },
        Result::unwrap,
    )
}

/// What it printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

// === impl Running ===

impl Running {
    pub fn start(arguments: &[&str]) -> Self {
        Self::spawn(&mut evenkeel(arguments))
    }

    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, lines, said: Vec::new() }
    }

    /// What it said before the line that was waited for last.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line on standard error that has this in it.
    pub fn line_with(&mut self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => self.said.push(line),
                Err(why) => panic!("no line with {part:?} ({why}); it said:\n{}", self.said.join("\n")),
            }
        }
    }

    /// Waits for a line on standard output that has this in it, and returns all up to it.
    pub fn output_until(&mut self, part: &str) -> String {
        let mut output = String::new();
        while !output.lines().last().is_some_and(|line| line.contains(part)) {
            let read = self.output.read_line(&mut output).unwrap();
            assert!(read > 0, "no line with {part:?} in\n{output}");
        }
        output
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Sends a signal again and again until it ends.
    pub fn insist(&mut self, name: &str) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            self.signal(name);
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
        }
    }

    /// Waits for its end; what it printed on standard output since somebody read it.
    pub fn end(&mut self) -> (ExitStatus, String) {
        let mut output = String::new();
        self.output.read_to_string(&mut output).unwrap();
        (self.child.wait().unwrap(), output)
    }

    /// All lines of standard error that nobody has waited for.
    pub fn rest(&mut self) -> String {
        self.said.extend(self.lines.iter());
        self.said.join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address after a word in a line: `listening on 127.0.0.1:4000, …`.
pub fn address_after(line: &str, word: &str) -> SocketAddr {
    let rest = line.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {line:?}")).1;
    let address: String = rest.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
    address.parse().unwrap_or_else(|error| panic!("{address:?} in {line:?}: {error}"))
}

/// An address of this machine at which nobody else listens: Linux has all of 127.0.0.0/8, and others only the first.
pub fn address_apart() -> Ipv4Addr {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST;
    }
    let [.., high, low] = process::id().to_be_bytes();
    Ipv4Addr::new(127, COUNT.fetch_add(1, Ordering::Relaxed), high, low)
}
