//! Configuration: defaults < `toolcrib.toml` < `TOOLCRIB_SECTION__KEY` < flags.
//!
//! Unknown keys are errors, wherever they stand. Only this module reads the environment.

mod home;
mod sections;
mod tools;
mod discovery;
mod overlay;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::discovery::{
    DiscoverySearch, DiscoverySection, OpenApiSection, RemoteSection, ScriptsSection,
};
pub use self::home::{FindHomeError, Home};
pub use self::sections::{
    CatalogSection, HandlesSection, LimitsSection, LogFormat, LogSection, ModelSection,
    RankingSection, ServerSection, SourceSection, Surface, UpstreamsSection,
};
pub use self::tools::{
    EagerPolicy, EagerSection, IndexEntry, IndexSection, IndexType, SearchField, SearchSection,
    ToolsSection,
};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadConfigError {
    /// The file that was named is not readable.
    #[error("cannot read configuration file `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no TOML.
    #[error("configuration file `{}` is not TOML:\n{source}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A key is unknown, or a value does not fit.
    #[error("{origin}: {message}; `toolcrib config show` prints all keys with their values")]
    Value {
        /// File or environment variable.
        origin: String,
        /// What is wrong.
        message: String,
    },
    /// Two values do not go together.
    #[error("{0}")]
    Conflict(String),
}

/// All settings of the program.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Listening and shutdown.
    pub server: ServerSection,
    /// Where tools come from.
    pub catalog: CatalogSection,
    /// The embedding model.
    pub model: ModelSection,
    /// What the surface `gateway` lists.
    pub tools: ToolsSection,
    /// What the surface `discovery` offers.
    pub discovery: DiscoverySection,
    /// Weights of the ranking.
    pub ranking: RankingSection,
    /// Handles.
    pub handles: HandlesSection,
    /// Sessions with the MCP servers behind.
    pub upstreams: UpstreamsSection,
    /// What one tenant may use.
    pub limits: LimitsSection,
    /// Logging.
    pub log: LogSection,
}

impl Config {
    /// Reads a file, if there is one, and lays the environment over it.
    ///
    /// `file` is the one that was named; without it `toolcrib.toml` in the home folder is read
    /// when it is there.
    pub fn read(
        file: Option<&Path>,
        home: &Home,
        env: &Environment,
    ) -> Result<Self, ReadConfigError> {
        let fallback = home.config_file();
        let path = match file {
            Some(path) => Some(path),
            None => Some(fallback.as_path()).filter(|path| path.is_file()),
        };
        let mut table = toml::Table::new();
        if let Some(path) = path {
            let text = std::fs::read_to_string(path).map_err(|source| ReadConfigError::Read {
                path: path.to_owned(),
                source,
            })?;
            table = text.parse().map_err(|source| ReadConfigError::Syntax {
                path: path.to_owned(),
                source: Box::new(source),
            })?;
            // Checked alone first, so that the message names the file and the line.
            toml::from_str::<Self>(&text).map_err(|source| ReadConfigError::Value {
                origin: format!("configuration file `{}`", path.display()),
                message: source.to_string().trim_end().to_owned(),
            })?;
        }
        let config = overlay::lay_over(table, &env.sections)?;
        config.check()?;
        Ok(config)
    }

    /// The configuration as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).unwrap_or_default()
    }

    fn check(&self) -> Result<(), ReadConfigError> {
        let conflict = |text: &str| Err(ReadConfigError::Conflict(text.to_owned()));
        if !(0.0..=1.0).contains(&self.ranking.vector_share) {
            return conflict("ranking.vector_share is a share: give 0.0 to 1.0");
        }
        if !(0.0..=1.0).contains(&self.ranking.lambda) {
            return conflict("ranking.lambda is a share: give 0.0 to 1.0");
        }
        if self.ranking.pool < 3 || 1_000 < self.ranking.pool {
            return conflict("ranking.pool is the number of candidates: give 3 to 1000");
        }
        if self.limits.concurrent == 0 || self.upstreams.total_max == 0 {
            return conflict("limits.concurrent and upstreams.total_max must be at least 1");
        }
        if self.upstreams.memory_mib_max < 64 || self.upstreams.processes_max == 0 {
            return conflict(
                "upstreams.memory_mib_max must be at least 64, upstreams.processes_max at least 1",
            );
        }
        if self.upstreams.docker_network.starts_with('-') {
            return conflict("upstreams.docker_network is the name of a network");
        }
        let surfaces = &self.server.surfaces;
        for (at, surface) in surfaces.iter().enumerate() {
            if surfaces.iter().skip(at + 1).any(|other| other == surface) {
                let name = surface.name();
                return conflict(&format!("server.surfaces names `{name}` twice"));
            }
        }
        self.tools.check().map_err(ReadConfigError::Conflict)?;
        self.discovery.check().map_err(ReadConfigError::Conflict)?;
        if self.model.threads == 0 || 64 < self.model.threads {
            return conflict("model.threads: give 1 to 64");
        }
        Ok(())
    }
}

/// What of the environment concerns us. Read once, in `main`.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `TOOLCRIB_HOME`.
    pub home: Option<PathBuf>,
    /// `TOOLCRIB_CONFIG`.
    pub config: Option<PathBuf>,
    /// `TOOLCRIB_KEY`, the key of the secrets at rest.
    pub key: Option<secrecy::SecretString>,
    /// `TOOLCRIB_CONNECTION`, a connection string for `serve --stdio`.
    pub connection: Option<secrecy::SecretString>,
    /// `TOOLCRIB_SECTION__KEY`, as `section.key`.
    pub sections: BTreeMap<String, String>,
}

impl Environment {
    /// Takes what starts with `TOOLCRIB_` from a list of variables.
    pub fn from_variables(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut env = Self::default();
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix("TOOLCRIB_") else {
                continue;
            };
            match rest {
                "HOME" => env.home = Some(value.into()),
                "CONFIG" => env.config = Some(value.into()),
                "KEY" => env.key = Some(value.into()),
                "CONNECTION" => env.connection = Some(value.into()),
                _ => {
                    if let Some((section, key)) = rest.split_once("__") {
                        let path = format!("{section}.{key}").to_lowercase();
                        env.sections.insert(path, value);
                    }
                }
            }
        }
        env
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        let owned = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Environment::from_variables(owned)
    }

    fn read(text: &str, pairs: &[(&str, &str)]) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolcrib.toml");
        std::fs::write(&path, text).unwrap();
        let home = Home::at(folder.path());
        Config::read(None, &home, &env(pairs)).map_err(|error| {
            error
                .to_string()
                .replace(&path.display().to_string(), "FILE")
        })
    }

    #[test]
    fn the_environment_goes_over_the_file_over_the_defaults() {
        let text = "[server]\nlisten = \"127.0.0.1:1\"\n[handles]\nalive_max = 7\n";
        let config = read(text, &[("TOOLCRIB_HANDLES__ALIVE_MAX", "9")]).unwrap();
        assert_eq!(config.server.listen.port(), 1);
        assert_eq!(config.handles.alive_max, 9);
        assert_eq!(config.limits, LimitsSection::default());
    }

    #[test]
    fn lists_and_texts_come_from_the_environment_too() {
        let pairs = [
            (
                "TOOLCRIB_SERVER__ALLOWED_HOSTS",
                r#"["a.example", "b.example"]"#,
            ),
            ("TOOLCRIB_LOG__LEVEL", "debug"),
            ("TOOLCRIB_CATALOG__PATHS", "/srv/catalog"),
        ];
        let config = read("", &pairs).unwrap();
        assert_eq!(config.server.allowed_hosts, ["a.example", "b.example"]);
        assert_eq!(config.log.level, "debug");
        assert_eq!(config.catalog.paths, [PathBuf::from("/srv/catalog")]);
    }

    #[test]
    fn unknown_keys_are_errors_wherever_they_stand() {
        insta::assert_snapshot!(read("[server]\nlisen = 1\n", &[]).unwrap_err());
        insta::assert_snapshot!(read("", &[("TOOLCRIB_SERVER__LISEN", "1")]).unwrap_err());
        insta::assert_snapshot!(read("", &[("TOOLCRIB_HANDLES__ALIVE_MAX", "many")]).unwrap_err());
    }

    #[test]
    fn a_surface_is_served_beside_once() {
        let twice = "[server]\nsurfaces = [\"gateway\", \"connected\", \"gateway\"]\n";
        assert_eq!(
            read(twice, &[]).unwrap_err(),
            "server.surfaces names `gateway` twice"
        );
        let once = "[server]\nsurface = \"gateway\"\nsurfaces = [\"connected\"]\n";
        let server = read(once, &[]).unwrap().server;
        assert_eq!(server.surface, Surface::Gateway);
        assert_eq!(server.surfaces, [Surface::Connected]);
    }

    #[test]
    fn the_printed_configuration_reads_back() {
        let config = Config::default();
        assert_eq!(toml::from_str::<Config>(&config.to_toml()).unwrap(), config);
        insta::assert_snapshot!(config.to_toml());
    }
}
