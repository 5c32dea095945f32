//! Toolcrib: the service an AI agent asks for a tool.

pub mod domain;
pub mod handles;
pub mod search;
pub mod eval;
pub mod lifecycle;
