//! The recipes of docs/cookbook.md and the examples of the tools' pages, run as they are printed: files are written, commands are typed into bash, and what they
//! print is compared.
//!
//! Two things are exchanged. Each recipe has a loopback address of its own in place of `127.0.0.1`, printed or by default, so that
//! recipes can run beside each other with the ports that are printed. What a reader has and a test machine lacks is stood in for: see
//! `issuer`, `cluster` and `rust_service`.

// Only Linux has all of 127.0.0.0/8 on its loopback.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../child/mod.rs"]
mod child;

mod cluster;
mod issuer;
mod output;
mod page;
mod replay_tutorial;
mod rust_service;
mod session;

use page::{Page, Step};
use session::Session;

/// Makes a test of each recipe, and the list of all of them.
macro_rules! recipes {
    ($($test:ident: $title:literal, $surroundings:path;)*) => {
        const TITLES: &[&str] = &[$($title),*];
        $(
            #[test]
            fn $test() {
                let page = Page::read(COOKBOOK);
                let mut session = Session::new();
                $surroundings(&mut session, &page);
                session.follow(page.section($title));
            }
        )*
    };
}

recipes! {
    paying_tenants: "1. Paying tenants before free ones", service;
    health_checks: "2. Health checks that always pass", service;
    block_one_tenant: "3. Block one tenant", service;
    writes_before_reads: "4. Writes before reads", service;
    behind_a_load_balancer: "5. Behind a load balancer", service;
    api_keys: "6. API keys", service;
    tokens_of_an_identity_provider: "7. Tokens of an identity provider (JWT)", service_and_issuer;
    how_large_concurrency: "8. How large should `concurrency` be?", service;
    kubernetes_api_server: "9. A Kubernetes API server behind the gateway", cluster::start;
    rust_service_without_gateway: "10. A Rust service without a gateway", rust_service::prepare;
    long_polls: "11. Long polls", service;
    throttle_one_tenant: "12. Throttle one tenant", service;
    slow_exports: "13. Slow exports", service;
    uploads: "14. Uploads", service;
    streams: "15. Server-sent events and WebSockets", nothing;
    behind_nginx: "16. Behind nginx", service_and_proxy;
    behind_a_tcp_balancer: "17. Behind a TCP balancer", service_and_proxy;
    unix_sockets: "18. Over Unix sockets", folder_of_the_shop;
    restart: "19. Restart without losing a connection", service;
    language_model_server: "20. A language model server", nothing;
    rate_for_each_key: "21. 100 requests a second for each key", service;
    service_reports_its_cost: "22. A service that reports its cost", nothing;
    exports_by_bytes: "23. Exports by their bytes", queries;
    several_services: "24. Several services", service;
    several_gateways: "25. Several gateways, one service", service;
    behind_haproxy: "26. Behind HAProxy", service_and_proxy;
    ollama: "27. Ollama for a team", nothing;
}

const COOKBOOK: &str = "docs/cookbook.md";

/// Does everything that a page says, from its top to its end.
fn follow(name: &'static str) {
    let mut session = Session::new();
    Page::read(name).sections().for_each(|section| session.follow(section));
}

#[test]
fn getting_started() {
    follow("docs/getting-started.md");
}

#[test]
fn explain() {
    follow("docs/explain.md");
}

#[test]
fn convert() {
    follow("docs/convert.md");
}

#[test]
fn change_safely() {
    follow("docs/tutorials/change-safely.md");
}

#[test]
fn replay() {
    follow("docs/replay.md");
}

#[test]
fn replay_tutorial() {
    replay_tutorial::follow();
}

const PREPARATION: &str = "Before you start";

/// The recipe brings all that it needs.
fn nothing(_: &mut Session, _: &Page) {}

/// The reader has made a folder of this name.
fn folder_of_the_shop(session: &mut Session, _: &Page) {
    let folder = session.folder().to_str().unwrap().to_owned();
    session.exchange("/tmp/shop", &folder);
}

/// The reader has prepared the sample service.
fn service(session: &mut Session, page: &Page) {
    session.follow(page.section(PREPARATION));
}

/// The reader has the service of the recipe before.
fn queries(session: &mut Session, page: &Page) {
    for step in &page.section("22. A service that reports its cost").steps {
        if let Step::Save { name, text } = step
            && *name == "queries.py"
        {
            session.save(name, text);
        }
    }
}

/// A proxy connects from 127.0.0.1, to whichever loopback address.
fn service_and_proxy(session: &mut Session, page: &Page) {
    service(session, page);
    session.exchange(&format!("[{}]", session.address()), "[127.0.0.1]");
}

fn service_and_issuer(session: &mut Session, page: &Page) {
    service(session, page);
    issuer::start(session);
}

#[test]
fn every_recipe_is_run_and_is_in_the_contents() {
    let page = Page::read(COOKBOOK);
    let titles: Vec<&str> = page.titles().filter(|title| *title != PREPARATION).collect();
    assert_eq!(titles, TITLES);
    for title in titles {
        let (number, name) = title.split_once(". ").unwrap();
        let anchor = anchor(title);
        let entry = format!("{number}. [{name}](#{anchor})");
        assert!(page.has_line(&entry), "the contents lack {entry:?}");
    }
}

/// The page shows the command for one recipe; `--seats` and the objects are those of the recipe's settings.
#[test]
fn the_objects_of_every_recipe_pass_the_check() {
    let page = Page::read(COOKBOOK);
    let mut is_printed = false;
    for section in page.sections() {
        let Some((_, settings)) = section.files().find(|(name, _)| *name == "evenkeel.yaml") else { continue };
        if !settings.contains("\nlevels:\n") && !settings.contains("\nobjects: ") {
            continue;
        }
        let session = Session::new();
        section.files().for_each(|(name, text)| session.save(name, text));
        let command = "evenkeel check --strict --config evenkeel.yaml";
        let arguments: Vec<&str> = command.split(' ').skip(1).collect();
        let output = child::evenkeel(&arguments).current_dir(session.folder()).output().unwrap();
        assert!(output.status.success(), "{command}\n{}{}", child::text(&output.stdout), child::text(&output.stderr));
        is_printed |= page.has_line(&format!("$ {command}"));
    }
    assert!(is_printed, "the page does not show how to check objects");
}

/// GitHub's name for a heading.
fn anchor(title: &str) -> String {
    let kept = title.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}
