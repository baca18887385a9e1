//! The newcomer's path, from the README alone: what it prints is written to files, checked and served, and does what it says.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use crate::child::{PATIENCE, Running, address_after, evenkeel, text};
use crate::peer::{Upstream, get};

const PAGE: &str = include_str!("../../../../README.md");

/// So many lines say that paying users go before free ones, that health checks are exempt, and that one tenant is throttled.
const LINES_MAX: usize = 12;

/// The block of the page under the name of this file.
fn block(file: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("\n`{file}`")).unwrap();
    let (_, rest) = rest.split_once("\n```").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("\n```").unwrap().0
}

/// The status of the response to a request with these headers.
fn status(gateway: SocketAddr, path: &str, headers: &str) -> u16 {
    let mut stream = TcpStream::connect(gateway).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

/// SF, bars
#[test]
fn the_readme_is_enough_for_paying_before_free() {
    let settings = block("evenkeel.yaml");
    assert!(settings.lines().count() <= LINES_MAX, "{settings}");
    let upstream = Upstream::start();
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("evenkeel.yaml", &settings.replace("http://127.0.0.1:9000", &upstream.url()));
    // The page has a free user who is throttled; here is one who is not.
    write("keys.csv", &format!("{}\nkey-of-finn,finn,3,free\n", block("keys.csv")));
    for command in ["evenkeel check --config evenkeel.yaml\n", "evenkeel serve --config evenkeel.yaml\n"] {
        assert!(PAGE.contains(&format!("\n    {command}")), "{command}");
    }
    let command = |arguments: &[&str]| {
        let mut command = evenkeel(arguments);
        command.current_dir(folder.path());
        command
    };
    let checked = command(&["check", "--strict", "--config", "evenkeel.yaml"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}{}", text(&checked.stdout), text(&checked.stderr));
    let ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let mut gateway = Running::spawn(&mut command(&[&["serve", "--config", "evenkeel.yaml"], &ports[..]].concat()));
    let line = gateway.line_with("ready: ");
    let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
    for (path, headers, expected) in [
        ("/orders", "X-API-Key: key-of-acme\r\n", 200),
        ("/orders", "X-API-Key: key-of-finn\r\n", 200),
        ("/orders", "X-API-Key: key-of-zoe\r\n", 200),
        ("/healthz", "", 200),
        ("/orders", "X-API-Key: key-of-nobody\r\n", 401),
        ("/orders", "", 401),
    ] {
        assert_eq!(status(address, path, headers), expected, "{path} {headers}");
    }
    let metrics = get(admin, "/metrics").1;
    for level in ["paying", "free", "throttled", "exempt"] {
        let dispatched = |line: &&str| {
            line.starts_with("apiserver_flowcontrol_dispatched_requests_total{")
                && line.contains(&format!("priority_level=\"{level}\""))
                && line.ends_with("} 1")
        };
        assert_eq!(metrics.lines().filter(dispatched).count(), 1, "{level}: {metrics}");
    }
}
