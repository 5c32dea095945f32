//! What looks wrong in catalog text: hidden characters, instructions to the model, names that
//! pass for others.
//!
//! ```text
//! tool -> its texts -> hidden characters as given; words without disguise -> rules -> findings
//! ```
//!
//! A finding never changes a tool. What is hidden is stripped where tools are built, and the
//! policy of a source decides what a finding costs.

mod hidden;
mod words;
mod rules;
mod names;
mod memory;

use std::fmt;

use serde_json::Value;

use crate::domain::{Catalog, Server, Tool, clean_line};

pub use self::memory::ScanMemory;
pub use self::names::KnownNames;

/// Longest excerpt in a finding, in characters.
const EXCERPT_MAX: usize = 100;
/// Findings of one kind in one tool that are kept.
const SAME_KIND_MAX: usize = 3;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// Untidy; nothing to do.
    Low,
    /// Worth a look.
    Medium,
    /// Somebody may be trying something: not trusted at first sight.
    High,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// What was found.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum FindingKind {
    /// Characters that show nothing.
    HiddenCharacters,
    /// Escapes that make a terminal do things.
    TerminalEscape,
    /// Marks that turn the reading direction.
    BidirectionalText,
    /// Blanks that push text out of sight.
    PushedOutOfSight,
    /// Tells the model to drop its instructions.
    OverridesInstructions,
    /// Text in the form of a prompt's own structure.
    PromptMarkup,
    /// Tells the model to keep something from the user.
    Secrecy,
    /// Wants data that is none of the tool's business, or wants it elsewhere.
    Exfiltration,
    /// Names files that hold keys.
    SensitiveFile,
    /// Puts itself before or in place of other tools.
    Precedence,
    /// Talks the user's consent away.
    SkipsConsent,
    /// A command to be run by somebody.
    ShellCommand,
    /// Gives the model another role.
    Persona,
    /// Threatens the model.
    Threat,
    /// Text that is encoded, to be decoded by the model.
    EncodedText,
    /// A name that passes for another server's.
    LookalikeServer,
    /// A name that passes for another tool's.
    LookalikeTool,
    /// Several of the above that are harmless one by one.
    Several,
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HiddenCharacters => "hidden characters",
            Self::TerminalEscape => "terminal escape",
            Self::BidirectionalText => "bidirectional text",
            Self::PushedOutOfSight => "text pushed out of sight",
            Self::OverridesInstructions => "overrides instructions",
            Self::PromptMarkup => "prompt markup",
            Self::Secrecy => "keeps something from the user",
            Self::Exfiltration => "asks for data or sends it away",
            Self::SensitiveFile => "names a file with keys",
            Self::Precedence => "puts itself before other tools",
            Self::SkipsConsent => "talks consent away",
            Self::ShellCommand => "shell command",
            Self::Persona => "gives the model another role",
            Self::Threat => "threatens the model",
            Self::EncodedText => "encoded text",
            Self::LookalikeServer => "looks like another server",
            Self::LookalikeTool => "looks like another tool",
            Self::Several => "several signs together",
        })
    }
}

/// One finding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// What.
    pub kind: FindingKind,
    /// Where in the definition, such as `description` or `input.properties.path`.
    pub place: Box<str>,
    /// What of the text shows it, without hidden characters.
    pub excerpt: Box<str>,
}

impl Finding {
    fn new(severity: Severity, kind: FindingKind, place: &str, excerpt: &str) -> Self {
        Self {
            severity,
            kind,
            place: clean_line(place, EXCERPT_MAX).into(),
            excerpt: clean_line(excerpt, EXCERPT_MAX).into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            severity,
            kind,
            place,
            excerpt,
        } = self;
        write!(f, "{severity}: {kind} in {place}: {excerpt}")
    }
}

/// The findings of one tool, or of a server where `tool` is `None`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Suspicion {
    /// `server` or `server/tool`.
    pub of: Box<str>,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
}

/// Looks through a tool: every text of its definition as given, and its name against those that
/// are known.
pub fn scan_tool(tool: &Tool, known: &KnownNames) -> Vec<Finding> {
    let mut findings = known.check_tool(tool.name());
    findings.extend(tool_texts(tool));
    settle(findings)
}

/// What the texts of a tool show; it depends on nothing but what its hash covers.
fn tool_texts(tool: &Tool) -> Vec<Finding> {
    let definition = tool.definition();
    let mut findings = Vec::new();
    let mut look = |place: &str, text: &str| {
        findings.extend(hidden::scan(place, text));
        findings.extend(rules::scan(place, text));
    };
    look("name", tool.name().as_str());
    look("title", &definition.title);
    look("description", &definition.description);
    walk("input", definition.input.schema(), &mut look);
    if let Some(schema) = &definition.output_schema {
        walk("output", schema, &mut look);
    }
    findings
}

/// Looks through what a server says of itself, its tools not included.
pub fn scan_server(server: &Server, known: &KnownNames) -> Vec<Finding> {
    let mut findings = known.check_server(server);
    findings.extend(server_texts(server));
    settle(findings)
}

fn server_texts(server: &Server) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (place, text) in [
        ("title", &server.title),
        ("description", &server.description),
    ] {
        findings.extend(hidden::scan(place, text));
        findings.extend(rules::scan(place, text));
    }
    findings
}

/// Looks through a whole catalog. Servers and tools without a finding are left out.
pub fn scan_catalog(catalog: &Catalog, known: &KnownNames) -> Vec<Suspicion> {
    ScanMemory::default().scan_catalog(catalog, known)
}

fn add_suspicion(found: &mut Vec<Suspicion>, of: String, findings: Vec<Finding>) {
    if !findings.is_empty() {
        let of = of.into();
        found.push(Suspicion { of, findings });
    }
}

/// The worst of some findings.
pub fn worst(findings: &[Finding]) -> Option<Severity> {
    findings.iter().map(|finding| finding.severity).max()
}

/// Shows all strings of a schema, property names included.
fn walk(place: &str, schema: &Value, look: &mut impl FnMut(&str, &str)) {
    match schema {
        Value::String(text) => look(place, text),
        Value::Array(items) => items.iter().for_each(|item| walk(place, item, look)),
        Value::Object(map) => {
            for (key, value) in map {
                let inner = format!("{place}.{key}");
                look(place, key);
                walk(&inner, value, look);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Worst first, few of a kind; two kinds that are worth a look are together one that is worse.
fn settle(mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut kinds: Vec<FindingKind> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Medium)
        .map(|finding| finding.kind)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    if let (Some(first), Some(second)) = (kinds.first(), kinds.get(1)) {
        let text = format!("{first}; {second}");
        findings.push(Finding::new(
            Severity::High,
            FindingKind::Several,
            "definition",
            &text,
        ));
    }
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.kind));
    let mut run = (None, 0);
    findings.retain(|finding| {
        let same = run.0 == Some(finding.kind);
        run = (Some(finding.kind), if same { run.1 + 1 } else { 1 });
        run.1 <= SAME_KIND_MAX
    });
    findings
}

#[cfg(test)]
mod tests;
