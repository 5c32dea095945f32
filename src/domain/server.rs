//! An MCP server in the catalog: how it is started, what it needs, which tools it has.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::domain::{
    HttpTransport, OAuth, Operation, ServerName, SettingName, Tool, ToolName, clean_line,
    clean_text,
};

/// Longest server description kept, in characters.
const DESCRIPTION_MAX: usize = 2_000;
/// Longest title, category, tag or owner kept, in characters.
const LINE_MAX: usize = 120;

/// Why a text is not a template.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// `{{` without `}}`.
    #[error("`{0}` opens `{{{{` and does not close it")]
    Unclosed(String),
    /// What stands between the braces is no name.
    #[error(
        "`{text}` names no setting: write `{{{{server.name}}}}` or `{{{{secret:server.name}}}}`"
    )]
    Name {
        /// The template.
        text: String,
        /// What is wrong with the name.
        source: crate::domain::ParseNameError,
    },
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TemplatePart {
    /// Text that stands for itself.
    Text(Box<str>),
    /// `{{name}}`: a configuration value.
    Config(SettingName),
    /// `{{secret:name}}`: a secret.
    Secret(SettingName),
    /// `{{workspace}}`: a folder of the tenant's own.
    Workspace,
}

/// Text with places for settings, as in `Bearer {{secret:github.token}}`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Template(Vec<TemplatePart>);

impl Template {
    /// The pieces in order.
    pub fn parts(&self) -> &[TemplatePart] {
        &self.0
    }

    /// The configuration values it needs.
    pub fn config(&self) -> impl Iterator<Item = &SettingName> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Config(name) => Some(name),
            _ => None,
        })
    }

    /// The secrets it needs.
    pub fn secrets(&self) -> impl Iterator<Item = &SettingName> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Secret(name) => Some(name),
            _ => None,
        })
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.into()));
            }
            let (inside, tail) = after
                .split_once("}}")
                .ok_or_else(|| TemplateError::Unclosed(text.to_owned()))?;
            let name = |name: &str| {
                name.parse().map_err(|source| TemplateError::Name {
                    text: text.to_owned(),
                    source,
                })
            };
            let inside = inside.trim();
            parts.push(match inside.strip_prefix("secret:") {
                Some(secret) => TemplatePart::Secret(name(secret.trim())?),
                None if inside == "workspace" => TemplatePart::Workspace,
                None => TemplatePart::Config(name(inside)?),
            });
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.into()));
        }
        Ok(Self(parts))
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            TemplatePart::Text(text) => f.write_str(text),
            TemplatePart::Config(name) => write!(f, "{{{{{name}}}}}"),
            TemplatePart::Secret(name) => write!(f, "{{{{secret:{name}}}}}"),
            TemplatePart::Workspace => f.write_str("{{workspace}}"),
        })
    }
}

/// How a server is reached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Launch {
    /// A child process that speaks MCP on its standard streams. No shell is involved.
    Stdio {
        /// The program.
        command: Box<str>,
        /// Its arguments, one template each; a template never becomes two arguments.
        args: Vec<Template>,
        /// Its environment, on top of a small allow-list.
        env: Vec<(Box<str>, Template)>,
    },
    /// A remote server.
    Http {
        /// Its endpoint.
        url: Template,
        /// Headers of each request.
        headers: Vec<(Box<str>, Template)>,
        /// What it speaks.
        transport: HttpTransport,
        /// Where its access tokens come from, if it takes any.
        oauth: Option<Box<OAuth>>,
    },
    /// A container image whose standard streams speak MCP.
    Docker {
        /// Image with tag or digest.
        image: Box<str>,
        /// Arguments behind the image.
        args: Vec<Template>,
        /// Environment inside the container.
        env: Vec<(Box<str>, Template)>,
    },
    /// A service that speaks plain HTTP and no MCP: each tool is one of its operations.
    OpenApi {
        /// Its address; the paths of operations go behind it.
        base_url: Template,
        /// Headers of each request.
        headers: Vec<(Box<str>, Template)>,
        /// The operation of each tool; a tool without one is found but not run.
        operations: Operations,
    },
}

/// Operations of an HTTP service by the tools that they are.
pub type Operations = Arc<BTreeMap<ToolName, Operation>>;

impl Launch {
    /// A remote server on streamable HTTP, without OAuth.
    pub fn http(url: Template, headers: Vec<(Box<str>, Template)>) -> Self {
        Self::Http {
            url,
            headers,
            transport: HttpTransport::default(),
            oauth: None,
        }
    }

    /// All templates in it.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let (url, args, pairs): (Option<&Template>, &[Template], _) = match self {
            Self::Stdio { args, env, .. } | Self::Docker { args, env, .. } => (None, args, env),
            Self::Http { url, headers, .. } => (Some(url), &[], headers),
            Self::OpenApi {
                base_url, headers, ..
            } => (Some(base_url), &[], headers),
        };
        url.into_iter()
            .chain(args)
            .chain(pairs.iter().map(|(_, template)| template))
            .chain(self.oauth().into_iter().flat_map(OAuth::templates))
    }

    /// Where its access tokens come from, if it takes any.
    fn oauth(&self) -> Option<&OAuth> {
        match self {
            Self::Http { oauth, .. } => oauth.as_deref(),
            Self::Stdio { .. } | Self::Docker { .. } | Self::OpenApi { .. } => None,
        }
    }

    /// Templates that end up where other users of the machine, or logs, can read them: arguments
    /// of processes and URLs.
    fn visible_templates(&self) -> Vec<&Template> {
        match self {
            Self::Stdio { args, .. } | Self::Docker { args, .. } => args.iter().collect(),
            Self::Http { url, oauth, .. } => {
                let tokens = oauth.iter().flat_map(|oauth| oauth.visible_templates());
                std::iter::once(url).chain(tokens).collect()
            }
            Self::OpenApi { base_url, .. } => vec![base_url],
        }
    }
}

/// A secret that a server asks for. The value is the tenant's and never in the catalog.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SecretSlot {
    /// Name, as in `{{secret:name}}`.
    pub name: SettingName,
    /// Where to get it.
    pub description: Box<str>,
    /// Whether the server runs without it.
    pub optional: bool,
}

/// A configuration value that a server asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigSlot {
    /// Name, as in `{{name}}`.
    pub name: SettingName,
    /// What it means.
    pub description: Box<str>,
    /// Used where the tenant sets nothing. May hold `{{workspace}}`.
    pub default: Option<Template>,
    /// Whether the server runs without it.
    pub optional: bool,
}

/// Where an entry comes from.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Provenance {
    /// The source, such as `default` or a package.
    pub source: Box<str>,
    /// Version of the server that the entry describes.
    pub version: Box<str>,
    /// Licence of the server.
    pub license: Box<str>,
}

/// Why a launch does not fit the settings that its server declares.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A template names a secret that is not declared.
    #[error("`{{{{secret:{0}}}}}` is used but not declared: add it under `[[secrets]]`")]
    UnknownSecret(SettingName),
    /// A template names a configuration value that is not declared.
    #[error("`{{{{{0}}}}}` is used but not declared: add it under `[[config]]`")]
    UnknownConfig(SettingName),
    /// A secret in an argument or URL.
    #[error(
        "secret `{0}` stands in an argument or URL, which process lists and logs show: \
         pass it in `env` or `headers`"
    )]
    VisibleSecret(SettingName),
    /// OAuth beside a header that says the same in another way.
    #[error("`oauth` and a header `Authorization` exclude each other: each would set the other's")]
    TwoAuthorizations,
}

/// A server of the catalog. Immutable once built.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its name, unique in a catalog.
    pub name: ServerName,
    /// Human title.
    pub title: Box<str>,
    /// What it is for.
    pub description: Box<str>,
    /// One word, such as `communication`; empty when unknown.
    pub category: Box<str>,
    /// More words.
    pub tags: Vec<Box<str>>,
    /// Who publishes it.
    pub owner: Box<str>,
    /// How it is reached; `None` for an entry that can be found but not run.
    pub launch: Option<Launch>,
    /// Secrets that it asks for.
    pub secrets: Vec<SecretSlot>,
    /// Configuration values that it asks for.
    pub config: Vec<ConfigSlot>,
    /// Its tools, in the order of the source.
    pub tools: Vec<Tool>,
    /// Where the entry comes from.
    pub provenance: Provenance,
}

impl Server {
    /// A server with a name and tools, and nothing else known.
    pub fn new(name: ServerName, tools: Vec<Tool>) -> Self {
        Self {
            title: name.as_str().into(),
            name,
            description: Box::default(),
            category: Box::default(),
            tags: Vec::new(),
            owner: Box::default(),
            launch: None,
            secrets: Vec::new(),
            config: Vec::new(),
            tools,
            provenance: Provenance::default(),
        }
    }

    /// With its texts cleaned of hidden characters and cut at their limits.
    #[must_use]
    pub fn cleaned(mut self) -> Self {
        let line = |text: &str| clean_line(text, LINE_MAX).into_boxed_str();
        self.title = line(&self.title);
        self.description = clean_text(&self.description, DESCRIPTION_MAX).into();
        self.category = line(&self.category);
        self.owner = line(&self.owner);
        self.tags = self.tags.iter().map(|tag| line(tag)).collect();
        self
    }

    /// Checks that the launch uses declared settings only, and no secret where it can be seen.
    pub fn check_launch(&self) -> Result<(), LaunchError> {
        let Some(launch) = &self.launch else {
            return Ok(());
        };
        let secrets: HashSet<_> = self.secrets.iter().map(|slot| &slot.name).collect();
        let config: HashSet<_> = self.config.iter().map(|slot| &slot.name).collect();
        for template in launch.templates() {
            if let Some(name) = template.secrets().find(|name| !secrets.contains(name)) {
                return Err(LaunchError::UnknownSecret(name.clone()));
            }
            if let Some(name) = template.config().find(|name| !config.contains(name)) {
                return Err(LaunchError::UnknownConfig(name.clone()));
            }
        }
        for template in launch.visible_templates() {
            if let Some(name) = template.secrets().next() {
                return Err(LaunchError::VisibleSecret(name.clone()));
            }
        }
        match launch {
            Launch::Http {
                headers,
                oauth: Some(_),
                ..
            } if headers
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case("authorization")) =>
            {
                Err(LaunchError::TwoAuthorizations)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_prints_as_it_was_written() {
        for text in [
            "",
            "plain",
            "Bearer {{secret:a.b}}",
            "{{workspace}}/x/{{a.c}}",
            "}} {",
        ] {
            assert_eq!(text.parse::<Template>().unwrap().to_string(), text);
        }
        assert_eq!(
            "{{ a.b }}".parse::<Template>().unwrap().to_string(),
            "{{a.b}}"
        );
    }

    #[test]
    fn a_broken_template_says_what_is_wrong() {
        assert_eq!(
            "{{a".parse::<Template>().unwrap_err().to_string(),
            "`{{a` opens `{{` and does not close it"
        );
        assert_eq!(
            "{{a b}}".parse::<Template>().unwrap_err().to_string(),
            "`{{a b}}` names no setting: write `{{server.name}}` or `{{secret:server.name}}`"
        );
    }

    #[test]
    fn a_secret_in_an_argument_is_refused() {
        let mut server = Server::new("db".parse().unwrap(), vec![]);
        server.secrets.push(SecretSlot {
            name: "db.password".parse().unwrap(),
            description: Box::default(),
            optional: false,
        });
        server.launch = Some(Launch::Stdio {
            command: "db".into(),
            args: vec!["--password={{secret:db.password}}".parse().unwrap()],
            env: vec![],
        });
        assert_eq!(
            server.check_launch(),
            Err(LaunchError::VisibleSecret("db.password".parse().unwrap()))
        );
    }
}
