//! Which surfaces are served, and where: the chosen one at `/mcp`, others beside it.

use std::sync::Arc;

use anyhow::Context;

use crate::app::App;
use crate::config::{self, EagerPolicy, IndexSection, IndexType, SearchField, ToolsSection};
use crate::search::{Backend, Field, FieldWeights, Kind, Rank};
use crate::toolkits::{Eager, SearchToolkit, Toolkits};
use crate::transport::desk::Guest;
use crate::transport::http::Route;
use crate::transport::mcp::{Connected, Gateway, Handler, Surface};

impl App {
    /// Every surface that is served over HTTP, over one desk.
    pub(super) fn routes(&self) -> anyhow::Result<Vec<Route>> {
        let server = &self.place.config.server;
        let mut routes = vec![self.route("/mcp".to_owned(), server.surface)?];
        for surface in &server.surfaces {
            routes.push(self.route(format!("/mcp/{}", surface.name()), *surface)?);
        }
        Ok(routes)
    }

    /// The chosen surface, for standard streams.
    pub(super) fn resident_handler(&self, guest: Guest) -> anyhow::Result<Handler> {
        let surface = self.surface(self.place.config.server.surface)?;
        Ok(Handler::of_resident(surface, Arc::clone(&self.desk), guest))
    }

    fn route(&self, path: String, surface: config::Surface) -> anyhow::Result<Route> {
        let handler = Handler::behind_a_door(self.surface(surface)?, Arc::clone(&self.desk));
        Ok(Route { path, handler })
    }

    fn surface(&self, surface: config::Surface) -> anyhow::Result<Arc<dyn Surface>> {
        let desk = Arc::clone(&self.desk);
        match surface {
            config::Surface::Connected => Ok(Arc::new(Connected::new(desk))),
            config::Surface::Gateway => {
                let toolkits = toolkits(&self.place.config.tools)?;
                Ok(Arc::new(Gateway::new(desk, toolkits)))
            }
            config::Surface::Discovery => Ok(Arc::new(self.discovery()?)),
        }
    }
}

/// Names and lists of the surface `gateway`, as configured.
fn toolkits(section: &ToolsSection) -> anyhow::Result<Toolkits> {
    let eager = match section.eager.policy {
        EagerPolicy::None => Eager::None,
        EagerPolicy::All => Eager::All,
        EagerPolicy::Explicit => {
            Eager::matching(&section.eager.r#match).context("tools.eager.match")?
        }
    };
    let Some(search) = &section.search else {
        return Ok(Toolkits::new(eager, None));
    };
    let mut backends: Vec<Backend> = search.rankings().iter().map(backend).collect();
    let rank = match (
        backends.pop(),
        backends.is_empty() && search.index.is_empty(),
    ) {
        (Some(only), true) => Rank::By(only),
        (last, _) => Rank::Fused(backends.into_iter().chain(last).collect()),
    };
    let search = SearchToolkit {
        name: search.toolkit.parse().context("tools.search.toolkit")?,
        limit: search.limit,
        rank,
    };
    Ok(Toolkits::new(eager, Some(search)))
}

fn backend(section: &IndexSection) -> Backend {
    let kind = match section.r#type {
        IndexType::Keyword => Kind::Keyword,
        IndexType::Semantic => Kind::Semantic,
        IndexType::Hybrid => Kind::Hybrid,
    };
    let said = section.fields.is_some() || !section.weights.is_empty();
    let fields = section.fields.as_deref().unwrap_or(&SearchField::ALL);
    let fields: Vec<Field> = fields.iter().map(|name| field(*name)).collect();
    let weights = section.weights.iter();
    let weights = weights.fold(FieldWeights::of(&fields), |weights, (name, weight)| {
        weights.with(field(*name), *weight)
    });
    Backend {
        kind,
        fields: said.then_some(weights),
    }
}

fn field(name: SearchField) -> Field {
    match name {
        SearchField::Name => Field::Name,
        SearchField::Description => Field::Description,
        SearchField::Arguments => Field::Arguments,
        SearchField::OutputSchema => Field::OutputSchema,
        SearchField::Keywords => Field::Keywords,
    }
}
