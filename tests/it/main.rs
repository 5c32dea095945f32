//! Integration tests: facades with real components. One binary, so that it links once.

#[cfg(test)]
mod call;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod soak;
