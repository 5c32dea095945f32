//! Toolcrib: the service an AI agent asks for a tool.

pub mod config;
pub mod models;
pub mod catalog;
pub mod call;
pub mod tenants;
pub mod handles;
pub mod search;
pub mod eval;
pub mod lifecycle;
pub mod domain;
