//! From the operator's own files and the snapshot to one catalog.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::catalog::snapshot::Snapshot;
use crate::domain::{Catalog, CatalogError, Server, ServerName};

/// A catalog, and what it left out.
#[derive(Debug)]
pub struct Assembled {
    /// The catalog.
    pub catalog: Catalog,
    /// Servers that gave way to another of the same name, as `source/server`.
    pub shadowed: Vec<String>,
}

/// One catalog of all. The operator's files and the default catalog go over every source, so that
/// no source can take over a server that was there; of sources, the one that the configuration
/// names first. What a server listed when it was asked goes over the tools that others name.
pub fn assemble(own: &Catalog, snapshot: &Snapshot) -> Result<Assembled, CatalogError> {
    let own = own.servers().iter();
    let mut servers: HashMap<ServerName, Arc<Server>> = own
        .map(|server| (server.name.clone(), Arc::clone(server)))
        .collect();
    let mut shadowed = Vec::new();
    for source in &snapshot.sources {
        for server in &source.servers {
            match servers.entry(server.name.clone()) {
                Entry::Vacant(place) => {
                    place.insert(Arc::clone(server));
                }
                Entry::Occupied(_) => shadowed.push(format!("{}/{}", source.name, server.name)),
            }
        }
    }
    for answer in &snapshot.asked.servers {
        if let Some(server) = servers.get_mut(&answer.name) {
            *server = Arc::new(Server {
                tools: answer.tools.clone(),
                ..Server::clone(server)
            });
        }
    }
    Ok(Assembled {
        catalog: Catalog::new(servers.into_values())?,
        shadowed,
    })
}
