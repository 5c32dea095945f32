//! Prompts of the suite, and completions of their arguments.

use rmcp::RoleServer;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Prompt, PromptArgument, PromptMessage, Reference, Role,
};
use rmcp::model::{ContentBlock, ResourceContents};
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::content::PNG;
use crate::fixture::Fixture;
use crate::resources;
use crate::rounds::{Outcome, Retry};

/// What arguments are completed with.
const WORDS: [&str; 4] = ["paris", "park", "party", "peace"];

/// A prompt that needs an answer of the user first.
const ASKING: &str = "test_input_required_result_prompt";

/// All prompts; one more after `test_trigger_prompt_change`.
pub(crate) fn all(has_more: bool) -> Vec<Prompt> {
    let argument = |name, description| {
        PromptArgument::new(name)
            .with_description(description)
            .with_required(true)
    };
    let prompt = |name, description, arguments: Vec<PromptArgument>| {
        let arguments = Some(arguments).filter(|all| !all.is_empty());
        Prompt::new(name, Some(description), arguments)
    };
    let mut all = vec![
        prompt("test_simple_prompt", "One sentence.", Vec::new()),
        prompt(
            "test_prompt_with_arguments",
            "A sentence with two words in it.",
            vec![
                argument("arg1", "First test argument"),
                argument("arg2", "Second test argument"),
            ],
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            "A resource and a sentence.",
            vec![argument("resourceUri", "URI of the resource to embed")],
        ),
        prompt(
            "test_prompt_with_image",
            "An image and a sentence.",
            Vec::new(),
        ),
        prompt(ASKING, "Asks the user for a context first.", Vec::new()),
    ];
    if has_more {
        let description = "There after a change of the list.";
        all.push(prompt("test_prompt_of_a_change", description, Vec::new()));
    }
    all
}

/// The prompt of that name, with its arguments filled in.
pub(crate) fn of(
    fixture: &Fixture,
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let argument = |name: &str| {
        let arguments = request.arguments.as_ref();
        let text = arguments.and_then(|all| all.get(name)?.as_str());
        text.ok_or_else(|| ErrorData::invalid_params(format!("argument `{name}` is missing"), None))
    };
    let text = |text: &str| PromptMessage::new_text(Role::User, text);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1")?, argument("arg2")?);
            let filled = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
            vec![text(&filled)]
        }
        "test_prompt_with_embedded_resource" => {
            let words = "Embedded resource content for testing.";
            let resource = ResourceContents::text(words, argument("resourceUri")?);
            let resource = ContentBlock::resource(resource.with_mime_type("text/plain"));
            vec![
                PromptMessage::new(Role::User, resource),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => vec![
            PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png")),
            text("Please analyze the image above."),
        ],
        "test_prompt_of_a_change" => vec![text("This prompt came with a change.")],
        ASKING => {
            let retry = Retry {
                name: ASKING,
                responses: request.input_responses.unwrap_or_default(),
                state: request.request_state,
            };
            match retry.outcome(fixture.seal(), context)? {
                Some(Outcome::Ask(result)) => return Ok(result.into()),
                Some(Outcome::Done(said)) => vec![text(&format!("Prompt with context: {said}"))],
                None => Vec::new(),
            }
        }
        _ => return Err(ErrorData::invalid_params("no such prompt", None)),
    };
    Ok(GetPromptResult::new(messages).into())
}

/// Words that begin as the argument does.
pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let is_known = match &request.r#ref {
        Reference::Prompt(prompt) => all(true).iter().any(|known| {
            let mut names = known.arguments.iter().flatten();
            known.name == prompt.name && names.any(|one| one.name == request.argument.name)
        }),
        Reference::Resource(resource) => {
            resource.uri == resources::template().uri_template && request.argument.name == "id"
        }
        _ => false,
    };
    if !is_known {
        return Err(ErrorData::invalid_params("no such argument", None));
    }
    let words = WORDS.iter().filter(|word| {
        let begun = request.argument.value.to_lowercase();
        word.starts_with(&begun)
    });
    let words = words.map(|word| (*word).to_owned()).collect();
    let found = CompletionInfo::with_all_values(words);
    let found = found.map_err(|text| ErrorData::internal_error(text, None::<Value>))?;
    Ok(CompleteResult::new(found))
}
