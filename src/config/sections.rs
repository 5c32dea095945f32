//! The sections of the configuration, each with its defaults.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which tools the server lists.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// `search_tools` and `run_tool`.
    #[default]
    Connected,
    /// Eager tools as they are, and three tools for all the others.
    Gateway,
    /// `tool_search` and `execute_tool`.
    Discovery,
}

impl Surface {
    /// As it is written in the configuration and in paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Gateway => "gateway",
            Self::Discovery => "discovery",
        }
    }
}

/// Listening and shutdown.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSection {
    /// Where `/mcp` listens.
    pub listen: SocketAddr,
    /// Where `/livez`, `/readyz` and `/metrics` listen; keep it private.
    pub admin_listen: SocketAddr,
    /// Host names that requests may carry, besides the loopback names.
    pub allowed_hosts: Vec<String>,
    /// Browser origins that requests may carry, besides loopback ones, as `https://host[:port]`.
    pub allowed_origins: Vec<String>,
    /// Which tools `/mcp` lists.
    pub surface: Surface,
    /// Surfaces to serve beside it, each at `/mcp/<name>`, over the same catalog and index.
    pub surfaces: Vec<Surface>,
    /// Largest request body, in bytes.
    pub body_bytes_max: usize,
    /// How long calls in flight may finish at shutdown, in seconds.
    pub grace_s: u64,
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)),
            admin_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8788)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            surface: Surface::Connected,
            surfaces: Vec::new(),
            body_bytes_max: 256 * 1024,
            grace_s: 30,
        }
    }
}

/// Where tools come from.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CatalogSection {
    /// Whether the default catalog is loaded.
    pub builtin: bool,
    /// Folders of TOML files, or single ones; a later server takes the place of an earlier one of
    /// the same name.
    pub paths: Vec<PathBuf>,
    /// Seconds between two refreshes of the sources in a server; 0 for none.
    pub refresh_s: u64,
    /// Seconds after which a registry is read whole again, and not only what changed in it.
    pub whole_read_s: u64,
    /// Whether the URL of a source may be plain `http` to a loopback address.
    pub allow_loopback: bool,
    /// Policies of single servers, over those of their sources: `trust`, `pin` or `quarantine`.
    pub policies: BTreeMap<String, String>,
    /// Catalogs that others publish. The files above go over them.
    pub sources: Vec<SourceSection>,
}

/// A catalog that somebody publishes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSection {
    /// Its name, unique among the sources.
    pub name: String,
    /// How it is written.
    pub format: String,
    /// The file or folder that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Where it is on the web, instead of `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What becomes of definitions that are new or changed: `trust`, `pin` or `quarantine`.
    #[serde(default = "pin")]
    pub policy: String,
    /// Hosts beside the one of `url` that lists of tools named in it may be fetched from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists_from: Vec<String>,
}

fn pin() -> String {
    "pin".to_owned()
}

impl Default for CatalogSection {
    fn default() -> Self {
        Self {
            builtin: true,
            paths: Vec::new(),
            refresh_s: 3_600,
            whole_read_s: 86_400,
            allow_loopback: false,
            policies: BTreeMap::new(),
            sources: Vec::new(),
        }
    }
}

/// The embedding model.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSection {
    /// Whether a model is used at all; without one the ranking is by keywords.
    pub enabled: bool,
    /// Name of the model in `toolcrib models list`.
    pub name: String,
    /// Name of the second model, for queries that are not English; used where it is fetched
    /// (`toolcrib models fetch e5-multilingual`), empty for none.
    pub multilingual: String,
    /// Texts embedded side by side, each on a thread of its own with a copy of the model.
    pub threads: usize,
}

impl Default for ModelSection {
    fn default() -> Self {
        Self {
            enabled: true,
            name: "minilm-int8".to_owned(),
            multilingual: "e5-multilingual".to_owned(),
            threads: 2,
        }
    }
}

/// Weights of the ranking; `docs/ranking.md` says what each does.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RankingSection {
    /// Share of the vector score; the rest is the keyword score's.
    pub vector_share: f32,
    /// Relevance against variety in the choice of three; 1 is relevance alone.
    pub lambda: f32,
    /// Candidates by vector.
    pub pool: usize,
}

impl Default for RankingSection {
    fn default() -> Self {
        Self {
            vector_share: 0.68,
            lambda: 0.9,
            pool: 50,
        }
    }
}

/// Handles.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HandlesSection {
    /// Handles alive at one time for one tenant.
    pub alive_max: usize,
}

impl Default for HandlesSection {
    fn default() -> Self {
        Self {
            alive_max: crate::handles::ALIVE_MAX,
        }
    }
}

/// Sessions with the MCP servers behind.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamsSection {
    /// Longest start of a server, in seconds. The first `npx` or `uvx` of a package downloads it.
    pub connect_s: u64,
    /// Longest run without a sign of life, in seconds.
    pub call_s: u64,
    /// Longest run altogether, in seconds.
    pub total_s: u64,
    /// A session without calls is closed after so many seconds.
    pub idle_s: u64,
    /// Sessions at one time.
    pub total_max: usize,
    /// Sessions at one time for one tenant.
    pub tenant_max: usize,
    /// Longest result, in characters; longer ones are cut and marked.
    pub result_chars_max: usize,
    /// Memory of one server's processes, in MiB; a server with more is ended.
    pub memory_mib_max: u64,
    /// Processes of one server; a server with more is ended.
    pub processes_max: usize,
    /// The network that containers join; empty for docker's own default.
    pub docker_network: String,
    /// Folders with an `installed.json`: servers there start without `npx` or `uvx`.
    pub installed: Vec<PathBuf>,
    /// Whether remote servers may be at loopback addresses, over plain `http`.
    pub allow_loopback: bool,
}

impl Default for UpstreamsSection {
    fn default() -> Self {
        Self {
            connect_s: 30,
            call_s: 50,
            total_s: 50,
            idle_s: 300,
            total_max: 64,
            tenant_max: 16,
            result_chars_max: 45_000,
            memory_mib_max: 4_096,
            processes_max: 256,
            docker_network: String::new(),
            installed: Vec::new(),
            allow_loopback: false,
        }
    }
}

/// What one tenant may use; a tenant's own limits go over these.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Searches a minute.
    pub searches_per_minute: u32,
    /// Runs a minute.
    pub runs_per_minute: u32,
    /// Requests at one time.
    pub concurrent: usize,
}

impl Default for LimitsSection {
    fn default() -> Self {
        Self {
            searches_per_minute: 6_000,
            runs_per_minute: 1_200,
            concurrent: 64,
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One line of text an event.
    #[default]
    Text,
    /// One JSON object an event.
    Json,
}

/// Logging, to standard error.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// `error`, `warn`, `info`, `debug`, `trace`, or `target=level` filters.
    pub level: String,
    /// How lines look.
    pub format: LogFormat,
}

impl Default for LogSection {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
        }
    }
}
