//! The ways in: MCP over HTTP and standard streams, and the admin port.
//!
//! A surface decodes, calls one method of the desk, and encodes.

pub mod http;
pub mod mcp;
pub mod desk;
mod refusal;
pub mod wire;
