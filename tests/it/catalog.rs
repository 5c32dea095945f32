//! The default catalog against the truth: real servers, and the limits of its own promises.

use std::collections::BTreeMap;

use serde_json::Value;
use toolcrib::call::{UpstreamOptions, Upstreams};
use toolcrib::catalog::{builtin, load};
use toolcrib::domain::{
    ReadSettingError, Server, SettingName, Settings, Shape, Tenant, TenantId, Tool,
};
use toolcrib::lifecycle::Lifecycle;

use crate::program::{has_servers, servers_folder};

/// Servers that start without credentials, from `catalog/reference`.
const CREDENTIAL_FREE: [&str; 9] = [
    "everything",
    "filesystem",
    "memory",
    "sequential-thinking",
    "time",
    "git",
    "fetch",
    "sqlite",
    "calculator",
];

struct NothingSet;

impl Settings for NothingSet {
    fn secret(
        &self,
        _tenant: &TenantId,
        _name: &SettingName,
    ) -> Result<Option<secrecy::SecretString>, ReadSettingError> {
        Ok(None)
    }

    fn has_secret(&self, _tenant: &TenantId, _name: &SettingName) -> bool {
        false
    }

    fn config(&self, _tenant: &TenantId, _name: &SettingName) -> Option<String> {
        None
    }
}

#[test]
fn the_default_catalog_has_no_fault_and_is_as_large_as_promised() {
    let loaded = load(&[builtin()]);
    let faults: Vec<String> = loaded.faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, Vec::<String>::new());
    assert!(40 <= loaded.catalog.servers().len());
    assert!(400 <= loaded.catalog.len());
    for server in CREDENTIAL_FREE {
        assert!(
            loaded.catalog.server(&server.parse().unwrap()).is_some(),
            "{server}"
        );
    }
}

#[test]
fn well_known_tools_say_what_they_need() {
    let catalog = load(&[builtin()]).catalog;
    let check = |id: &str, required: &[&str], secrets: &[&str], config: &[&str]| {
        let slot = catalog
            .find(&id.parse().unwrap())
            .unwrap_or_else(|| panic!("no {id}"));
        let arguments = catalog.tool(slot).input().arguments();
        let found: Vec<&str> = arguments
            .iter()
            .filter(|a| a.required)
            .map(|a| &*a.name)
            .collect();
        assert_eq!(found, required, "{id}");
        let server = catalog.server_of(slot);
        for secret in secrets {
            let slot = server
                .secrets
                .iter()
                .find(|slot| slot.name.as_str() == *secret);
            assert!(slot.is_some_and(|slot| !slot.optional), "{id} {secret}");
        }
        for name in config {
            assert!(
                server.config.iter().any(|slot| slot.name.as_str() == *name),
                "{id} {name}"
            );
        }
    };
    check(
        "slack/slack_post_message",
        &["channel_id", "text"],
        &["slack.bot_token"],
        &["slack.team_id"],
    );
    check(
        "github-official/issue_write",
        &["method", "owner", "repo"],
        &["github.personal_access_token"],
        &[],
    );
    check(
        "brave/brave_web_search",
        &["query"],
        &["brave.api_key"],
        &[],
    );
}

/// Name, type and whether it is required, of each argument.
type Arguments = BTreeMap<String, (String, bool)>;

fn of_catalog(tool: &Tool) -> Arguments {
    let row =
        |a: &toolcrib::domain::Argument| (a.name.to_string(), (a.shape.to_string(), a.required));
    tool.input().arguments().iter().map(row).collect()
}

fn of_server(definition: &Value) -> Arguments {
    let schema = &definition["inputSchema"];
    let required: Vec<&str> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    properties
        .iter()
        .map(|(name, property)| {
            let shape = Shape::of_schema(property, schema).to_string();
            (name.clone(), (shape, required.contains(&name.as_str())))
        })
        .collect()
}

async fn differences(server: &Server, upstreams: &Upstreams) -> Vec<String> {
    let listed = upstreams
        .list_tools(&Tenant::local(), server, &NothingSet)
        .await;
    let listed = match listed {
        Ok(listed) => listed,
        Err(error) => return vec![format!("{}: does not list its tools: {error}", server.name)],
    };
    let mut real: BTreeMap<String, Arguments> = listed
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), of_server(tool)))
        .collect();
    let mut found = Vec::new();
    for tool in &server.tools {
        let ours = of_catalog(tool);
        match real.remove(tool.name().as_str()) {
            None => found.push(format!(
                "{}/{}: not on the server",
                server.name,
                tool.name()
            )),
            Some(theirs) if theirs != ours => {
                let name = tool.name();
                found.push(format!(
                    "{}/{name}: {ours:?}, really {theirs:?}",
                    server.name
                ));
            }
            Some(_) => {}
        }
    }
    found.extend(
        real.keys()
            .map(|name| format!("{}/{name}: not in the catalog", server.name)),
    );
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_says_of_each_credential_free_server_what_it_says_itself() {
    if !has_servers("the_catalog_says_of_each_credential_free_server_what_it_says_itself") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lifecycle = Lifecycle::new();
    let options = UpstreamOptions {
        workspaces: folder.path().to_owned(),
        installed: vec![servers_folder()],
        ..UpstreamOptions::default()
    };
    let upstreams = Upstreams::new(options, lifecycle.clone());
    let catalog = load(&[builtin()]).catalog;
    let mut found = Vec::new();
    for name in CREDENTIAL_FREE {
        let server = catalog.server(&name.parse().unwrap()).unwrap();
        found.extend(differences(server, &upstreams).await);
    }
    upstreams.close().await;
    lifecycle.cancel();
    assert_eq!(found, Vec::<String>::new());
}
