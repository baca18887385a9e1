//! A benchmark starts its own executable again, with as many open files as the system allows.

use std::io;
use std::process::{Command, ExitCode};

/// Runs this executable with the same arguments, the highest limit of open files, and the variable that tells it its role.
///
/// Everything that the second process starts inherits the limit, other proxies too.
pub(crate) fn restart_with_many_files(variable: &str, role: &str) -> io::Result<ExitCode> {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"ulimit -n "$(ulimit -Hn)" 2>/dev/null; exec "$0" "$@""#]);
    let status = shell.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(variable, role).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
