//! The command `toolcrib`.

fn main() {}
