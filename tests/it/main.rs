//! Integration tests: facades and the whole program, with real components. One binary, so that it
//! links once.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends at the first surprise"
)]

mod program;
mod call;
mod remote;
mod catalog;
mod import;
mod wire;
mod server;
mod tenants;
mod shutdown;
mod clients;
mod cli;
mod tidy;
