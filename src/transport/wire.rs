//! What strangers read: the JSON of a search, and how it is kept small.
//!
//! The keys and their order are a promise; a snapshot test holds them.

mod budget;

use serde::Serialize;

use crate::domain::{Annotations, Argument, Handle, RunId, Server, SettingName, Tool, shorten};
use crate::transport::wire::budget::Budget;

/// Largest search result, in bytes of JSON.
pub const SEARCH_BYTES_MAX: usize = 6 * 1024;

/// A candidate to be shown.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its server.
    pub server: &'a Server,
    /// The tool.
    pub tool: &'a Tool,
    /// Secrets that this tenant still has to set.
    pub secrets: &'a [SettingName],
    /// Configuration values that this tenant still has to set.
    pub config: &'a [SettingName],
}

/// What a search found, to be shown.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Ties search, run and log together.
    pub run_id: RunId,
    /// The handle, shown here and nowhere else.
    pub handle: &'a Handle,
    /// At most three, best first.
    pub candidates: &'a [Candidate<'a>],
    /// How many tools this tenant may use.
    pub tools_total: usize,
    /// Why the ranking is not at its best, in one sentence.
    pub degraded: Option<&'a str>,
}

#[derive(Serialize)]
struct SearchResult<'a> {
    workflow_run_id: String,
    step: &'static str,
    capability_token: &'a str,
    tool_candidates: Vec<ToolCandidate<'a>>,
    message: String,
    instructions: &'static str,
}

#[derive(Serialize)]
struct ToolCandidate<'a> {
    server_name: &'a str,
    server_description: String,
    server_metadata: String,
    tool_details: ToolDetails<'a>,
}

#[derive(Serialize)]
struct ToolDetails<'a> {
    name: &'a str,
    description: String,
    arguments: Vec<ArgumentDetails<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<AnnotationDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requires: Option<Requires<'a>>,
}

#[derive(Serialize)]
struct ArgumentDetails<'a> {
    name: &'a str,
    r#type: String,
    desc: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
}

#[derive(Serialize)]
struct AnnotationDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_world: Option<bool>,
}

#[derive(Serialize)]
struct Requires<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    config: Vec<&'a str>,
}

/// Next step for the agent.
const INSTRUCTIONS: &str = "Pick the candidate that fits and call run_tool with capability_token, \
    its tool_name, its server_name and arguments. The token is good for five minutes and one run. \
    If none fits, call search_tools again in other words.";

/// The JSON object of a search, at most [`SEARCH_BYTES_MAX`] bytes.
///
/// Long descriptions and argument lists give way first, on a word boundary; a required argument
/// is never left out.
pub fn search_result(found: &Found<'_>) -> serde_json::Value {
    let mut tightest = serde_json::Value::Null;
    for budget in budget::tightening() {
        tightest = serde_json::to_value(render(found, budget)).unwrap_or_default();
        if tightest.to_string().len() <= SEARCH_BYTES_MAX {
            break;
        }
    }
    tightest
}

fn render<'a>(found: &'a Found<'_>, budget: Budget) -> SearchResult<'a> {
    let candidates = found
        .candidates
        .iter()
        .map(|candidate| render_candidate(candidate, budget));
    SearchResult {
        workflow_run_id: found.run_id.to_string(),
        step: "discovery",
        capability_token: found.handle.reveal(),
        tool_candidates: candidates.collect(),
        message: message(found, budget),
        instructions: INSTRUCTIONS,
    }
}

fn message(found: &Found<'_>, budget: Budget) -> String {
    let shown = found.candidates.len();
    let mut message = format!(
        "These are {shown} of {} tools, the nearest to the query and not a listing: a tool that is \
         not among them may still exist.",
        found.tools_total
    );
    if let Some(why) = found.degraded {
        message.push_str(" Ranking is degraded: ");
        message.push_str(why);
        message.push('.');
    }
    let left_out: usize = found
        .candidates
        .iter()
        .map(|candidate| {
            let all = candidate.tool.input().arguments();
            all.len() - budget.arguments(all).count()
        })
        .sum();
    if 0 < left_out {
        let text = format!(" Shortened: {left_out} optional arguments are not shown.");
        message.push_str(&text);
    }
    message
}

fn render_candidate<'a>(candidate: &Candidate<'a>, budget: Budget) -> ToolCandidate<'a> {
    let Candidate {
        server,
        tool,
        secrets,
        config,
    } = *candidate;
    let requires = (!secrets.is_empty() || !config.is_empty()).then(|| Requires {
        secrets: secrets.iter().map(SettingName::as_str).collect(),
        config: config.iter().map(SettingName::as_str).collect(),
    });
    let arguments = budget.arguments(tool.input().arguments());
    ToolCandidate {
        server_name: server.name.as_str(),
        server_description: shorten(&server.description, budget.server_chars).into_owned(),
        server_metadata: metadata(server, budget.metadata_chars),
        tool_details: ToolDetails {
            name: tool.name().as_str(),
            description: shorten(tool.description(), budget.tool_chars).into_owned(),
            arguments: arguments
                .map(|argument| render_argument(argument, budget))
                .collect(),
            annotations: render_annotations(tool.annotations()),
            requires,
        },
    }
}

fn render_argument(argument: &Argument, budget: Budget) -> ArgumentDetails<'_> {
    ArgumentDetails {
        name: &argument.name,
        r#type: shorten(&argument.shape.to_string(), budget.type_chars).into_owned(),
        desc: shorten(&argument.description, budget.argument_chars).into_owned(),
        optional: !argument.required,
    }
}

fn render_annotations(annotations: Annotations) -> Option<AnnotationDetails> {
    let Annotations {
        read_only,
        destructive,
        idempotent,
        open_world,
    } = annotations;
    let said = [read_only, destructive, idempotent, open_world]
        .iter()
        .any(Option::is_some);
    said.then_some(AnnotationDetails {
        read_only,
        destructive,
        idempotent,
        open_world,
    })
}

/// `key:value` pairs joined by ` | `; what is empty is left out.
fn metadata(server: &Server, chars_max: usize) -> String {
    let plain = |text: &str| text.replace('|', "/");
    let mut pairs = Vec::new();
    for (key, value) in [
        ("category", plain(&server.category)),
        ("owner", plain(&server.owner)),
        ("tags", plain(&server.tags.join(" "))),
    ] {
        if !value.is_empty() {
            pairs.push(format!("{key}:{value}"));
        }
    }
    shorten(&pairs.join(" | "), chars_max).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;
    use crate::domain::{Definition, Input, hidden_characters};

    fn tool(description: &str, arguments: Vec<Argument>) -> Tool {
        let input = Input::from_arguments(arguments);
        Tool::new(Definition::new(
            "slack_post_message".parse().unwrap(),
            description,
            input,
        ))
    }

    fn argument(name: &str, description: &str, required: bool) -> Argument {
        Argument {
            name: name.into(),
            shape: "string".parse().unwrap(),
            description: description.into(),
            required,
        }
    }

    fn show(server: &Server, tools: &[Tool], secrets: &[SettingName]) -> serde_json::Value {
        let mut rng = StdRng::seed_from_u64(1);
        let handle = Handle::generate(&mut rng);
        let candidates: Vec<_> = tools
            .iter()
            .map(|tool| Candidate {
                server,
                tool,
                secrets,
                config: &[],
            })
            .collect();
        search_result(&Found {
            run_id: RunId::generate(&mut rng),
            handle: &handle,
            candidates: &candidates,
            tools_total: 812,
            degraded: None,
        })
    }

    #[test]
    fn the_result_has_exactly_the_promised_keys() {
        let mut server = Server::new("slack".parse().unwrap(), vec![]);
        server.description = "Channels and messages.".into();
        server.category = "communication".into();
        server.owner = "modelcontextprotocol".into();
        server.tags = vec!["slack".into(), "communication".into()];
        let arguments = vec![
            argument("channel_id", "Channel.", true),
            argument("thread_ts", "Thread.", false),
        ];
        let mut definition = Definition::new(
            "slack_post_message".parse().unwrap(),
            "Post a message.",
            Input::from_arguments(arguments),
        );
        definition.annotations.destructive = Some(false);
        let tools = [Tool::new(definition)];
        let shown = show(&server, &tools, &["slack.bot_token".parse().unwrap()]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&shown).unwrap());
    }

    #[test]
    fn a_required_argument_is_never_left_out() {
        let long = "word ".repeat(400);
        let mut arguments: Vec<_> = (0..40)
            .map(|n| argument(&format!("optional_{n}"), &long, false))
            .collect();
        arguments.extend((0..12).map(|n| argument(&format!("required_{n}"), &long, true)));
        let tools = vec![tool(&long, arguments); 3];
        let shown = show(&Server::new("s".parse().unwrap(), vec![]), &tools, &[]);
        let text = shown.to_string();
        assert!(text.len() <= SEARCH_BYTES_MAX);
        for n in 0..12 {
            assert_eq!(text.matches(&format!("required_{n}\"")).count(), 3);
        }
        assert!(
            shown["message"]
                .as_str()
                .unwrap()
                .contains("optional arguments are not shown")
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_result_is_too_long_and_none_hides_a_character(
            text in "\\PC{0,3000}",
            poison in prop::collection::vec(any::<char>(), 0..200),
            count in 0_usize..60,
        ) {
            let poison: String = poison.into_iter().collect();
            let arguments =
                (0..count).map(|n| argument(&format!("a{n}"), &text, n % 9 == 0)).collect();
            let mut server = Server::new("s".parse().unwrap(), vec![]);
            server.description = format!("{poison}{text}").into();
            server.tags = vec![text.clone().into(); 5];
            let tools = vec![tool(&format!("{poison}{text}"), arguments); 3];
            let shown = show(&server.cleaned(), &tools, &[]).to_string();
            prop_assert!(shown.len() <= SEARCH_BYTES_MAX, "{}", shown.len());
            if poison.is_empty() {
                return Ok(());
            }
            let candidates: serde_json::Value = serde_json::from_str(&shown).unwrap();
            let first = &candidates["tool_candidates"][0];
            for field in [&first["server_description"], &first["tool_details"]["description"]] {
                prop_assert_eq!(hidden_characters(field.as_str().unwrap()), 0);
            }
        }
    }
}
