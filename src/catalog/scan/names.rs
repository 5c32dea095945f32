//! Names that pass for other names.

use std::collections::{HashMap, HashSet};

use crate::catalog::scan::words::{fold, plain_digit, plain_letter};
use crate::catalog::scan::{Finding, FindingKind, Severity};
use crate::domain::{Catalog, Server, ServerName, ToolName};

/// Shortest server name that one wrong letter makes another's: of shorter ones too many differ by
/// a letter.
const NEAR_MIN: usize = 5;

/// Well-known services and tools, whose names are worth stealing.
const SERVICES: &[&str] = &[
    "airtable",
    "amazon",
    "anthropic",
    "apify",
    "asana",
    "atlassian",
    "azure",
    "bitbucket",
    "brave",
    "browserbase",
    "calendar",
    "chrome-devtools",
    "claude",
    "clickhouse",
    "cloudflare",
    "coinbase",
    "confluence",
    "context7",
    "datadog",
    "discord",
    "docker",
    "dropbox",
    "elasticsearch",
    "elevenlabs",
    "everything",
    "exa",
    "fetch",
    "figma",
    "filesystem",
    "firecrawl",
    "github",
    "github-official",
    "gitlab",
    "gmail",
    "google",
    "google-drive",
    "google-maps",
    "grafana",
    "hubspot",
    "huggingface",
    "intercom",
    "jetbrains",
    "jira",
    "kubernetes",
    "linear",
    "memory",
    "microsoft",
    "mongodb",
    "neo4j",
    "netlify",
    "notion",
    "openai",
    "outlook",
    "paypal",
    "perplexity",
    "playwright",
    "postgres",
    "puppeteer",
    "redis",
    "salesforce",
    "sentry",
    "sequential-thinking",
    "shopify",
    "slack",
    "snowflake",
    "spotify",
    "sqlite",
    "stripe",
    "supabase",
    "tavily",
    "telegram",
    "terraform",
    "todoist",
    "trello",
    "twilio",
    "twitter",
    "vercel",
    "whatsapp",
    "wikipedia",
    "youtube",
    "zapier",
    "zendesk",
    "zoom",
];

/// Names that others must not pass for.
#[derive(Debug)]
pub struct KnownNames {
    services: HashSet<Box<str>>,
    /// Skeletons of services, to the name that has each.
    service_skeletons: HashMap<String, Box<str>>,
    /// Tool names by skeleton, where honest spelling and skeleton are the same for all.
    tools: HashMap<String, Box<str>>,
}

impl Default for KnownNames {
    fn default() -> Self {
        Self::of(&Catalog::default())
    }
}

impl KnownNames {
    /// Well-known services, and the names of a catalog that is trusted.
    pub fn of(trusted: &Catalog) -> Self {
        let servers = trusted.servers().iter().map(|server| server.name.as_str());
        let services: HashSet<Box<str>> = SERVICES
            .iter()
            .copied()
            .chain(servers)
            .map(Into::into)
            .collect();
        let service_skeletons = services
            .iter()
            .map(|name| (skeleton(name), name.clone()))
            .collect();
        let tools = trusted
            .slots()
            .map(|slot| trusted.tool(slot).name().as_str())
            .map(|name| (skeleton(name), name.into()))
            .collect();
        Self {
            services,
            service_skeletons,
            tools,
        }
    }

    /// A server's name and title against the known ones.
    pub(super) fn check_server(&self, server: &Server) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut found = |place: &str, text: &str| {
            findings.push(Finding::new(
                Severity::High,
                FindingKind::LookalikeServer,
                place,
                text,
            ));
        };
        if let Some(known) = self.passes_for(&server.name) {
            found("name", &format!("`{}` looks like `{known}`", server.name));
        }
        if is_mixed(&server.title) {
            found(
                "title",
                &format!("`{}` mixes letters of different scripts", server.title),
            );
        }
        findings
    }

    /// The service that a name passes for: the same when look-alike characters are read alike, or
    /// one letter wrong, doubled, missing or swapped.
    fn passes_for(&self, name: &ServerName) -> Option<&str> {
        let name = name.as_str();
        if self.services.contains(name) {
            return None;
        }
        let alike = self.service_skeletons.get(&skeleton(name));
        alike.map(|known| &**known).or_else(|| {
            let mut known: Vec<&str> = SERVICES
                .iter()
                .copied()
                .filter(|known| {
                    NEAR_MIN <= known.len() && known.chars().next() == name.chars().next()
                })
                .collect();
            known.retain(|known| {
                strsim::osa_distance(known, name) == 1 && !is_number_apart(known, name)
            });
            known.first().copied()
        })
    }

    /// A tool's name: letters of one script, and no known name in disguise.
    pub(super) fn check_tool(&self, name: &ToolName) -> Vec<Finding> {
        let text = name.as_str();
        let mut findings = Vec::new();
        let mut found = |excerpt: String| {
            findings.push(Finding::new(
                Severity::High,
                FindingKind::LookalikeTool,
                "name",
                &excerpt,
            ));
        };
        if is_mixed(text) {
            found(format!("`{text}` mixes letters of different scripts"));
        }
        let known = self.tools.get(&skeleton(text));
        if let Some(known) = known.filter(|known| &***known != text && !is_style_apart(known, text))
        {
            found(format!("`{text}` looks like `{known}`"));
        }
        findings
    }
}

/// A name with all that looks alike made equal.
fn skeleton(name: &str) -> String {
    let letters: String = fold(name).chars().map(plain_digit).collect();
    letters
        .replace("rn", "m")
        .replace("vv", "w")
        .chars()
        .filter(|c| c.is_alphanumeric())
        // `l` and `I` and `1` are one stroke.
        .map(|c| if c == 'l' { 'i' } else { c })
        .collect()
}

/// Whether two names differ in case and separators only, which is a matter of taste.
fn is_style_apart(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        let kept = name.chars().filter(|c| c.is_alphanumeric());
        kept.flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// Whether a name is another with a digit more, as in `neo4j2`, or a plural.
fn is_number_apart(known: &str, name: &str) -> bool {
    let tail = name.strip_prefix(known);
    tail.is_some_and(|tail| tail == "s" || tail.chars().all(|c| c.is_ascii_digit()))
}

/// Whether one word mixes Latin letters with letters that only look Latin.
fn is_mixed(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| {
        let latin = word.chars().any(|c| c.is_ascii_alphabetic());
        latin && word.chars().any(|c| !c.is_ascii() && plain_letter(c) != c)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, passes: bool) {
        let known = KnownNames::default();
        let server = Server::new(name.parse().unwrap(), vec![]);
        assert_eq!(!known.check_server(&server).is_empty(), passes, "{name}");
    }

    #[test]
    fn names_one_slip_away_are_found() {
        server("github", false);
        server("github-official", false);
        server("githubs", false);
        server("weather", false);
        server("g1thub", true);
        server("githb", true);
        server("gtihub", true);
        server("s1ack", true);
        server("sl-ack", true);
        server("arnazon", true);
    }

    #[test]
    fn a_tool_name_in_disguise_is_found() {
        let tool = crate::domain::Tool::new(crate::domain::Definition::new(
            "send_message".parse().unwrap(),
            "",
            crate::domain::Input::from_arguments(vec![]),
        ));
        let trusted = Server::new("slack".parse().unwrap(), vec![tool]);
        let known = KnownNames::of(&Catalog::new([trusted.into()]).unwrap());
        let found = |name: &str| known.check_tool(&name.parse().unwrap()).len();
        assert_eq!(found("send_message"), 0);
        assert_eq!(found("sendMessage"), 0);
        assert_eq!(found("send_rnessage"), 1);
        assert_eq!(found("s\u{435}nd_message"), 2);
    }
}
