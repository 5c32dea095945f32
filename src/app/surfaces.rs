//! Which surfaces are served, and where: the chosen one at `/mcp`, others beside it.

use std::sync::Arc;

use anyhow::bail;

use crate::app::App;
use crate::config;
use crate::transport::desk::Guest;
use crate::transport::http::Route;
use crate::transport::mcp::{Connected, Handler, Surface};

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
            config::Surface::Gateway | config::Surface::Discovery => bail!(
                "this build has no surface `{}`: take `{}` out of server.surface and \
                 server.surfaces",
                surface.name(),
                surface.name()
            ),
        }
    }
}
