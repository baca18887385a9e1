//! The contract, held by the store in a real etcd.

use std::sync::Arc;

use evenkeel_store::{EtcdStore, HistoryLimits, Store};

use crate::etcd_server::EtcdServer;
use crate::patient::patient;

async fn open(limits: HistoryLimits) -> (EtcdServer, Arc<dyn Store>) {
    let server = EtcdServer::start().await;
    let mut config = patient([server.endpoint()]);
    config.history = limits;
    let store = EtcdStore::open(&config).await.unwrap();
    (server, Arc::new(store))
}

crate::contract::contract!(super::open);
