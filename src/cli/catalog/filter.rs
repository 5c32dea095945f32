//! Which servers `catalog list` shows.

use globset::{GlobBuilder, GlobMatcher};

use crate::domain::{Catalog, Server};

/// Which servers to list. A glob stands for the whole text, without regard to case.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Filter {
    /// Licence, as a glob such as `apache*`; `unknown` where none is known.
    #[arg(long, value_name = "GLOB")]
    license: Option<String>,
    /// Source, as a glob; `mcpm` stands for all of `mcpm:*`.
    #[arg(long, value_name = "GLOB")]
    source: Option<String>,
    /// Category, as a glob.
    #[arg(long, value_name = "GLOB")]
    category: Option<String>,
}

impl Filter {
    pub(in crate::cli) fn servers<'a>(
        &self,
        catalog: &'a Catalog,
    ) -> anyhow::Result<Vec<&'a Server>> {
        let glob = |text: &Option<String>| -> anyhow::Result<Option<GlobMatcher>> {
            let Some(text) = text else { return Ok(None) };
            let glob = GlobBuilder::new(text).case_insensitive(true).build()?;
            Ok(Some(glob.compile_matcher()))
        };
        let (license, source) = (glob(&self.license)?, glob(&self.source)?);
        let category = glob(&self.category)?;
        let fits = |glob: &Option<GlobMatcher>, texts: &[&str]| match glob {
            Some(glob) => texts.iter().any(|text| glob.is_match(text)),
            None => true,
        };
        let chosen = catalog
            .servers()
            .iter()
            .map(AsRef::as_ref)
            .filter(|server| {
                let from = &server.provenance;
                let known = match &*from.license {
                    "" => "unknown",
                    license => license,
                };
                let kind = from.source.split(':').next().unwrap_or_default();
                fits(&license, &[known])
                    && fits(&source, &[&*from.source, kind])
                    && fits(&category, &[&*server.category])
            });
        Ok(chosen.collect())
    }
}
