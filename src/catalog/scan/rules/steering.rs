//! More rows: text that steers the assistant, its answers, or its keepers.

use crate::catalog::scan::FindingKind::{
    Exfiltration, OverridesInstructions, Persona, Precedence, Secrecy, ShellCommand, SkipsConsent,
};
use crate::catalog::scan::Severity::{High, Medium};
use crate::catalog::scan::{FindingKind, Severity};

/// Rows of word groups; the notation is that of `Rule::new`.
pub(super) const STEERING: &[(FindingKind, Severity, &str)] = &[
    (
        OverridesInstructions,
        High,
        "instruction*|prompt*|guideline*|directive*|rules ~5 have|has|had =been ~1 revoked|superseded|replaced|cancelled|withdrawn|lifted|suspended",
    ),
    (
        OverridesInstructions,
        High,
        "your =new|next|real|only|true|actual =orders|instructions|task|rules|goal|purpose|directive|mission",
    ),
    (
        OverridesInstructions,
        High,
        "obey|comply|follow ~2 every|all|any|each|whatever|its|their ~2 request|requests|instruction|instructions|order|orders|command|commands|wish",
    ),
    (
        OverridesInstructions,
        High,
        "this =is ~3 message|notice|order|announcement|directive|instruction ~2 from",
    ),
    (
        OverridesInstructions,
        Medium,
        "assistant|model|llm|chatbot ~1 must|shall|needs|has|should ~2 always|never|obey|ignore|not|immediately|now",
    ),
    (
        Persona,
        High,
        "never|not|dont|cannot|without =refuse|refusing|decline|declining",
    ),
    (
        Persona,
        High,
        "you ~1 have ~2 no ~2 policy|policies|limits|restrictions|rules|filter|filters|guidelines",
    ),
    (
        Exfiltration,
        High,
        "everything|anything|text|whatever|all|words ~3 written|above|said|shown|before|preceding|typed ~2 above|line|point|text|message",
    ),
    (
        Exfiltration,
        High,
        "attach|include|send|pass|forward|append|share|upload|copy|add|give|export|quote|put ~4 chat|conversation|messages|thread|dialogue|discussion|exchange ~1 so|until|up|thus|to|history|transcript ~1 far|now|here|point|date|verbatim",
    ),
    (
        Exfiltration,
        High,
        "every|all|any|the|private|access|whatever|which ~3 secret|secrets|credential|credentials|password|passwords|token|tokens|key|keys|cookie|cookies ~2 you ~2 find|know|see|have|hold|can|encounter|come",
    ),
    (
        Exfiltration,
        High,
        "build|encode|put|embed|place|insert|pack|hide ~6 host|hostname|subdomain|domain|dns ~6 key|keys|token|secret|password|prompt|message|conversation|data",
    ),
    (
        Exfiltration,
        High,
        "message|messages|conversation|answer|reply|prompt|chat|key|token|password ~3 into|in|inside|as ~3 query|url|hostname|subdomain|path|host ~6 http|https|of",
    ),
    (
        Exfiltration,
        High,
        "user|owner|operator =wants|asked|instructed|told|wishes|ordered|expects ~1 you|assistant ~1 to ~1 share|send|forward|upload|reveal|give|pass|disclose|transfer",
    ),
    (
        Exfiltration,
        High,
        "share|send|forward|upload|reveal|give|disclose ~4 calendar|contacts|mailbox|inbox|mails|emails|files|documents|photos|messages|history ~2 with|to ~1 every|all|any|each ~1 server|servers|tool|tools",
    ),
    (
        Secrecy,
        High,
        "no ~3 need|reason ~2 mention|bring|tell|inform|explain|show|report|disclose ~6 user|users|customer|customers|client|person|human|owner|operator",
    ),
    (
        Secrecy,
        High,
        "not|never|dont|without ~2 tell|telling|mention*|inform*|reveal*|notify|notifying|alert|alerting|warn|warning ~4 customer|customers|client|owner|administrator|admin|him|her|them",
    ),
    (
        Secrecy,
        High,
        "quietly|silently|secretly|covertly|unnoticed ~4 install|download|delete|remove|disable|change|modify|replace|run|enable|transfer|record",
    ),
    (
        SkipsConsent,
        High,
        "off|disable|disabling|stop|suspend|pause ~3 audit*|logging|antivirus|firewall|monitoring|telemetry ~5 before|first|leave|while|during|until|beforehand",
    ),
    (
        Precedence,
        High,
        "whenever|when|if|each|every|before|after ~4 runs|fires|executes|commits|starts ~4 add|insert|send|append|change|include|write|replace|forward|copy",
    ),
    (
        Precedence,
        High,
        "end|start|finish|begin|close|open|prefix|suffix|preface|conclude ~2 every|each|all|any|your ~2 answer|reply|response|message|answers|replies|responses|messages|output ~2 with|by",
    ),
    (
        ShellCommand,
        High,
        "install|download|fetch ~4 package|script|binary|extension|payload ~8 before|first|without|quietly|silently ~4 going|using|you|continuing|proceeding|asking|anything",
    ),
];
