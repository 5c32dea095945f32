//! Tools of one provider, each name once.

use std::sync::Arc;

use crate::registry::metadata::ToolMetadata;

/// Tools in the order of their names. Clones share the tools.
#[derive(Clone, Debug, Default)]
pub struct ToolList(Arc<[Arc<ToolMetadata>]>);

impl ToolList {
    /// From tools in any order. Of several with one name the first stays.
    pub fn new(tools: impl IntoIterator<Item = Arc<ToolMetadata>>) -> Self {
        let mut tools: Vec<_> = tools.into_iter().collect();
        // Stable, so that the first of equal names stays in front.
        tools.sort_by(|a, b| a.name().cmp(b.name()));
        tools.dedup_by(|a, b| a.name() == b.name());
        Self(tools.into())
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<ToolMetadata>> {
        let at = self.0.binary_search_by(|tool| tool.name().cmp(name));
        at.ok().and_then(|at| self.0.get(at))
    }

    /// All tools, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<ToolMetadata>> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::ToolSpec;

    #[test]
    fn the_first_of_a_name_stays() {
        let tool = |name: &str, text: &str| {
            Arc::new(ToolMetadata::from(ToolSpec::new(name, text).unwrap()))
        };
        let list = ToolList::new([tool("b", "1"), tool("a", "2"), tool("b", "3")]);
        let texts: Vec<_> = list.iter().map(|tool| tool.tool().description()).collect();
        assert_eq!(texts, ["2", "1"]);
        assert_eq!(list.find("b").unwrap().tool().description(), "1");
        assert!(list.find("c").is_none());
    }
}
