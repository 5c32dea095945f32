//! Toolcrib: the service an AI agent asks for a tool.
//!
//! An agent describes in one sentence what it wants to do; [`search`] answers with at most three
//! tools and leaves a handle in [`handles`]; [`call`] spends it and runs one of them on the MCP
//! server behind.
//!
//! ```text
//! query  -> search.rs: embed -> nearest 50 -> blend 68/32 -> diversify to 3 -> handles.mint
//! handle -> call.rs:   peek -> check arguments -> resolve secrets -> handles.take -> upstream.call
//! start  -> app.rs:    catalog -> keyword index -> model -> listen; beside it: vectors -> publish
//! ```
//!
//! | module | is for | must not |
//! | --- | --- | --- |
//! | [`cli`] | commands: decode, call parts, print | hold logic that serving needs |
//! | [`app`] | wiring, start, serving, shutdown, readiness | know wire formats |
//! | [`embed`] | a registry in a program of one's own | know the configuration |
//! | [`config`] | defaults, file, environment, flags | be read below `app` |
//! | [`transport`] | HTTP, MCP, the desk of all surfaces, wire JSON, refusals | rank, run, hold state |
//! | [`models`] | pinned models and runtime: fetch, verify | load a model |
//! | [`catalog`] | files and their faults, importers, refresh, pins, scanner | touch an upstream |
//! | [`eval`] | search quality on labelled queries | be needed by serving |
//! | [`toolkits`] | public names of tools, eager and cold ones, pages, likenesses | know a protocol |
//! | [`registry`] | tools that come and go: providers, precedence, fuzzy search | know a protocol |
//! | [`search`] | one immutable index, swapped as a whole; the pipeline | know `call`, hold a lock |
//! | [`call`] | sessions with servers behind, arguments, secrets, results | know `search` |
//! | [`tenants`] | keys, settings at rest, limits | know tools |
//! | [`handles`] | mint, peek, take once, forget | know what a tool is |
//! | [`lifecycle`] | every task, and the two signals of stopping | |
//! | [`telemetry`] | logs, metrics, audit | take a secret, handle, argument or query |
//! | [`domain`] | types that two of the above name | do I/O |
//!
//! Imports point down only; the test `tidy` holds the table.

pub mod cli;
pub mod app;
pub mod embed;
pub mod config;
pub mod transport;
pub mod toolkits;
pub mod models;
pub mod catalog;
pub mod eval;
pub mod registry;
pub mod search;
pub mod call;
pub mod tenants;
pub mod handles;
pub mod lifecycle;
pub mod telemetry;
pub mod domain;
