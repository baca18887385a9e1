//! Fewer seats than levels that have to have one: the gateway does not start, and refuses changes that would cause it (LB-2a).

use evenkeel::PriorityLevelConfiguration;
use evenkeel::objects::Objects;
use evenkeel_gateway::objects::{Fixed, NextObjects, ObjectSource};
use evenkeel_gateway::{Config, Gateway};
use tokio::sync::mpsc;

use crate::support::{self, eventually};

/// Objects that a test sends.
struct Sent(mpsc::UnboundedReceiver<Objects>);

impl ObjectSource for Sent {
    fn next(&mut self) -> NextObjects<'_> {
        Box::pin(async {
            match self.0.recv().await {
                Some(objects) => Ok(objects),
                None => std::future::pending().await,
            }
        })
    }
}

/// Levels with shares. `catch-all` needs a seat beside them.
fn levels(names: &[&str]) -> Objects {
    let level = |name: &&str| PriorityLevelConfiguration::builder(*name).limited(|l| l.shares(10).reject()).build();
    names.iter().map(|name| level(name).into()).collect()
}

fn settings(concurrency: u32) -> Config {
    Config { concurrency: Some(concurrency.into()), ..support::config(&[([127, 0, 0, 1], 1).into()]) }
}

#[tokio::test]
async fn the_gateway_does_not_start() {
    let error = Gateway::start(settings(2), Box::new(Fixed::new(levels(&["a", "b"])))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "concurrency: 2 seats are too few for 3 priority levels with shares (\"a\", \"b\", \"catch-all\"): each of them needs a \
         seat; set `concurrency` to at least 3, or remove levels"
    );
    Gateway::start(settings(3), Box::new(Fixed::new(levels(&["a", "b"])))).await.unwrap();
}

#[tokio::test]
async fn changes_that_cause_it_are_refused() {
    let (send, receive) = mpsc::unbounded_channel();
    send.send(levels(&["a"])).unwrap();
    let mut gateway = Gateway::start(settings(2), Box::new(Sent(receive))).await.unwrap();
    let flow = gateway.flow().clone();
    let names = || flow.status().iter().map(|level| level.name.clone()).collect::<Vec<_>>();

    // Objects: those before stay, and later ones that fit are followed.
    send.send(levels(&["a", "b"])).unwrap();
    send.send(levels(&["c"])).unwrap();
    eventually("the last objects govern", || names() == ["c", "catch-all", "exempt"]).await;

    // Settings.
    let refused = gateway.reconfigure(settings(1)).await.unwrap_err();
    assert!(refused.to_string().starts_with("concurrency: 1 seat is too few for 2 priority levels"), "{refused}");
    assert_eq!(gateway.config().concurrency, Some(2.into()));
}
