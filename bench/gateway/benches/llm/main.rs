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

use evenkeel_bars::Bars;

use role::Role;

/// As in the `evenkeel` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A group of measures: its name, and what adds its figures.
type Group = (&'static str, fn(&mut Bars) -> io::Result<()>);

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
    let outcome = match Role::of_this_process() {
        Role::Start => role::start_bench(),
        Role::Bench => bench().map(|()| ExitCode::SUCCESS),
        Role::Evenkeel => return evenkeel_cli::run(std::env::args_os()),
        Role::EventSource => event_source::run().map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        println!("the benchmark of language models: {error}");
        ExitCode::FAILURE
    })
}

fn bench() -> io::Result<()> {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    let groups: Vec<Group> = GROUPS.into_iter().filter(|(name, _)| bars.wants(name)).collect();
    if groups.is_empty() {
        return Ok(());
    }
    let before = evenkeel_process::load_average()?;
    for (_, add) in groups {
        add(&mut bars)?;
    }
    let after = evenkeel_process::load_average()?;
    bars.print(&format!("Language models behind the gateway (load average {before} before and {after} after)"));
    Ok(())
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
