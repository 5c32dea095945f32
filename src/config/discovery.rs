//! What the surface `discovery` offers, and how its search ranks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use globset::Glob;
use serde::{Deserialize, Serialize};

/// Longest wait for a provider's list, in milliseconds.
const LIST_MS_MAX: u64 = 10_000;

/// How `tool_search` ranks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiscoverySearch {
    /// By the tiers of the fuzzy match.
    #[default]
    Fuzzy,
    /// The catalog as `search_tools` ranks it.
    Hybrid,
}

/// The tools of the surface `discovery`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiscoverySection {
    /// How `tool_search` ranks.
    pub search: DiscoverySearch,
    /// Whether the catalog is behind the providers.
    pub catalog: bool,
    /// Globs over `toolkit__tool`: tools of the catalog that are listed as they are.
    pub native: Vec<String>,
    /// Longest wait for a provider's list, in milliseconds.
    pub list_ms: u64,
    /// Longest run of a provider's tool, in seconds.
    pub call_s: u64,
    /// Folders of scripts.
    pub scripts: Vec<ScriptsSection>,
    /// Other MCP servers, with a search of their own or without.
    pub remote: Vec<RemoteSection>,
    /// HTTP services.
    pub openapi: Vec<OpenApiSection>,
}

/// A folder of scripts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptsSection {
    /// Name of the provider.
    pub name: String,
    /// The folder.
    pub path: PathBuf,
    /// Longest run, in seconds.
    #[serde(default = "run_s")]
    pub run_s: u64,
}

/// Another MCP server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteSection {
    /// Name of the provider.
    pub name: String,
    /// Where it is; settings may stand in it.
    pub url: String,
    /// Headers of each request; settings and secrets of the tenant `local` may stand in them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// An HTTP service with an OpenAPI document.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OpenApiSection {
    /// Name of the provider.
    pub name: String,
    /// The document.
    pub path: PathBuf,
    /// Where the service is.
    pub url: String,
    /// Headers of each request by the secrets of the tenant `local` that are their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_headers: BTreeMap<String, String>,
}

fn run_s() -> u64 {
    30
}

impl Default for DiscoverySection {
    fn default() -> Self {
        Self {
            search: DiscoverySearch::Fuzzy,
            catalog: true,
            native: Vec::new(),
            list_ms: 1_500,
            call_s: 50,
            scripts: Vec::new(),
            remote: Vec::new(),
            openapi: Vec::new(),
        }
    }
}

impl DiscoverySection {
    /// What does not go together, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(wrong) = self.native.iter().find(|glob| Glob::new(glob).is_err()) {
            return Err(format!("discovery.native: `{wrong}` is not a pattern"));
        }
        if self.list_ms == 0 || LIST_MS_MAX < self.list_ms || self.call_s == 0 {
            return Err(format!(
                "discovery.list_ms: give 1 to {LIST_MS_MAX}, and discovery.call_s at least 1"
            ));
        }
        let scripts = self.scripts.iter().map(|section| &section.name);
        let remote = self.remote.iter().map(|section| &section.name);
        let openapi = self.openapi.iter().map(|section| &section.name);
        let mut seen = BTreeSet::new();
        match scripts
            .chain(remote)
            .chain(openapi)
            .find(|name| !seen.insert(*name))
        {
            Some(name) => Err(format!("discovery: two providers are named `{name}`")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_served_is_said() {
        let check = |edit: fn(&mut DiscoverySection), expected: Option<&str>| {
            let mut section = DiscoverySection::default();
            edit(&mut section);
            assert_eq!(section.check().err().as_deref(), expected);
        };
        let scripts = |name: &str| ScriptsSection {
            name: name.to_owned(),
            path: "x".into(),
            run_s: 1,
        };
        check(|_| (), None);
        check(|section| section.list_ms = 10_000, None);
        let limits = "discovery.list_ms: give 1 to 10000, and discovery.call_s at least 1";
        check(|section| section.list_ms = 10_001, Some(limits));
        check(|section| section.call_s = 0, Some(limits));
        check(
            |section| section.native = vec!["a[".to_owned()],
            Some("discovery.native: `a[` is not a pattern"),
        );
        let mut section = DiscoverySection {
            scripts: vec![scripts("a"), scripts("b")],
            ..DiscoverySection::default()
        };
        assert_eq!(section.check(), Ok(()));
        section.scripts.push(scripts("a"));
        assert!(section.check().unwrap_err().contains("`a`"));
    }
}
