//! Integration tests: facades and the whole program, with real components. One binary, so that it
//! links once.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test ends at the first surprise, says what it skips, and waits for other processes"
)]

mod legacy;
mod oauth;
mod slow;
mod program;
mod call;
mod hostile;
mod elicit;
mod foreign;
mod remote;
mod docker;
mod caps;
mod reference;
mod upstreams;
mod soak;
mod catalog;
mod import;
mod http_service;
mod wire;
mod server;
mod tenants;
mod gateway;
mod changes;
mod discovery;
mod library;
mod surfaces;
mod shutdown;
mod clients;
mod conformance;
mod cli;
mod quality;
mod refresh;
mod published;
mod quarantine;
mod security;
mod tidy;
