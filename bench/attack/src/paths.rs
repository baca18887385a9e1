//! Paths that a service may take for a path that is blocked.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use evenkeel_bars::Bar;

use crate::Stage;
use crate::http1::{Reader, connect, get};
use crate::server::{EVERYBODY, Server, Setup};
use crate::upstream::Upstream;

/// Nobody gets to `/admin`.
const CLOSED: &str = include_str!("closed.yaml");

/// What servlet containers, or servers that put paths into their normal form, take for a path below `/admin`.
const DISGUISES: [&str; 18] = [
    "/admin/x",
    "//admin/x",
    "/./admin/x",
    "/x/../admin/x",
    "/%61dmin/x",
    "/admin%2fx",
    "/admin;",
    "/admin;/x",
    "/admin;x/x",
    "/admin;x=1;y=2/x",
    "/;/admin/x",
    "/;x/admin/x",
    "/%61dmin;x/x",
    "/x/..;/admin/x",
    "/x;y/../admin/x",
    "/admin;x?y",
    "/.;/admin/x",
    "/admin;%2fx",
];

/// Asks for all of them.
pub(crate) fn disguises(stage: &mut Stage, attack: &str) -> Result<()> {
    let objects = format!("{EVERYBODY}---\n{CLOSED}");
    let (gateway, passed) = stage.runtime.block_on(async {
        let upstream = Upstream::start()?;
        let gateway = Server::gateway_with(upstream.address, Setup { objects: &objects, ..Setup::default() })?;
        let ask = async |path: &str| {
            let mut client = Reader::new(connect(Ipv4Addr::LOCALHOST, gateway.address()).await?);
            client.exchange(&get(path)).await.with_context(|| format!("`{path}` gets no response"))
        };
        ensure!(ask("/busy/1").await?.is_success(), "other paths are not open");
        let mut passed = Vec::new();
        for path in DISGUISES {
            if ask(path).await?.is_success() {
                passed.push(path);
            }
        }
        anyhow::Ok((gateway, passed))
    })?;
    let unit = format!("of {} {}", DISGUISES.len(), passed.join(" "));
    stage.bars.add(format!("{attack}: passed a block"), passed.len() as f64, unit.trim_end(), Bar::AtMost(0.0, ""));
    stage.end(attack, gateway)
}
