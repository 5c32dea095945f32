//! One generation of the catalog: all servers and tools, in a fixed order.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::{Server, ServerName, Tool, ToolId};

/// Position of a tool in **one** catalog; it means nothing in the next generation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Slot(u32);

impl Slot {
    /// The slot at an index.
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The slot as an index into what was built from the same catalog.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why servers do not make a catalog.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// Two servers of one name.
    #[error("server `{0}` is there twice")]
    DuplicateServer(ServerName),
    /// A server has two tools of one name.
    #[error("tool `{0}` is there twice")]
    DuplicateTool(ToolId),
    /// More tools than slots.
    #[error("catalog has {tools} tools, over the limit of {max}")]
    TooLarge {
        /// How many there are.
        tools: usize,
        /// The limit.
        max: usize,
    },
}

/// All servers and tools at one moment. Tools stand in the order of their ids, so that equal
/// catalogs give equal slots, whatever order their sources came in.
#[derive(Debug, Default)]
pub struct Catalog {
    servers: Vec<Arc<Server>>,
    /// `(server, tool)` positions by slot.
    tools: Vec<(u32, u32)>,
    by_id: HashMap<ToolId, Slot>,
    by_name: HashMap<ServerName, usize>,
}

impl Catalog {
    /// Largest number of tools.
    pub const TOOLS_MAX: usize = 4_000_000;

    /// Builds a catalog; the order of servers does not matter.
    pub fn new(servers: impl IntoIterator<Item = Arc<Server>>) -> Result<Self, CatalogError> {
        let mut servers: Vec<_> = servers.into_iter().collect();
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        let mut catalog = Self::default();
        for (at, server) in (0_u32..).zip(&servers) {
            let first = catalog.by_name.insert(server.name.clone(), at as usize);
            if first.is_some() {
                return Err(CatalogError::DuplicateServer(server.name.clone()));
            }
            let mut order: Vec<u32> = (0_u32..).take(server.tools.len()).collect();
            order.sort_by_key(|tool| server.tools[*tool as usize].name());
            catalog
                .tools
                .extend(order.into_iter().map(|tool| (at, tool)));
        }
        let tools = catalog.tools.len();
        if Self::TOOLS_MAX < tools {
            return Err(CatalogError::TooLarge {
                tools,
                max: Self::TOOLS_MAX,
            });
        }
        catalog.servers = servers;
        for slot in catalog.slots() {
            let id = catalog.id(slot);
            if catalog.by_id.insert(id.clone(), slot).is_some() {
                return Err(CatalogError::DuplicateTool(id));
            }
        }
        Ok(catalog)
    }

    /// All servers, by name.
    pub fn servers(&self) -> &[Arc<Server>] {
        &self.servers
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// All slots, in the order of tool ids.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = Slot> + use<> {
        (0..self.tools.len()).map(Slot::new)
    }

    /// The tool in a slot of this catalog.
    pub fn tool(&self, slot: Slot) -> &Tool {
        let (server, tool) = self.tools[slot.index()];
        &self.servers[server as usize].tools[tool as usize]
    }

    /// The server of the tool in a slot of this catalog.
    pub fn server_of(&self, slot: Slot) -> &Arc<Server> {
        &self.servers[self.tools[slot.index()].0 as usize]
    }

    /// The id of the tool in a slot of this catalog.
    pub fn id(&self, slot: Slot) -> ToolId {
        ToolId {
            server: self.server_of(slot).name.clone(),
            tool: self.tool(slot).name().clone(),
        }
    }

    /// Where a tool stands.
    pub fn find(&self, id: &ToolId) -> Option<Slot> {
        self.by_id.get(id).copied()
    }

    /// A server by name.
    pub fn server(&self, name: &ServerName) -> Option<&Arc<Server>> {
        self.by_name.get(name).map(|at| &self.servers[*at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Definition, Input};

    fn server(name: &str, tools: &[&str]) -> Arc<Server> {
        let tools = tools
            .iter()
            .map(|tool| {
                let input = Input::from_arguments(vec![]);
                Tool::new(Definition::new(tool.parse().unwrap(), "", input))
            })
            .collect();
        Arc::new(Server::new(name.parse().unwrap(), tools))
    }

    #[test]
    fn slots_follow_tool_ids_whatever_order_came_in() {
        let (a, b) = (server("a", &["z", "m"]), server("b", &["c"]));
        let catalog = Catalog::new([b.clone(), a.clone()]).unwrap();
        let ids: Vec<_> = catalog
            .slots()
            .map(|slot| catalog.id(slot).to_string())
            .collect();
        assert_eq!(ids, ["a/m", "a/z", "b/c"]);
        for slot in catalog.slots() {
            assert_eq!(catalog.find(&catalog.id(slot)), Some(slot));
        }
    }

    #[test]
    fn nothing_may_be_there_twice() {
        let twice = Catalog::new([server("a", &["x"]), server("a", &["y"])]).unwrap_err();
        assert_eq!(twice.to_string(), "server `a` is there twice");
        let twice = Catalog::new([server("a", &["x", "x"])]).unwrap_err();
        assert_eq!(twice.to_string(), "tool `a/x` is there twice");
    }
}
