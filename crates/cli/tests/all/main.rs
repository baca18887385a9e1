//! The tests of the `evenkeel` binary, in one program: each further program would have to be linked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../browser/mod.rs"]
mod browser;
mod charts;
mod check;
#[path = "../child/mod.rs"]
mod child;
mod convert;
mod dashboard;
mod deploy;
mod empty_root;
mod errors;
#[path = "../../../store/tests/store/etcd_server.rs"]
#[allow(dead_code, reason = "the tests of the store need more of it")]
mod etcd_server;
mod examples;
mod explain;
mod failing_upstreams;
mod fifos;
#[path = "../../../fleet/tests/all/figures.rs"]
mod figures;
mod fleet;
#[path = "../../../store/tests/store/folder.rs"]
mod folder;
mod monitoring;
mod output;
mod pages;
#[path = "../peer/mod.rs"]
mod peer;
mod readme;
mod reference;
mod replay;
mod restarts;
mod schema;
mod secret_files;
mod serve;
mod shadow;
mod simulate;
mod store_faults;
mod terminal;
mod tool_settings;
mod top;
#[path = "../../../store/tests/store/until.rs"]
#[allow(dead_code, reason = "the tests of the store need more of it")]
mod until;
