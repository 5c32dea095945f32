//! How a remote server is spoken to: which HTTP transport, and where its access tokens come from.

use std::fmt;
use std::str::FromStr;

use crate::domain::Template;

/// Why a text is none of a few words.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is neither {known}")]
pub struct ParseWordError {
    text: Box<str>,
    known: &'static str,
}

/// Which of MCP's two HTTP transports a server speaks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HttpTransport {
    /// Streamable HTTP. A server that has none of it is tried with [`HttpTransport::Sse`].
    #[default]
    Streamable,
    /// The one of 2024-11-05: a stream of events, and another URL for what is sent.
    Sse,
}

impl FromStr for HttpTransport {
    type Err = ParseWordError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "streamable" => Ok(Self::Streamable),
            "sse" => Ok(Self::Sse),
            _ => Err(ParseWordError {
                text: text.into(),
                known: "`streamable` nor `sse`",
            }),
        }
    }
}

impl fmt::Display for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streamable => "streamable",
            Self::Sse => "sse",
        })
    }
}

/// How a client proves to a token endpoint who it is (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ClientAuth {
    /// By HTTP basic authentication.
    #[default]
    Basic,
    /// By fields of the form that is posted.
    Post,
}

impl FromStr for ClientAuth {
    type Err = ParseWordError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "basic" => Ok(Self::Basic),
            "post" => Ok(Self::Post),
            _ => Err(ParseWordError {
                text: text.into(),
                known: "`basic` nor `post`",
            }),
        }
    }
}

impl fmt::Display for ClientAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Basic => "basic",
            Self::Post => "post",
        })
    }
}

/// Where the access tokens of a remote server come from: OAuth 2.0 client credentials (RFC 6749,
/// section 4.4). Each tenant has a client of its own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OAuth {
    /// The token endpoint.
    pub token_url: Template,
    /// Who the tenant is at the endpoint.
    pub client_id: Template,
    /// How that is proven.
    pub client_secret: Template,
    /// What is asked for, words with spaces between.
    pub scope: Option<Template>,
    /// What the token is to be used on (RFC 8707).
    pub resource: Option<Template>,
    /// Where id and secret stand in the request.
    pub auth: ClientAuth,
}

impl OAuth {
    /// All templates in it.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.visible_templates()
            .chain([&self.client_id, &self.client_secret])
    }

    /// Templates whose text may be shown.
    pub(super) fn visible_templates(&self) -> impl Iterator<Item = &Template> {
        let optional = self.scope.iter().chain(&self.resource);
        std::iter::once(&self.token_url).chain(optional)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_print_as_they_are_read_and_others_are_none() {
        for text in ["streamable", "sse"] {
            let transport: HttpTransport = text.parse().unwrap();
            assert_eq!(transport.to_string(), text);
        }
        for text in ["basic", "post"] {
            let auth: ClientAuth = text.parse().unwrap();
            assert_eq!(auth.to_string(), text);
        }
        let wrong = "Basic".parse::<ClientAuth>().unwrap_err();
        assert_eq!(wrong.to_string(), "`Basic` is neither `basic` nor `post`");
    }
}
