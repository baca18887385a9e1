//! Runs a child process: shows its command line first, and turns a failure into an error that names it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command line that can be shown, pasted into a shell, and run at the repository's root.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    program: String,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

/// Whether cargo may change `Cargo.lock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lockfile {
    Fixed,
    Free,
}

// === impl CommandLine ===

impl CommandLine {
    pub(crate) fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), arguments: Vec::new(), environment: Vec::new() }
    }

    /// `cargo` with a subcommand of one or more words that accepts `--locked`.
    pub(crate) fn cargo(subcommand: &[&str], lockfile: Lockfile) -> Self {
        let cargo = Self::new("cargo").args(subcommand);
        match lockfile {
            Lockfile::Fixed => cargo.args(["--locked"]),
            Lockfile::Free => cargo,
        }
    }

    pub(crate) fn args<A: AsRef<str>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Shows the command line, runs it with our terminal as its own, and waits for it.
    pub(crate) fn run(&self) -> Result<()> {
        println!("$ {self}");
        let status = self
            .command()
            .current_dir(root()?)
            .status()
            .with_context(|| format!("cannot start `{}`; is it installed?", self.program))?;
        if !status.success() {
            bail!("`{self}` failed ({status})");
        }
        Ok(())
    }

    /// Like `run`, but returns whether it succeeded, and what it wrote to standard error, which is shown when it has ended.
    pub(crate) fn run_and_read_errors(&self) -> Result<(bool, String)> {
        println!("$ {self}");
        let output = self.command().current_dir(root()?).stdout(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot start `{}`; is it installed?", self.program))?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        eprint!("{errors}");
        Ok((output.status.success(), errors))
    }

    /// Runs it at the repository's root, and returns what it prints.
    pub(crate) fn output(&self) -> Result<String> {
        let output = self.command().current_dir(root()?).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot start `{}`; is it installed?", self.program))?;
        if !output.status.success() {
            bail!("`{self}` failed ({})", output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{self}` does not print UTF-8"))
    }

    /// Runs it unseen, and says whether it could be started and succeeded.
    pub(crate) fn succeeds(&self) -> bool {
        let status = self.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    /// Runs it unseen at the repository's root, and returns what it printed.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        let output = self
            .command()
            .current_dir(root()?)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot start `{}`; is it installed?", self.program))?;
        if !output.status.success() {
            bail!("`{self}` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output.stdout)
    }

    /// Runs it unseen, and returns what it wrote to standard output and standard error; `None` if it did not succeed.
    pub(crate) fn all_output(&self) -> Option<String> {
        let output = self.command().stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // `cargo xtask` sets them for us. Build scripts that look at them, such as ring's, would run again each time that cargo
        // is called by us and then by hand, and much would be built again.
        let ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
            command.env_remove(name);
        }
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str(&self.program)?;
        for argument in &self.arguments {
            write!(f, " {}", quoted(argument))?;
        }
        Ok(())
    }
}

// === impl Lockfile ===

impl Lockfile {
    /// A build machine must test what was committed; a developer may be adding a dependency just now.
    pub(crate) fn from_environment() -> Self {
        if std::env::var_os("CI").is_some_and(|value| value == "true") { Self::Fixed } else { Self::Free }
    }
}

/// The repository's root. Asked for at run time, since a target directory may be shared by several checkouts.
pub(crate) fn root() -> Result<PathBuf> {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").context("xtask must be run by `cargo xtask`")?;
    let mut root = PathBuf::from(own);
    root.pop();
    Ok(root)
}

/// The folder in which cargo builds.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    Ok(root()?.join(target))
}

/// Whether the path ends in this extension, given without its dot.
pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// The argument as a shell would have to read it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_as_a_shell_reads_it() {
        let line = CommandLine::cargo(&["doc"], Lockfile::Fixed).args(["it's", ""]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(line.to_string(), r"RUSTDOCFLAGS='-D warnings' cargo doc --locked 'it'\''s' ''");
    }

    #[test]
    fn failure_names_the_command() {
        let error = CommandLine::new("false").args(["now"]).run().unwrap_err();
        assert_eq!(error.to_string(), "`false now` failed (exit status: 1)");
    }

    #[test]
    fn missing_program_is_named() {
        let absent = CommandLine::new("evenkeel-no-such-program");
        assert_eq!(absent.run().unwrap_err().to_string(), "cannot start `evenkeel-no-such-program`; is it installed?");
        assert!(!absent.succeeds());
    }

    #[test]
    fn output_or_what_was_said_about_the_failure() {
        let shell = |script| CommandLine::new("sh").args(["-c", script]).read();
        assert_eq!(shell("echo done").unwrap(), b"done\n");
        let error = shell("echo broken >&2; exit 3").unwrap_err();
        assert!(error.to_string().ends_with("failed (exit status: 3): broken"), "{error}");
    }

    #[test]
    fn errors_of_a_failure_can_be_read() {
        let shell = |script| CommandLine::new("sh").args(["-c", script]).run_and_read_errors().unwrap();
        assert_eq!(shell("echo broken >&2; exit 3"), (false, "broken\n".to_owned()));
        assert_eq!(shell("true"), (true, String::new()));
    }

    #[test]
    fn what_cargo_says_about_xtask_does_not_reach_the_child() {
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
        assert!(CommandLine::new("sh").args(["-c", "test -z \"$CARGO_PKG_NAME$CARGO_MANIFEST_DIR\""]).succeeds());
    }

    #[test]
    fn environment_reaches_the_child() {
        let line = CommandLine::new("sh").args(["-c", "test \"$KEEL\" = even"]);
        assert!(!line.succeeds());
        assert!(line.env("KEEL", "even").succeeds());
    }
}
