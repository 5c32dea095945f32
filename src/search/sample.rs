//! A small catalog for the tests of this module.

use std::sync::Arc;

use crate::domain::{Argument, Catalog, Definition, Input, Server, Tool};

/// Five servers, eleven tools.
pub(super) fn catalog() -> Arc<Catalog> {
    let servers = [
        server(
            "slack",
            &[
                ("slack_post_message", "Send a message to a channel"),
                ("slack_list_channels", "List the channels of a workspace"),
            ],
        ),
        server(
            "github",
            &[
                ("create_pull_request", "Open a new pull request"),
                ("list_branches", "List the branches of a repository"),
                ("create_issue", "Create an issue in a repository"),
            ],
        ),
        server(
            "gitlab",
            &[
                ("create_merge_request", "Open a new merge request"),
                ("create_issue", "Create an issue in a project"),
            ],
        ),
        server(
            "weather",
            &[
                ("get_forecast", "Weather forecast for a city"),
                ("get_current", "Current weather in a city"),
            ],
        ),
        server(
            "brave",
            &[
                ("brave_web_search", "Search the web for pages and news"),
                ("brave_local_search", "Search for businesses and places"),
            ],
        ),
    ];
    Arc::new(Catalog::new(servers).unwrap())
}

/// A server with tools, each a name and a description.
pub(super) fn server(name: &str, tools: &[(&str, &str)]) -> Arc<Server> {
    let tools = tools
        .iter()
        .map(|(tool, description)| {
            let input = Input::from_arguments(vec![Argument {
                name: "query".into(),
                shape: "string".parse().unwrap(),
                description: "What to look for".into(),
                required: true,
            }]);
            Tool::new(Definition::new(tool.parse().unwrap(), *description, input))
        })
        .collect();
    Arc::new(Server::new(name.parse().unwrap(), tools))
}
