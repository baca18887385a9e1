//! Reads manifests as a kube-apiserver would, and reports everything that is wrong with them.
//!
//!     cargo run -p evenkeel-api --example check -- examples/tenants.yaml

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

use std::process::ExitCode;

use evenkeel_api::decode::{Manifest, Strictness};

fn main() -> ExitCode {
    let files: Vec<_> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: check FILE...");
        return ExitCode::from(2);
    }
    let mut code = ExitCode::SUCCESS;
    for file in &files {
        let text = match std::fs::read(file) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{file}: {error}");
                code = ExitCode::FAILURE;
                continue;
            }
        };
        match Manifest::read(file, &text, Strictness::Strict) {
            Ok(manifest) => {
                for entry in manifest.entries {
                    println!("{file}:{}: {} {:?} is fine", entry.at, entry.object.kind(), entry.object.name());
                }
            }
            Err(problems) => {
                eprintln!("{problems}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
