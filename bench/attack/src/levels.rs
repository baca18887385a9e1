//! Objects that ask for more than anybody needs: memory follows what is used.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use crate::Stage;
use crate::http1::{Reader, connect, get};
use crate::server::{EVERYBODY, OBJECTS, Server};
use crate::upstream::Upstream;

/// Until new objects govern, and for their requests.
const LASTS: Duration = Duration::from_secs(4);
/// Clients with flows of their own.
const CLIENTS: u8 = 200;

/// A level with ten million queues takes the place of one with 64.
pub(crate) fn queues(stage: &mut Stage, attack: &str) -> Result<()> {
    let ordinary = "queues: 64, handSize: 4";
    ensure!(EVERYBODY.contains(ordinary), "the level has other queues");
    let gateway = stage.runtime.block_on(async {
        let upstream = Upstream::start()?;
        let gateway = Server::gateway(upstream.address)?;
        let objects = EVERYBODY.replace(ordinary, "queues: 10000000, handSize: 2");
        fs::write(gateway.folder.path().join(OBJECTS), objects)?;
        sleep(LASTS).await;
        for number in 0..CLIENTS {
            let mut client = Reader::new(connect(Ipv4Addr::new(127, 0, 1, number), gateway.address()).await?);
            let served = client.exchange(&get("/busy/1")).await.context("a client is not served")?;
            ensure!(served.is_success(), "a client is not served: {:?}", served.target());
        }
        anyhow::Ok(gateway)
    })?;
    stage.end(attack, gateway)
}
