//! Integration tests: facades with real components. One binary, so that it links once.

mod call;
mod remote;
