//! From the configuration to the providers of the surface `discovery`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use secrecy::SecretString;

use crate::app::App;
use crate::catalog::import::Document;
use crate::config::{DiscoverySearch, OpenApiSection, RemoteSection};
use crate::domain::{Launch, Server, Settings, TenantId};
use crate::registry::{
    Deadlines, OpenApiOptions, OpenApiProvider, Providers, RemoteProvider, ScriptFolder,
    ScriptLimits, ToolProvider,
};
use crate::toolkits::Eager;
use crate::transport::mcp::{CatalogTools, Discovery, Match};

impl App {
    /// The surface with all providers that are configured.
    pub(super) fn discovery(&self) -> anyhow::Result<Discovery> {
        let section = &self.place.config.discovery;
        let deadlines = Deadlines {
            list: Duration::from_millis(section.list_ms),
            call: Duration::from_secs(section.call_s),
        };
        let providers = Providers::new(deadlines, self.lifecycle.clone());
        for scripts in &section.scripts {
            let limits = ScriptLimits {
                run_max: Duration::from_secs(scripts.run_s),
                ..ScriptLimits::default()
            };
            let folder = ScriptFolder::new(&scripts.name, &scripts.path, limits);
            add(&providers, Arc::new(folder.context("discovery.scripts")?))?;
        }
        for remote in &section.remote {
            let server = server_of(remote).context("discovery.remote")?;
            add(
                &providers,
                Arc::new(RemoteProvider::new(server, Arc::clone(&self.caller))),
            )?;
        }
        for openapi in &section.openapi {
            add(
                &providers,
                Arc::new(self.openapi(openapi).context("discovery.openapi")?),
            )?;
        }
        let native = Eager::matching(&section.native).context("discovery.native")?;
        let catalog = section.catalog.then(|| CatalogTools::new(native));
        let by = match section.search {
            DiscoverySearch::Fuzzy => Match::Fuzzy,
            DiscoverySearch::Hybrid => Match::Hybrid,
        };
        let desk = Arc::clone(&self.desk);
        Ok(Discovery::new(desk, Arc::new(providers), catalog, by))
    }

    fn openapi(&self, section: &OpenApiSection) -> anyhow::Result<OpenApiProvider> {
        let text = std::fs::read_to_string(&section.path)
            .with_context(|| format!("cannot read `{}`", section.path.display()))?;
        let name = section.path.display().to_string();
        let mut headers: Vec<(String, SecretString)> = Vec::new();
        for (header, secret) in &section.secret_headers {
            let value = self.vault.secret(&TenantId::local(), &secret.parse()?)?;
            let value = value.with_context(|| {
                format!("secret `{secret}` is not set: `toolcrib secret set {secret}`")
            })?;
            headers.push((header.clone(), value));
        }
        let options = OpenApiOptions {
            base: section.url.clone(),
            headers,
            loopback: self.place.config.upstreams.allow_loopback,
        };
        Ok(OpenApiProvider::new(
            &section.name,
            &Document { name, text },
            &options,
        )?)
    }
}

fn add(providers: &Providers, provider: Arc<dyn ToolProvider>) -> anyhow::Result<()> {
    let added = providers.add(provider);
    added
        .then_some(())
        .context("discovery: there are too many providers")
}

fn server_of(section: &RemoteSection) -> anyhow::Result<Server> {
    let mut server = Server::new(section.name.parse()?, Vec::new());
    let headers = section.headers.iter();
    let headers = headers.map(|(name, value)| Ok((name.as_str().into(), value.parse()?)));
    let headers = headers.collect::<anyhow::Result<_>>()?;
    server.launch = Some(Launch::http(section.url.parse()?, headers));
    Ok(server)
}
