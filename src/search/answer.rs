//! What a search answers with.

use std::fmt;
use std::sync::Arc;

use crate::domain::{
    Catalog, Handle, RunId, Server, SettingName, Settings, Slot, TenantId, Tool, ToolId,
};

/// The answer to a query: one to three tools, best first, and the handle that opens one of them.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Ties the search to its run.
    pub run_id: RunId,
    /// Opens one of the picks, once.
    pub handle: Handle,
    /// Best first.
    pub picks: Vec<Pick>,
    /// How many tools this tenant may use.
    pub tools_total: usize,
    /// Why the answer is less good than it could be.
    pub degraded: Option<Degraded>,
}

/// Why the keyword side answered alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Degraded {
    /// The vectors of the catalog are still being made.
    IndexBuilding,
    /// No model is installed.
    ModelMissing,
    /// Too many queries wait for the model.
    ModelBusy,
    /// The model failed.
    ModelFailed,
}

impl fmt::Display for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IndexBuilding => "the index is still being built",
            Self::ModelMissing => "no embedding model is installed",
            Self::ModelBusy => "the embedding model is busy",
            Self::ModelFailed => "the embedding model failed",
        })
    }
}

/// What searches can be answered from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Readiness {
    /// There is no tool.
    Empty,
    /// Keywords alone.
    KeywordOnly {
        /// How many tools there are.
        tools: usize,
    },
    /// Keywords and vectors.
    Ready {
        /// How many tools there are.
        tools: usize,
    },
}

/// Settings that a tenant has to make before a tool can run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Requires {
    /// Secrets.
    pub secrets: Vec<SettingName>,
    /// Configuration values.
    pub config: Vec<SettingName>,
}

impl Requires {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.config.is_empty()
    }

    /// What a server's launch needs, is not optional, has no default and is not set.
    fn of(server: &Server, tenant: &TenantId, settings: &dyn Settings) -> Self {
        let Some(launch) = &server.launch else {
            return Self::default();
        };
        let used = |name: &SettingName| {
            let mut templates = launch.templates();
            templates.any(|template| {
                template.secrets().any(|used| used == name)
                    || template.config().any(|used| used == name)
            })
        };
        let secrets = server.secrets.iter().filter(|slot| {
            !slot.optional && used(&slot.name) && !settings.has_secret(tenant, &slot.name)
        });
        let config = server.config.iter().filter(|slot| {
            !slot.optional
                && slot.default.is_none()
                && used(&slot.name)
                && settings.config(tenant, &slot.name).is_none()
        });
        Self {
            secrets: secrets.map(|slot| slot.name.clone()).collect(),
            config: config.map(|slot| slot.name.clone()).collect(),
        }
    }
}

/// A tool that was found.
#[derive(Clone)]
pub struct Pick {
    /// Its server.
    pub server: Arc<Server>,
    /// What this tenant still has to set to run it.
    pub requires: Requires,
    catalog: Arc<Catalog>,
    slot: Slot,
}

impl Pick {
    pub(super) fn new(
        catalog: &Arc<Catalog>,
        slot: Slot,
        tenant: &TenantId,
        settings: &dyn Settings,
    ) -> Self {
        let server = catalog.server_of(slot).clone();
        Self {
            requires: Requires::of(&server, tenant, settings),
            server,
            catalog: catalog.clone(),
            slot,
        }
    }

    /// The tool.
    pub fn tool(&self) -> &Tool {
        self.catalog.tool(self.slot)
    }

    /// Its id.
    pub fn id(&self) -> ToolId {
        self.catalog.id(self.slot)
    }
}

impl fmt::Debug for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pick({})", self.id())
    }
}

/// An error and its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
