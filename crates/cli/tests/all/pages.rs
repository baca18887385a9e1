//! What packagers need: version, completions and manual pages.

use crate::child;

use std::os::unix::fs::symlink;
use std::process::Command;

use child::{run, text};
use tempfile::TempDir;

fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{arguments:?}");
    text(&output.stdout)
}

#[test]
fn the_version() {
    assert_eq!(printed(&["--version"]), format!("evenkeel {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_is_no_error() {
    for arguments in [&["--help"][..], &["-h"], &["help", "serve"], &["serve", "--help"], &["demo", "-h"]] {
        assert!(printed(arguments).contains("Examples:"), "{arguments:?}");
    }
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("admin-listen") && script.contains("demo"), "{shell}");
    }
}

#[test]
fn manual_pages() {
    let all = printed(&["man"]);
    assert!(all.contains(".TH evenkeel 1") && all.contains("evenkeel\\-serve"), "{all}");
    let serve = printed(&["man", "serve"]);
    assert!(serve.contains(".TH evenkeel-serve 1") && serve.contains("\\-\\-upstream"), "{serve}");
    let version = env!("CARGO_PKG_VERSION");
    assert!(serve.contains(&format!("\"evenkeel {version}\"")), "{serve}");
    // Examples are there to be copied, line by line.
    assert!(serve.contains("\n.SH EXAMPLES\n.nf\n") && serve.contains("\n.fi\n.SH SIGNALS\n.nf\n"), "{serve}");
    assert!(serve.contains("\n    evenkeel serve \\-\\-config evenkeel.yaml \\-\\-print\\-config\n"), "{serve}");
}

#[test]
fn manual_pages_of_all_commands_as_files() {
    let folder = TempDir::new().unwrap();
    assert_eq!(printed(&["man", "--directory", folder.path().to_str().unwrap()]), "");
    let mut names: Vec<String> =
        folder.path().read_dir().unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut evenkeel = evenkeel_cli::command();
    evenkeel.build();
    let commands = evenkeel.get_subcommands().map(clap::Command::get_name).filter(|name| *name != "help");
    let mut expected: Vec<String> = commands.map(|name| format!("evenkeel-{name}.1")).collect();
    expected.push("evenkeel.1".to_owned());
    expected.sort();
    assert_eq!(names, expected);
    let serve = std::fs::read_to_string(folder.path().join("evenkeel-serve.1")).unwrap();
    assert_eq!(serve, printed(&["man", "serve"]));
}

#[test]
fn as_a_plugin_of_kubectl_it_calls_itself_by_what_the_user_types() {
    let folder = TempDir::new().unwrap();
    let plugin = folder.path().join("kubectl-evenkeel");
    symlink(env!("CARGO_BIN_EXE_evenkeel"), &plugin).unwrap();
    let run = |arguments: &[&str]| Command::new(&plugin).args(arguments).output().unwrap();

    let help = run(&["check", "--help"]);
    assert!(text(&help.stdout).contains("Usage: kubectl evenkeel check "), "{}", text(&help.stdout));
    let wrong = run(&["check", "--no-such-flag"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).ends_with("see `kubectl evenkeel check --help`\n"), "{}", text(&wrong.stderr));
    assert_eq!(text(&run(&["--version"]).stdout), format!("evenkeel {}\n", env!("CARGO_PKG_VERSION")));
}
