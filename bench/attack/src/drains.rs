//! Stopping under load: clients that keep their connections lose no request.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Result, ensure};
use evenkeel_bars::Bar;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Stage;
use crate::http1::{Reader, connect, get};
use crate::server::Server;
use crate::upstream::Upstream;

const DRAINS: u32 = 40;
const CLIENTS: u32 = 16;
const WORK: &str = "/busy/1";
/// Every fourth client waits so long between two requests.
const THINKS: Duration = Duration::from_millis(7);

/// What became of the requests of clients.
#[derive(Debug, Default)]
struct Requests {
    served: usize,
    lost: usize,
}

pub(crate) fn drains(stage: &mut Stage, attack: &str) -> Result<()> {
    let mut all = Requests::default();
    for number in 0..DRAINS {
        let (gateway, requests) = stage.runtime.block_on(async {
            let upstream = Upstream::start()?;
            let gateway = Server::gateway(upstream.address)?;
            let mut clients = JoinSet::new();
            for client in 0..CLIENTS {
                let think = if client % 4 == 0 { THINKS } else { Duration::ZERO };
                clients.spawn(on_one_connection(gateway.address(), think));
            }
            // Signals come at other moments of the load each time.
            sleep(Duration::from_millis(100 + u64::from(number))).await;
            gateway.terminate()?;
            let mut requests = Requests::default();
            while let Some(client) = clients.join_next().await {
                let Requests { served, lost } = client??;
                requests.served += served;
                requests.lost += lost;
            }
            anyhow::Ok((gateway, requests))
        })?;
        gateway.ended(&mut stage.endings)?;
        all.served += requests.served;
        all.lost += requests.lost;
    }
    ensure!(all.served > DRAINS as usize * CLIENTS as usize, "there was no load: {} requests were served", all.served);
    let unit = format!("of {} in {DRAINS} drains", all.served + all.lost);
    stage.bars.add(format!("{attack}: lost requests"), all.lost as f64, &unit, Bar::AtMost(0.0, ""));
    Ok(())
}

/// Sends requests until the gateway closes the connection, or says that it will.
async fn on_one_connection(address: SocketAddr, think: Duration) -> Result<Requests> {
    let mut client = Reader::new(connect(Ipv4Addr::LOCALHOST, address).await?);
    let mut requests = Requests::default();
    // A connection that has ended before the next request was sent has cost nothing.
    while !matches!(client.get_mut().try_read(&mut [0]), Ok(0)) {
        match client.exchange(&get(WORK)).await {
            Ok(head) if head.is_success() => {
                requests.served += 1;
                if head.field("connection").as_deref() == Some("close") {
                    break;
                }
            }
            _ => {
                requests.lost += 1;
                break;
            }
        }
        sleep(think).await;
    }
    Ok(requests)
}
