//! The gateway in front of a server of language models: the bars of chapter 3 of `docs/spec/cost.md`.
//!
//! The server is that of `evenkeel demo --llm-server`: 32 requests at a time, 50 tokens a second for each of 24 and no more in all, events of 1 to 6
//! tokens, prompts that stall the batch. Give a part of a group's name (`llm tokens`, `llm first token`, `llm revocation`, `llm counting`, `llm events`,
//! `llm requests`, `llm leavers`, `llm retries`) to run only those that contain it. Every process but `LiteLLM` and Python is this executable, which takes one of several roles.

#![allow(clippy::print_stdout, reason = "it says what is left out and why")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod chat;
mod counting;
mod event_source;
mod events;
mod first_token;
mod leavers;
mod requests;
mod retries;
mod revocation;
mod role;
mod server;
mod tokens;

use std::io;
use std::process::ExitCode;

use evenkeel_bars::{Bars, Group, run_groups};

use role::{ROLES, Role};

/// As in the `evenkeel` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const GROUPS: [Group; 8] = [
    ("llm tokens", tokens::bars),
    ("llm first token", first_token::bars),
    ("llm revocation", revocation::bars),
    ("llm counting", counting::bars),
    ("llm events", events::bars),
    ("llm requests", requests::bars),
    ("llm leavers", leavers::bars),
    ("llm retries", retries::bars),
];

fn main() -> ExitCode {
    let outcome = match ROLES.of_this_process() {
        None => ROLES.restart(Role::Bench),
        Some(Role::Bench) => bench().map(|()| ExitCode::SUCCESS),
        Some(Role::Evenkeel) => return evenkeel_cli::run(std::env::args_os()),
        Some(Role::EventSource) => event_source::run().map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        println!("the benchmark of language models: {error}");
        ExitCode::FAILURE
    })
}

fn bench() -> io::Result<()> {
    let bars = Bars::filtered(std::env::args().skip(1));
    let groups = bars.wanted(&GROUPS);
    if groups.is_empty() {
        return Ok(());
    }
    run_groups(bars, &groups, "Language models behind the gateway")
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
