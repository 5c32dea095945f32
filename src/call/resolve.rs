//! `secrets.resolve`: a server's launch with a tenant's values put in.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::{
    ConfigSlot, Launch, ReadSettingError, Server, ServerName, SettingName, Settings, Template,
    TemplatePart, TenantId,
};

/// Why a launch cannot be filled in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The entry says how the server is found, not how it is reached.
    #[error("the catalog does not say how server `{0}` is started")]
    NoLaunch(ServerName),
    /// Needed values that the tenant has not set.
    #[error("server `{server}` needs {} values that are not set", secrets.len() + config.len())]
    Missing {
        /// The server.
        server: ServerName,
        /// Secrets not set.
        secrets: Vec<SettingName>,
        /// Configuration values not set.
        config: Vec<SettingName>,
    },
    /// A stored value cannot be read.
    #[error(transparent)]
    Read(#[from] ReadSettingError),
    /// A value that would be read as an option by the program that gets it.
    #[error("the value of `{0}` starts with `-`, which the server would read as an option")]
    LooksLikeOption(SettingName),
    /// A value with a control character where none can be passed on.
    #[error("the value of `{0}` holds a line break or another control character")]
    Control(SettingName),
    /// The tenant's folder cannot be made.
    #[error("cannot make the workspace `{}`", path.display())]
    Workspace {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A launch with nothing left to fill in. Its values are secret.
pub(crate) struct Resolved {
    /// Whose launch it is.
    pub(super) server: ServerName,
    /// What to start or where to connect.
    pub(super) target: Target,
    /// The tenant's folder, current directory of a child.
    pub(super) workspace: PathBuf,
    /// Every secret in it, to be masked in what the server prints.
    pub(super) secrets: Vec<SecretString>,
    /// Changes when any value changes: a session started from other values is not reused.
    pub(super) fingerprint: [u8; 32],
}

/// What to start or where to connect.
pub(super) enum Target {
    /// A child process.
    Child {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, on top of the allow-list.
        env: Vec<(String, SecretString)>,
    },
    /// A remote endpoint.
    Remote {
        /// Its URL.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, SecretString)>,
    },
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolved")
            .field("server", &self.server)
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}

/// Fills in a server's launch for a tenant. `workspaces` is where tenants' folders are.
pub(crate) fn resolve(
    server: &Server,
    tenant: &TenantId,
    settings: &dyn Settings,
    workspaces: &Path,
) -> Result<Resolved, ResolveError> {
    let Some(launch) = &server.launch else {
        return Err(ResolveError::NoLaunch(server.name.clone()));
    };
    check_complete(server, tenant, settings)?;
    let workspace = workspaces.join(tenant.as_str());
    make_private(&workspace)?;
    let mut filler = Filler {
        server,
        tenant,
        settings,
        workspace: &workspace,
        secrets: Vec::new(),
    };
    let target = filler.launch(launch)?;
    let secrets = filler.secrets;
    Ok(Resolved {
        server: server.name.clone(),
        fingerprint: fingerprint(&target),
        target,
        workspace,
        secrets,
    })
}

fn check_complete(
    server: &Server,
    tenant: &TenantId,
    settings: &dyn Settings,
) -> Result<(), ResolveError> {
    let secrets: Vec<_> = server
        .secrets
        .iter()
        .filter(|slot| !slot.optional && !settings.has_secret(tenant, &slot.name))
        .map(|slot| slot.name.clone())
        .collect();
    let unset = |slot: &&ConfigSlot| {
        !slot.optional && slot.default.is_none() && settings.config(tenant, &slot.name).is_none()
    };
    let config: Vec<_> = server
        .config
        .iter()
        .filter(unset)
        .map(|slot| slot.name.clone())
        .collect();
    if secrets.is_empty() && config.is_empty() {
        return Ok(());
    }
    Err(ResolveError::Missing {
        server: server.name.clone(),
        secrets,
        config,
    })
}

/// Makes the tenant's folder, readable by nobody else.
fn make_private(path: &Path) -> Result<(), ResolveError> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .map_err(|source| ResolveError::Workspace {
            path: path.to_owned(),
            source,
        })
}

/// How a value is put into its template.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// A whole argument: it must not turn into an option.
    Argument,
    /// An environment variable or header.
    Value,
    /// A URL: what is put in cannot leave its segment.
    Url,
}

struct Filler<'a> {
    server: &'a Server,
    tenant: &'a TenantId,
    settings: &'a dyn Settings,
    workspace: &'a Path,
    secrets: Vec<SecretString>,
}

impl Filler<'_> {
    fn launch(&mut self, launch: &Launch) -> Result<Target, ResolveError> {
        match launch {
            Launch::Stdio { command, args, env } => Ok(Target::Child {
                command: command.to_string(),
                args: self.arguments(args)?,
                env: self.pairs(env)?,
            }),
            Launch::Http { url, headers } => Ok(Target::Remote {
                url: self.fill(url, Place::Url)?.unwrap_or_default(),
                headers: self.pairs(headers)?,
            }),
            Launch::Docker { image, args, env } => {
                let env = self.pairs(env)?;
                let mut argv: Vec<String> = ["run", "--rm", "--interactive", "--init"]
                    .map(str::to_owned)
                    .into();
                // The name alone: docker reads the value from its own environment, so that no
                // process list shows it.
                for (name, _) in &env {
                    argv.extend(["--env".to_owned(), name.clone()]);
                }
                argv.push(image.to_string());
                argv.extend(self.arguments(args)?);
                Ok(Target::Child {
                    command: "docker".to_owned(),
                    args: argv,
                    env,
                })
            }
        }
    }

    fn arguments(&mut self, templates: &[Template]) -> Result<Vec<String>, ResolveError> {
        let mut filled = Vec::with_capacity(templates.len());
        for template in templates {
            filled.extend(self.fill(template, Place::Argument)?);
        }
        Ok(filled)
    }

    fn pairs(
        &mut self,
        templates: &[(Box<str>, Template)],
    ) -> Result<Vec<(String, SecretString)>, ResolveError> {
        let mut filled = Vec::with_capacity(templates.len());
        for (name, template) in templates {
            if let Some(value) = self.fill(template, Place::Value)? {
                filled.push((name.to_string(), SecretString::from(value)));
            }
        }
        Ok(filled)
    }

    /// The text of a template, or `None` where it names a setting that is not set and need not be.
    fn fill(&mut self, template: &Template, place: Place) -> Result<Option<String>, ResolveError> {
        let mut text = String::new();
        for part in template.parts() {
            let (name, value) = match part {
                TemplatePart::Text(fixed) => {
                    text.push_str(fixed);
                    continue;
                }
                TemplatePart::Workspace => {
                    text.push_str(&self.workspace.to_string_lossy());
                    continue;
                }
                TemplatePart::Config(name) => (name, self.config(name)),
                TemplatePart::Secret(name) => (name, self.secret(name)?),
            };
            let Some(value) = value else {
                return Ok(None);
            };
            if value.chars().any(char::is_control) && place != Place::Value || value.contains('\0')
            {
                return Err(ResolveError::Control(name.clone()));
            }
            match place {
                Place::Argument if text.is_empty() && value.starts_with('-') => {
                    return Err(ResolveError::LooksLikeOption(name.clone()));
                }
                // A value that is the start of the URL is a URL of the tenant's own server.
                Place::Url if !text.is_empty() => push_encoded(&mut text, &value),
                Place::Argument | Place::Value | Place::Url => text.push_str(&value),
            }
        }
        Ok(Some(text))
    }

    fn config(&self, name: &SettingName) -> Option<String> {
        self.settings.config(self.tenant, name).or_else(|| {
            let slot = self.server.config.iter().find(|slot| slot.name == *name)?;
            let mut text = String::new();
            for part in slot.default.as_ref()?.parts() {
                match part {
                    TemplatePart::Text(fixed) => text.push_str(fixed),
                    TemplatePart::Workspace => text.push_str(&self.workspace.to_string_lossy()),
                    TemplatePart::Config(_) | TemplatePart::Secret(_) => return None,
                }
            }
            Some(text)
        })
    }

    fn secret(&mut self, name: &SettingName) -> Result<Option<String>, ResolveError> {
        let Some(secret) = self.settings.secret(self.tenant, name)? else {
            return Ok(None);
        };
        let value = secret.expose_secret().to_owned();
        self.secrets.push(secret);
        Ok(Some(value))
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986, section 2.3).
fn push_encoded(text: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(text, "%{byte:02X}");
        }
    }
}

fn fingerprint(target: &Target) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut add = |text: &str| {
        hasher.update(text.len().to_le_bytes());
        hasher.update(text.as_bytes());
    };
    let pairs = match target {
        Target::Child { command, args, env } => {
            add(command);
            for arg in args {
                add(arg);
            }
            env
        }
        Target::Remote { url, headers } => {
            add(url);
            headers
        }
    };
    for (name, value) in pairs {
        add(name);
        add(value.expose_secret());
    }
    hasher.finalize().into()
}
