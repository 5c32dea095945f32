//! Toolcrib: the service an AI agent asks for a tool.

pub mod call;
pub mod domain;
pub mod handles;
pub mod lifecycle;
