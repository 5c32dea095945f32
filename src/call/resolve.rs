//! `secrets.resolve`: a server's launch with a tenant's values put in.

mod target;

use std::fmt::{self, Write as _};
use std::fs::Permissions;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

pub(super) use self::target::{Credentials, Remote, Target};

use crate::domain::{
    ConfigSlot, Launch, OAuth, ReadSettingError, Server, ServerName, SettingName, Settings,
    Template, TemplatePart, TenantId,
};

/// Mode of a tenant's folder.
const PRIVATE: u32 = 0o700;

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
    /// Whose values are in it.
    pub(super) tenant: TenantId,
    /// What to start or where to connect.
    pub(super) target: Target,
    /// The tenant's folder, current directory of a child.
    pub(super) workspace: PathBuf,
    /// Every secret in it, to be masked in what the server prints.
    pub(super) secrets: Vec<SecretString>,
    /// Changes when any value changes: a session started from other values is not reused.
    pub(super) fingerprint: [u8; 32],
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
        tenant: tenant.clone(),
        fingerprint: target.fingerprint(),
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

/// Makes the tenant's folder, readable by nobody else. What another user has put in its place is
/// refused: only the owner can change the mode of a folder.
fn make_private(path: &Path) -> Result<(), ResolveError> {
    let made = || -> std::io::Result<()> {
        let found = match std::fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(_absent) => {
                let mut builder = std::fs::DirBuilder::new();
                builder.recursive(true).mode(PRIVATE).create(path)?;
                std::fs::symlink_metadata(path)?
            }
        };
        if !found.is_dir() {
            return Err(std::io::ErrorKind::NotADirectory.into());
        }
        if found.permissions().mode() & 0o777 != PRIVATE {
            std::fs::set_permissions(path, Permissions::from_mode(PRIVATE))?;
        }
        Ok(())
    };
    made().map_err(|source| ResolveError::Workspace {
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
    /// A line of text.
    Text,
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
            Launch::Http {
                url,
                headers,
                transport,
                oauth,
            } => Ok(Target::Remote(Remote {
                url: self.fill(url, Place::Url)?.unwrap_or_default(),
                headers: self.pairs(headers)?,
                transport: *transport,
                credentials: match oauth {
                    Some(oauth) => Some(self.credentials(oauth)?),
                    None => None,
                },
            })),
            Launch::OpenApi {
                base_url,
                headers,
                operations,
            } => Ok(Target::Service {
                base_url: self.fill(base_url, Place::Url)?.unwrap_or_default(),
                headers: self.pairs(headers)?,
                operations: operations.clone(),
            }),
            // What is no image would be an option of `docker run`; no catalog file may say so, and
            // what came another way is not believed either.
            Launch::Docker { image, .. } if image.starts_with('-') => {
                Err(ResolveError::NoLaunch(self.server.name.clone()))
            }
            Launch::Docker { image, args, env } => Ok(Target::Container {
                image: image.to_string(),
                args: self.arguments(args)?,
                env: self.pairs(env)?,
            }),
        }
    }

    fn credentials(&mut self, oauth: &OAuth) -> Result<Credentials, ResolveError> {
        let mut optional = |template: &Option<Template>| match template {
            Some(template) => self.fill(template, Place::Text),
            None => Ok(None),
        };
        let (scope, resource) = (optional(&oauth.scope)?, optional(&oauth.resource)?);
        Ok(Credentials {
            token_url: self.needed(&oauth.token_url, Place::Url)?,
            client_id: self.needed(&oauth.client_id, Place::Text)?.into(),
            client_secret: self.needed(&oauth.client_secret, Place::Text)?.into(),
            scope,
            resource,
            auth: oauth.auth,
        })
    }

    /// As [`Filler::fill`], where nothing else will do, whatever the catalog calls optional.
    fn needed(&mut self, template: &Template, place: Place) -> Result<String, ResolveError> {
        let filled = self.fill(template, place)?;
        filled.ok_or_else(|| ResolveError::Missing {
            server: self.server.name.clone(),
            secrets: template.secrets().cloned().collect(),
            config: template.config().cloned().collect(),
        })
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
                Place::Argument | Place::Value | Place::Text | Place::Url => text.push_str(&value),
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
pub(super) fn push_encoded(text: &mut String, value: &str) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(text, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::domain::SecretSlot;

    /// The same values for every tenant.
    struct Fixed(HashMap<&'static str, String>);

    impl Settings for Fixed {
        fn secret(
            &self,
            tenant: &TenantId,
            name: &SettingName,
        ) -> Result<Option<SecretString>, ReadSettingError> {
            Ok(self.config(tenant, name).map(SecretString::from))
        }

        fn has_secret(&self, tenant: &TenantId, name: &SettingName) -> bool {
            self.config(tenant, name).is_some()
        }

        fn config(&self, _tenant: &TenantId, name: &SettingName) -> Option<String> {
            self.0.get(name.as_str()).cloned()
        }
    }

    fn server(launch: Launch) -> Server {
        let mut server = Server::new("db".parse().unwrap(), vec![]);
        let slot = |name: &str, default: Option<&str>| ConfigSlot {
            name: name.parse().unwrap(),
            description: Box::default(),
            default: default.map(|text| text.parse().unwrap()),
            optional: name.ends_with("maybe"),
        };
        server.config = vec![
            slot("db.host", None),
            slot("db.path", Some("{{workspace}}/data")),
            slot("db.maybe", None),
        ];
        server.secrets = vec![SecretSlot {
            name: "db.token".parse().unwrap(),
            description: Box::default(),
            optional: false,
        }];
        server.launch = Some(launch);
        server
    }

    fn stdio(args: &[&str], env: &[(&str, &str)]) -> Launch {
        Launch::Stdio {
            command: "run".into(),
            args: args.iter().map(|arg| arg.parse().unwrap()).collect(),
            env: pairs(env),
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(Box<str>, Template)> {
        let pair = |(name, value): &(&str, &str)| ((*name).into(), value.parse().unwrap());
        pairs.iter().map(pair).collect()
    }

    fn filled(launch: Launch, values: &[(&'static str, &str)]) -> Result<Resolved, ResolveError> {
        let folder = std::env::temp_dir().join("toolcrib-resolve-test");
        let values = values
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        resolve(&server(launch), &TenantId::local(), &Fixed(values), &folder)
    }

    const SET: [(&str, &str); 2] = [("db.host", "h"), ("db.token", "t0ken")];

    fn argv(resolved: Resolved) -> (Vec<String>, Vec<(String, String)>) {
        match resolved.target {
            Target::Child {
                command: first,
                args,
                env,
            }
            | Target::Container {
                image: first,
                args,
                env,
            } => {
                let env = env
                    .iter()
                    .map(|(n, v)| (n.clone(), v.expose_secret().to_owned()));
                (std::iter::once(first).chain(args).collect(), env.collect())
            }
            Target::Remote(Remote { url, headers, .. })
            | Target::Service {
                base_url: url,
                headers,
                ..
            } => {
                let headers = headers
                    .iter()
                    .map(|(n, v)| (n.clone(), v.expose_secret().to_owned()));
                (vec![url], headers.collect())
            }
        }
    }

    #[test]
    fn what_names_an_unset_optional_value_is_left_out() {
        let launch = stdio(
            &[
                "--host={{db.host}}",
                "{{db.maybe}}",
                "--data={{db.path}}",
                "end",
            ],
            &[("TOKEN", "{{secret:db.token}}"), ("MAYBE", "x{{db.maybe}}")],
        );
        let (argv, env) = argv(filled(launch, &SET).unwrap());
        assert_eq!(argv[..2], ["run", "--host=h"]);
        assert!(
            argv[2].starts_with("--data=/") && argv[2].ends_with("/local/data"),
            "{argv:?}"
        );
        assert_eq!(argv[3..], ["end"]);
        assert_eq!(env, [("TOKEN".to_owned(), "t0ken".to_owned())]);
    }

    #[test]
    fn a_workspace_is_private_and_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (own, open, link) = ["own", "open", "link"]
            .map(|name| folder.path().join(name))
            .into();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        make_private(&own.join("inside")).unwrap();
        assert_eq!(mode(&own.join("inside")), PRIVATE);
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        make_private(&open).unwrap();
        assert_eq!(mode(&open), PRIVATE);
        std::os::unix::fs::symlink(&open, &link).unwrap();
        assert!(matches!(
            make_private(&link),
            Err(ResolveError::Workspace { .. })
        ));
    }

    #[test]
    fn needed_values_that_are_not_set_are_all_named() {
        match filled(stdio(&[], &[]), &[]).unwrap_err() {
            ResolveError::Missing {
                secrets, config, ..
            } => {
                assert_eq!(secrets, ["db.token".parse().unwrap()]);
                assert_eq!(config, ["db.host".parse().unwrap()]);
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_value_that_turns_into_an_option_is_refused() {
        let values = [("db.host", "--eval=x"), ("db.token", "t")];
        let whole = filled(stdio(&["{{db.host}}"], &[]), &values).unwrap_err();
        assert!(matches!(whole, ResolveError::LooksLikeOption(_)), "{whole}");
        let (argv, _) = argv(filled(stdio(&["--host={{db.host}}"], &[]), &values).unwrap());
        assert_eq!(argv, ["run", "--host=--eval=x"]);
    }

    #[test]
    fn a_value_cannot_leave_its_place_in_a_url() {
        let headers = || pairs(&[("X-Token", "{{secret:db.token}}")]);
        let http = |url: &str| Launch::http(url.parse().unwrap(), headers());
        let values = [("db.host", "a/../b?c#d@e"), ("db.token", "t")];
        let (url, headers) =
            argv(filled(http("https://x.example/{{db.host}}/mcp"), &values).unwrap());
        assert_eq!(url, ["https://x.example/a%2F..%2Fb%3Fc%23d%40e/mcp"]);
        assert_eq!(headers, [("X-Token".to_owned(), "t".to_owned())]);
        let own = [("db.host", "https://own.example:8443"), ("db.token", "t")];
        let (url, _) = argv(filled(http("{{db.host}}/mcp"), &own).unwrap());
        assert_eq!(url, ["https://own.example:8443/mcp"]);
    }

    #[test]
    fn a_container_has_its_arguments_and_its_environment() {
        let launch = Launch::Docker {
            image: "mcp/db:1".into(),
            args: vec!["--host={{db.host}}".parse().unwrap()],
            env: pairs(&[("TOKEN", "{{secret:db.token}}")]),
        };
        let (argv, env) = argv(filled(launch, &SET).unwrap());
        assert_eq!(argv, ["mcp/db:1", "--host=h"]);
        assert_eq!(env, [("TOKEN".to_owned(), "t0ken".to_owned())]);
    }

    #[test]
    fn an_image_cannot_be_an_option() {
        let launch = Launch::Docker {
            image: "--volume=/:/host:1".into(),
            args: vec![],
            env: pairs(&[]),
        };
        let refused = filled(launch, &SET).unwrap_err();
        assert!(matches!(refused, ResolveError::NoLaunch(_)), "{refused:?}");
    }

    #[test]
    fn every_value_counts_for_the_fingerprint_and_none_is_shown() {
        let launch = || stdio(&["{{db.host}}"], &[("TOKEN", "{{secret:db.token}}")]);
        let one = filled(launch(), &SET).unwrap();
        assert_eq!(one.fingerprint, filled(launch(), &SET).unwrap().fingerprint);
        let other = filled(launch(), &[("db.host", "h"), ("db.token", "other")]).unwrap();
        assert_ne!(one.fingerprint, other.fingerprint);
        assert!(!format!("{one:?}").contains("t0ken"));
        assert!(!format!("{:?}", launch_error()).contains("t0ken"));
    }

    fn launch_error() -> ResolveError {
        let values = [("db.host", "a\nb"), ("db.token", "t0ken")];
        filled(stdio(&["{{db.host}}"], &[]), &values).unwrap_err()
    }

    proptest! {
        #[test]
        fn no_value_adds_an_argument_or_becomes_an_option(value in "-?\\PC{0,20}") {
            let launch = stdio(&["first", "{{db.host}}", "--x={{db.host}}"], &[("V", "{{db.host}}")]);
            if let Ok(resolved) = filled(launch, &[("db.host", &value), ("db.token", "t")]) {
                let (argv, env) = argv(resolved);
                prop_assert_eq!(argv.len(), 4);
                prop_assert_eq!(&argv[2], &value);
                prop_assert!(!argv[2].starts_with('-') && !value.contains('\0'));
                prop_assert_eq!(&argv[3], &format!("--x={value}"));
                prop_assert_eq!(&env[0].1, &value);
            }
        }
    }
}
