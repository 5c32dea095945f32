//! What a launch comes to for one tenant: nothing left to fill in, and all of it secret.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::{ClientAuth, HttpTransport, Operations};

/// What to start or where to connect.
pub(in crate::call) enum Target {
    /// A child process.
    Child {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, on top of the allow-list.
        env: Vec<(String, SecretString)>,
    },
    /// A container.
    Container {
        /// Its image.
        image: String,
        /// Arguments of its program.
        args: Vec<String>,
        /// Its environment.
        env: Vec<(String, SecretString)>,
    },
    /// A remote endpoint.
    Remote(Remote),
    /// A service that speaks no MCP.
    Service {
        /// Its address.
        base_url: String,
        /// Headers of each request.
        headers: Vec<(String, SecretString)>,
        /// How its tools are asked for.
        operations: Operations,
    },
}

/// A remote endpoint.
pub(in crate::call) struct Remote {
    /// Its URL.
    pub(in crate::call) url: String,
    /// Headers of each request.
    pub(in crate::call) headers: Vec<(String, SecretString)>,
    /// What it speaks.
    pub(in crate::call) transport: HttpTransport,
    /// What its access tokens are got with, if it takes any.
    pub(in crate::call) credentials: Option<Credentials>,
}

/// What a tenant shows a token endpoint.
#[derive(Clone)]
pub(in crate::call) struct Credentials {
    /// The endpoint.
    pub(in crate::call) token_url: String,
    /// Who asks.
    pub(in crate::call) client_id: SecretString,
    /// How that is proven.
    pub(in crate::call) client_secret: SecretString,
    /// What is asked for.
    pub(in crate::call) scope: Option<String>,
    /// What it is to be used on.
    pub(in crate::call) resource: Option<String>,
    /// Where id and secret stand.
    pub(in crate::call) auth: ClientAuth,
}

impl Target {
    /// Changes when any value in it changes.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        let mut add = |text: &str| {
            hasher.update(text.len().to_le_bytes());
            hasher.update(text.as_bytes());
        };
        let pairs = match self {
            Self::Child { command, args, env } => {
                add(command);
                for arg in args {
                    add(arg);
                }
                env
            }
            Self::Container { image, args, env } => {
                add("container");
                add(image);
                for arg in args {
                    add(arg);
                }
                env
            }
            Self::Remote(remote) => {
                add(&remote.url);
                add(&remote.transport.to_string());
                if let Some(credentials) = &remote.credentials {
                    credentials.parts().for_each(&mut add);
                }
                &remote.headers
            }
            Self::Service {
                base_url, headers, ..
            } => {
                add(base_url);
                headers
            }
        };
        for (name, value) in pairs {
            add(name);
            add(value.expose_secret());
        }
        hasher.finalize().into()
    }
}

impl Credentials {
    fn parts(&self) -> impl Iterator<Item = &str> {
        let auth = match self.auth {
            ClientAuth::Basic => "basic",
            ClientAuth::Post => "post",
        };
        let optional = [&self.scope, &self.resource];
        [
            self.token_url.as_str(),
            self.client_id.expose_secret(),
            self.client_secret.expose_secret(),
            auth,
        ]
        .into_iter()
        .chain(optional.map(|part| part.as_deref().unwrap_or_default()))
    }
}
