//! What a test does when a program that it needs is missing.
//!
//! On a developer's machine the test says so and is skipped. On a build machine it fails: a test that does nothing there
//! would pass for ever.

/// Says that the test is skipped, and why; on a build machine (`CI`), fails instead. Return after it.
///
/// ```no_run
/// if std::process::Command::new("etcd").arg("--version").output().is_err() {
///     return evenkeel_missing_tool::skip("etcd is not installed");
/// }
/// ```
///
/// # Panics
/// If the environment variable `CI` is set, to anything but `false` or nothing.
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
#[track_caller]
pub fn skip(reason: &str) {
    let is_build_machine = std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "false"));
    assert!(!is_build_machine, "{reason}; `cargo xtask setup` installs it, and under CI no test is skipped");
    eprintln!("skipped: {reason}; `cargo xtask setup` installs it");
}
