//! A process that the benchmark has started: waits until it answers, measures its memory, and ends it.

use std::fs::{self, File};
use std::io::{self, Error};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// So long a process may take until it can be connected to.
const START_MAX: Duration = Duration::from_secs(10);

/// The unit of processor time that Linux shows to programs.
const TICK: Duration = Duration::from_millis(10);

/// A process and its children. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// What a process and its children take of the machine's memory, in KiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// What is shared is counted in parts.
    pub(crate) proportional: u64,
    /// What is shared is counted once for each process.
    pub(crate) resident: u64,
}

/// Whether a program can be started.
pub(crate) fn is_installed(program: &str) -> bool {
    let started =
        Command::new(program).arg("-v").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    started.is_ok()
}

/// An address of this machine that nobody listens on now.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

// === impl Process ===

impl Process {
    /// Starts a process that listens on an address, and waits until it does. What it says goes to a file in the folder.
    pub(crate) fn start(command: &mut Command, address: SocketAddr, folder: &Path) -> io::Result<Self> {
        let said = folder.join("said.log");
        let output = File::create(&said)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|error| Error::other(format!("cannot start `{name}`: {error}")))?;
        let process = Self { child, address };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if start.elapsed() > START_MAX {
                let said = fs::read_to_string(said).unwrap_or_default();
                return Err(Error::other(format!("`{name}` does not listen on {address}; it said: {said}")));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// What it and its children take now.
    pub(crate) fn memory(&self) -> io::Result<Memory> {
        let mut memory = Memory { proportional: 0, resident: 0 };
        for id in self.all_ids()? {
            let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
            memory.proportional += kib(&text, "Pss:")?;
            memory.resident += kib(&text, "Rss:")?;
        }
        Ok(memory)
    }

    /// The time that it and its children have had on all processors so far.
    pub(crate) fn processor_time(&self) -> io::Result<Duration> {
        let mut ticks = 0;
        for id in self.all_ids()? {
            let text = fs::read_to_string(format!("/proc/{id}/stat"))?;
            // The name of the program may hold anything; what follows it are figures, these the 14th and 15th of the line.
            let figures = text.rsplit(')').next().unwrap_or_default().split_whitespace();
            ticks += figures.skip(11).take(2).filter_map(|figure| figure.parse::<u64>().ok()).sum::<u64>();
        }
        Ok(TICK * u32::try_from(ticks).map_err(Error::other)?)
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
        let told = Command::new("kill").arg(self.child.id().to_string()).status();
        if !told.is_ok_and(|status| status.success()) {
            // It has ended by itself, or there is no `kill`; either way this is all that is left to do.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
