//! The reply of a search stays small, whatever the catalog holds.

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use toolcrib::catalog::{builtin, load};
use toolcrib::domain::{Catalog, Handle, RunId};
use toolcrib::eval::{LabelledSet, ToolSource};
use toolcrib::transport::wire::{Candidate, Found, SEARCH_BYTES_MAX, search_result};

use crate::program::shared;

/// Shows the heaviest tools three by three, and every tool three times over.
fn check(catalog: &Catalog) {
    let mut slots: Vec<_> = catalog.slots().collect();
    slots.sort_by_key(|slot| {
        let tool = catalog.tool(*slot);
        std::cmp::Reverse(tool.description().len() + tool.input().schema().to_string().len())
    });
    let heaviest = slots.chunks(3).take(200).map(<[_]>::to_vec);
    let thrice = slots.iter().map(|slot| vec![*slot; 3]);
    let mut rng = StdRng::seed_from_u64(1);
    for trio in heaviest.chain(thrice) {
        let candidates: Vec<_> = trio
            .iter()
            .map(|slot| Candidate {
                server: catalog.server_of(*slot),
                tool: catalog.tool(*slot),
                secrets: &[],
                config: &[],
            })
            .collect();
        let shown = search_result(&Found {
            run_id: RunId::generate(&mut rng),
            handle: &Handle::generate(&mut rng),
            candidates: &candidates,
            tools_total: catalog.len(),
            degraded: Some("the index is still being built"),
        });
        let bytes = shown.to_string().len();
        assert!(
            bytes <= SEARCH_BYTES_MAX,
            "{bytes} bytes for {}",
            catalog.id(trio[0])
        );
        for (candidate, shown) in candidates
            .iter()
            .zip(shown["tool_candidates"].as_array().unwrap())
        {
            let names: Vec<&str> = shown["tool_details"]["arguments"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|argument| argument["name"].as_str())
                .collect();
            let arguments = candidate.tool.input().arguments();
            for argument in arguments.iter().filter(|argument| argument.required) {
                assert!(names.contains(&&*argument.name), "{} lost", argument.name);
            }
        }
    }
}

#[test]
fn no_reply_of_the_default_catalog_is_over_6_kib() {
    check(&load(&[builtin()]).catalog);
}

#[test]
fn no_reply_of_3461_real_tools_is_over_6_kib() {
    let (Some(catalog), Some(queries)) = (
        shared("catalogs/merged/catalog.jsonl"),
        shared("eval/catalog150.queries.jsonl"),
    ) else {
        println!(
            "skipped no_reply_of_3461_real_tools_is_over_6_kib: no catalog of real tools here"
        );
        return;
    };
    let set = LabelledSet::read(&ToolSource::Catalog(catalog), &queries).unwrap();
    check(&set.catalog);
}

#[test]
fn the_keys_of_a_result_are_those_of_the_contract_and_no_others() {
    let catalog = load(&[builtin()]).catalog;
    let mut rng = StdRng::seed_from_u64(1);
    let slot = catalog
        .find(&"slack/slack_post_message".parse().unwrap())
        .unwrap();
    let secrets = ["slack.bot_token".parse().unwrap()];
    let candidate = Candidate {
        server: catalog.server_of(slot),
        tool: catalog.tool(slot),
        secrets: &secrets,
        config: &[],
    };
    let shown = search_result(&Found {
        run_id: RunId::generate(&mut rng),
        handle: &Handle::generate(&mut rng),
        candidates: &[candidate],
        tools_total: catalog.len(),
        degraded: None,
    });
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(&shown),
        [
            "workflow_run_id",
            "step",
            "capability_token",
            "tool_candidates",
            "message",
            "instructions"
        ]
    );
    let candidate = &shown["tool_candidates"][0];
    assert_eq!(
        keys(candidate),
        [
            "server_name",
            "server_description",
            "server_metadata",
            "tool_details"
        ]
    );
    assert_eq!(
        keys(&candidate["tool_details"]),
        ["name", "description", "arguments", "requires"]
    );
    assert_eq!(
        keys(&candidate["tool_details"]["arguments"][0]),
        ["name", "type", "desc"]
    );
}
