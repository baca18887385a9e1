//! The Rust service of the last recipe: the example of the library, which must be the program that is printed.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::page::Page;
use super::session::Session;

#[path = "../../../evenkeel/examples/cookbook.rs"]
#[allow(dead_code, reason = "`main` listens where the page says")]
mod example;

const EXAMPLE: &str = include_str!("../../../evenkeel/examples/cookbook.rs");
const TITLE: &str = "10. A Rust service without a gateway";

pub(crate) fn prepare(session: &mut Session, page: &Page) {
    let printed = page.section(TITLE).file("src/main.rs");
    let (_, code) = EXAMPLE.split_once("\n\n").unwrap();
    assert_eq!(printed, code, "the page must print crates/evenkeel/examples/cookbook.rs after its first comment");
    check_versions(page.section(TITLE).file("Cargo.toml"));
    session.on_cargo_run(start);
}

/// The printed dependencies must be those that the example is built with.
fn check_versions(manifest: &str) {
    let workspace = include_str!("../../../../Cargo.toml");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    for line in dependencies.lines() {
        let (name, printed) = (line.split_once(" = ").unwrap().0, version(line));
        let ours = workspace.lines().find(|line| line.starts_with(&format!("{name} = "))).map(version);
        assert!(ours.is_some_and(|ours| ours.starts_with(printed)), "{line}: the workspace has {ours:?}");
    }
}

/// The first text in quotation marks that begins with a digit.
fn version(line: &str) -> &str {
    line.split('"').find(|part| part.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(line)
}

/// What `main` does, at the session's address.
fn start(session: &mut Session) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let address = session.address();
    runtime.block_on(async {
        let flow = example::flow_control().unwrap();
        for (port, router) in [(9901, evenkeel::debug::router(flow.clone())), (8080, example::app(&flow))] {
            let listener = TcpListener::bind(SocketAddr::from((address, port))).await.unwrap();
            tokio::spawn(async { axum::serve(listener, router).await });
        }
    });
    session.keep(runtime);
}
