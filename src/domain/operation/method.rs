//! Methods that operations are asked for with.

use std::fmt;
use std::str::FromStr;

use crate::domain::OperationError;

/// A method of HTTP. `TRACE` is left out: its answer shows the headers of the request, and with
/// them the operator's credentials.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// Reads.
    Get,
    /// Reads, and gives headers alone.
    Head,
    /// Asks what is possible.
    Options,
    /// Does what the service says.
    Post,
    /// Sets.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// As it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether a request without fields still has a body, where the operation describes one.
    pub(super) fn always_has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

impl FromStr for Method {
    type Err = OperationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [
            Self::Get,
            Self::Head,
            Self::Options,
            Self::Post,
            Self::Put,
            Self::Patch,
            Self::Delete,
        ];
        let found = all
            .into_iter()
            .find(|method| method.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| OperationError::Method(text.to_owned()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
