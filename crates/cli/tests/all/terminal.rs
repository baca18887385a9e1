//! A command in a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::child::{PATIENCE, evenkeel};

const LINES: u16 = 24;

/// A command in a terminal of 24 lines.
pub(crate) struct InTerminal {
    child: Child,
    columns: u16,
    controller: OwnedFd,
    output: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

// === impl InTerminal ===

impl InTerminal {
    /// Starts the binary in a terminal of 80 columns.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::spawn(evenkeel(arguments), 80)
    }

    pub(crate) fn spawn(mut command: Command, columns: u16) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let size = Winsize { ws_row: LINES, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).unwrap();
        let stdio = || Stdio::from(terminal.try_clone().unwrap());
        let child = command.env("TERM", "xterm").stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let output = Arc::<Mutex<Vec<u8>>>::default();
        let mut reader = File::from(controller.try_clone().unwrap());
        let shared = Arc::clone(&output);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            // Linux reports an error when nobody has the other end any more.
            while let Ok(length @ 1..) = reader.read(&mut chunk) {
                shared.lock().unwrap().extend_from_slice(&chunk[..length]);
            }
        });
        Self { child, columns, controller, output, reader: Some(reader) }
    }

    pub(crate) fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    /// Waits until the command has written this, as it is.
    pub(crate) fn writes(&self, part: &str) {
        wait_for(&format!("{part:?} is not written"), || self.output().contains(part).then_some(()));
    }

    /// Waits until this can be read on the screen, in one line. What is written says less: only cells that change are.
    pub(crate) fn shows(&self, part: &str) {
        wait_for(&format!("{part:?} is not shown"), || self.screen().contains(part).then_some(()));
    }

    /// The text that whoever looks at the terminal sees.
    fn screen(&self) -> String {
        let size = |cells| NonZero::new(cells).unwrap();
        let mut parser = vt100::Parser::new(size(LINES), size(self.columns), 0);
        parser.process(&self.output.lock().unwrap());
        parser.screen().contents()
    }

    pub(crate) fn types(&self, keys: &str) {
        File::from(self.controller.try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits for its end; the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        wait_for("it does not end", || self.child.try_wait().unwrap()).code()
    }

    /// Waits for its end; the exit code, and everything that it has written. A terminal ends lines with CR LF.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        let code = self.end();
        self.reader.take().unwrap().join().unwrap();
        (code, self.output().replace("\r\n", "\n"))
    }
}
