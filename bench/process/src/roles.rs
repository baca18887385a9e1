//! The roles of a benchmark's executable: it starts itself again, and an environment variable says as what.

use std::env;
use std::io;
use std::process::{Command, ExitCode};

use crate::many_files::restart_with_many_files;

/// The variable that names the role of a process.
const VARIABLE: &str = "EVENKEEL_BENCH_ROLE";

/// The roles in which a benchmark starts its own executable, and the name of each in the environment.
#[derive(Debug, Clone, Copy)]
pub struct Roles<R: 'static>(pub &'static [(R, &'static str)]);

impl<R: Copy + PartialEq> Roles<R> {
    /// The role of this process. `None` if nobody has given it one: cargo or a person has started it.
    pub fn of_this_process(&self) -> Option<R> {
        let name = env::var(VARIABLE).ok()?;
        self.0.iter().find(|(_, known)| *known == name).map(|(role, _)| *role)
    }

    /// This executable in the role, without arguments.
    ///
    /// # Errors
    ///
    /// The role has no name, or the path of this executable is not known.
    pub fn command(&self, role: R) -> io::Result<Command> {
        let mut command = Command::new(env::current_exe()?);
        command.env(VARIABLE, self.name(role)?);
        Ok(command)
    }

    /// Runs this executable in the role, with the same arguments and as many open files as the system allows.
    ///
    /// # Errors
    ///
    /// The role has no name, or the shell that raises the limit could not be started.
    pub fn restart(&self, role: R) -> io::Result<ExitCode> {
        restart_with_many_files(VARIABLE, self.name(role)?)
    }

    fn name(&self, role: R) -> io::Result<&'static str> {
        let named = self.0.iter().find(|(known, _)| *known == role);
        named.map(|(_, name)| *name).ok_or_else(|| io::Error::other("the role has no name"))
    }
}
