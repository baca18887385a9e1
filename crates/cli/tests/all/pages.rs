//! What packagers need: version, completions and manual pages.

use crate::child;

use child::{run, text};

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
