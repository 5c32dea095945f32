//! Toolcrib: the service an AI agent asks for a tool.

pub mod cli;
pub mod app;
pub mod config;
pub mod transport;
pub mod models;
pub mod catalog;
pub mod eval;
pub mod search;
pub mod call;
pub mod tenants;
pub mod handles;
pub mod lifecycle;
pub mod telemetry;
pub mod domain;
