//! Toolcrib: the service an AI agent asks for a tool.

pub mod config;
pub mod transport;
pub mod models;
pub mod catalog;
pub mod tenants;
pub mod handles;
pub mod lifecycle;
pub mod domain;
