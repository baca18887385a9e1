//! A process that was started: waits until it listens, measures its memory, and ends it.

use std::fs::{self, File};
use std::io::{self, Error};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest time until a process accepts connections.
const START_MAX: Duration = Duration::from_secs(10);

/// The unit of processor time that Linux shows to programs.
const TICK: Duration = Duration::from_millis(10);

/// A process and its children. They end when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    output: PathBuf,
    /// The address that the process listens on.
    pub address: SocketAddr,
}

/// The memory of a process and its children, in KiB.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Shared memory is counted in parts.
    pub proportional: u64,
    /// Shared memory is counted once for each process.
    pub resident: u64,
}

/// Whether a program can be started.
pub fn is_installed(program: &str) -> bool {
    let started =
        Command::new(program).arg("-v").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    started.is_ok()
}

/// An address of this machine that nobody listens on now.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

// === impl Process ===

impl Process {
    /// Starts a process that listens on an address, and waits until it does. Its output goes to a file in the folder.
    pub fn start(command: &mut Command, address: SocketAddr, folder: &Path) -> io::Result<Self> {
        Self::start_within(command, address, folder, START_MAX)
    }

    /// Like `start`, for a process that may take longer until it listens.
    pub fn start_within(
        command: &mut Command,
        address: SocketAddr,
        folder: &Path,
        start_max: Duration,
    ) -> io::Result<Self> {
        let output = folder.join("output.log");
        let file = File::create(&output)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|error| Error::other(format!("cannot start `{name}`: {error}")))?;
        let process = Self { child, output, address };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if start.elapsed() > start_max {
                let output = process.output().unwrap_or_default();
                return Err(Error::other(format!("`{name}` does not listen on {address}; its output: {output}")));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// The memory that the process and its children have now.
    pub fn memory(&self) -> io::Result<Memory> {
        let mut memory = Memory { proportional: 0, resident: 0 };
        for id in self.all_ids()? {
            let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
            memory.proportional += kib(&text, "Pss:")?;
            memory.resident += kib(&text, "Rss:")?;
        }
        Ok(memory)
    }

    /// The time that it and its children have had on all processors so far.
    pub fn processor_time(&self) -> io::Result<Duration> {
        let mut ticks = 0;
        for id in self.all_ids()? {
            let text = fs::read_to_string(format!("/proc/{id}/stat"))?;
            // The name of the program may hold anything; what follows it are figures, these the 14th and 15th of the line.
            let figures = text.rsplit(')').next().unwrap_or_default().split_whitespace();
            ticks += figures.skip(11).take(2).filter_map(|figure| figure.parse::<u64>().ok()).sum::<u64>();
        }
        Ok(TICK * u32::try_from(ticks).map_err(Error::other)?)
    }

    /// The resident memory now, in KiB, without that of its children.
    pub fn resident(&self) -> io::Result<u64> {
        kib(&self.status()?, "VmRSS:")
    }

    /// The most resident memory since its start, in KiB, without that of its children. The system keeps count, so that
    /// no peak is missed.
    pub fn resident_max(&self) -> io::Result<u64> {
        kib(&self.status()?, "VmHWM:")
    }

    fn status(&self) -> io::Result<String> {
        fs::read_to_string(format!("/proc/{}/status", self.child.id()))
    }

    /// All that it has written to its standard output and standard error so far.
    pub fn output(&self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(&self.output)?).into_owned())
    }

    /// Sends it `SIGTERM`.
    pub fn terminate(&self) -> io::Result<()> {
        let sent = Command::new("kill").arg(self.child.id().to_string()).stderr(Stdio::null()).status()?;
        if sent.success() { Ok(()) } else { Err(Error::other("the process has ended already")) }
    }

    /// Ends it at once, without giving it time for anything (`SIGKILL`).
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Waits until it has ended by itself, at most for so long.
    pub fn ended(&mut self, wait_max: Duration) -> io::Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if start.elapsed() > wait_max {
                return Err(Error::other(format!("the process still runs after {wait_max:?}")));
            }
            sleep(Duration::from_millis(5));
        }
    }

    fn all_ids(&self) -> io::Result<Vec<String>> {
        let own = self.child.id().to_string();
        let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children"))?;
        Ok(children.split_whitespace().map(str::to_owned).chain([own]).collect())
    }
}

fn kib(text: &str, name: &str) -> io::Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|rest| rest.split_whitespace().next()).and_then(|figure| figure.parse().ok());
    figure.ok_or_else(|| Error::other(format!("the system does not say `{name}` of a process")))
}

impl Drop for Process {
    /// With a signal that lets it end its children.
    fn drop(&mut self) {
        // The id of a process that has been waited for may be another's by now.
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        if self.terminate().is_err() {
            // There is no `kill`, or it has ended just now; either way this is all that is left to do.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
