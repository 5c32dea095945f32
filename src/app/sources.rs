//! From the configuration to what the refresh job works with.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::app::Place;
use crate::catalog::pins::Policy;
use crate::catalog::refresh::{Assembled, Origin, RefreshOptions, Source, assemble};
use crate::catalog::snapshot::SnapshotFile;
use crate::catalog::{Loaded, load};
use crate::config::SourceSection;
use crate::domain::ServerName;
use crate::telemetry::Chain;

impl Place {
    /// What sources gave last.
    pub fn snapshot(&self) -> SnapshotFile {
        SnapshotFile::new(self.home.snapshot_file())
    }

    /// The default catalog and the operator's files, without what sources gave.
    pub fn own_catalog(&self) -> anyhow::Result<Loaded> {
        Ok(load(&self.catalog_sources()?))
    }

    /// The catalog as it is published, with the faults of the operator's files.
    pub fn published_catalog(&self) -> anyhow::Result<Loaded> {
        let mut loaded = self.own_catalog()?;
        match assemble(&loaded.catalog, &self.snapshot().load()) {
            Ok(Assembled { catalog, .. }) => loaded.catalog = catalog,
            Err(error) => {
                tracing::error!(error = %Chain(&error), "left out what catalog sources gave");
            }
        }
        Ok(loaded)
    }

    /// The configured sources with their policies.
    pub fn refresh_options(&self) -> anyhow::Result<RefreshOptions> {
        let section = &self.config.catalog;
        let mut options = RefreshOptions::default();
        for source in &section.sources {
            let read = read_source(source, section.allow_loopback);
            let read = read.with_context(|| format!("catalog source `{}`", source.name))?;
            if options.sources.iter().any(|other| other.name == read.name) {
                bail!("there are two catalog sources `{}`", source.name);
            }
            options.sources.push(read);
        }
        options.whole_after = Duration::from_secs(section.whole_read_s);
        let policies = section.policies.iter().map(|(server, policy)| {
            let key = || format!("catalog.policies.{server}");
            let server: ServerName = server.parse().with_context(key)?;
            let policy: Policy = policy.parse().with_context(key)?;
            Ok((server, policy))
        });
        options.policies = policies.collect::<anyhow::Result<HashMap<_, _>>>()?;
        Ok(options)
    }
}

fn read_source(section: &SourceSection, loopback: bool) -> anyhow::Result<Source> {
    let origin = match (&section.path, &section.url) {
        (Some(path), None) => Origin::Path(path.clone()),
        (None, Some(url)) => Origin::of_url(url, loopback)?,
        _ => bail!("give either `path` or `url`"),
    };
    Ok(Source {
        name: section.name.as_str().into(),
        format: section.format.parse()?,
        origin,
        policy: section.policy.parse()?,
        lists_from: section
            .lists_from
            .iter()
            .map(|host| host.as_str().into())
            .collect(),
    })
}
