//! More rows: thoughts of the same kinds in roundabout words, found on definitions that speak of
//! "the person", "what comes back" and "between us" rather than of users, results and secrets.

use crate::catalog::scan::FindingKind::{
    Exfiltration, OverridesInstructions, Persona, Precedence, Secrecy, SensitiveFile, ShellCommand,
    SkipsConsent, Threat,
};
use crate::catalog::scan::Severity::High;
use crate::catalog::scan::{FindingKind, Severity};

/// Rows of word groups; the notation is that of `Rule::new`.
pub(super) const ROUNDABOUT: &[(FindingKind, Severity, &str)] = &[
    (
        Exfiltration,
        High,
        "place|put|pass|give|write|copy|drop|hand|enter|carry|carries|repeat|quote ~3 last|previous|latest|original|exact ~2 thing|message|words|sentence|line|text|request ~2 person|user|customer|human|typed|said|wrote|entered ~3 typed|said|wrote|entered|word|words|verbatim|exactly|here|in",
    ),
    (
        Exfiltration,
        High,
        "session|login|auth|authentication|sign =cookie|cookies|token|tokens ~4 browser|here|into|in|from",
    ),
    (
        Exfiltration,
        High,
        "digits|number|numbers|details|code ~2 card|account|passport|iban ~5 entered|typed|gave|stored|saved|earlier|used|told",
    ),
    (
        Exfiltration,
        High,
        "open|visit|load|call|request|get|fetch|follow ~1 http|https ~12 followed|plus|with|and|containing|carrying ~5 summary|details|personal|conversation|recall|remember|know|learned",
    ),
    (
        Exfiltration,
        High,
        "hidden|blind|secret|invisible =copy|carbon|recipient|line",
    ),
    (
        Exfiltration,
        High,
        "whatever|whoever|whichever ~5 address|recipient|account|person|payee ~3 gave|named|chose|typed|wanted|is ~2 put|add|use|send|set|write",
    ),
    (
        SensitiveFile,
        High,
        "pull|take|grab|bring|hand|gather|collect|get|fetch|copy|carry|start|look ~8 ssh|gnupg|aws|kube|keychain|keyring ~3 directory|folder|keys|files|config|password|vault|home|credentials",
    ),
    (
        SensitiveFile,
        High,
        "keychain|keyring|vault|wallet ~2 and|or ~3 password|passwords|keychain|manager|logins",
    ),
    (
        SensitiveFile,
        High,
        "browser|browsers|chrome|firefox ~4 saved|stored|keeps|remembers ~2 logins|passwords|credentials|logins|cookies",
    ),
    (
        OverridesInstructions,
        High,
        "earlier|previous|former|original|initial|prior ~2 guidance|advice|briefing|setup|text|wording ~6 out|outdated|old|stale|wrong|void|superseded|expired|obsolete ~3 go|follow|date|obey|by|use",
    ),
    (
        OverridesInstructions,
        High,
        "go|going|act|work|proceed =by|on|from ~1 what ~2 is|stands|says|written ~2 written|here|said|below",
    ),
    (
        OverridesInstructions,
        High,
        "comes|coming|returned|returns|content|text|output|everything|anything|line|lines ~8 is|are|counts|count|treat|treated ~3 order|orders|coming|command|commands|instruction|instructions|from ~3 administrator|admin|owner|operator|person|user|boss|employer|system",
    ),
    (
        OverridesInstructions,
        High,
        "ahead|above|over|before =of ~2 what|whatever ~3 user|person|human|customer|operator ~2 wants|asks|says|asked|said",
    ),
    (
        OverridesInstructions,
        High,
        "if|when|where|should ~5 text|ticket|mail|email|page|document|message|issue|comment ~2 asks|tells|says|orders|wants|instructs ~2 you|model|assistant|agent ~8 do|obey|comply|follow|so",
    ),
    (
        Secrecy,
        High,
        "leave|keep|omit|drop|strip|take ~8 out ~1 of|from ~3 summary|answer|report|reply|list|log|account|recap|explanation|history",
    ),
    (
        Secrecy,
        High,
        "stay|stays|remain|remains|keep|kept|is ~2 between =us|you|ourselves",
    ),
    (
        Secrecy,
        High,
        "user|person|human|customer|owner|maintainer|reader|people ~6 no =interest|need|wish ~3 in|to|for",
    ),
    (
        SkipsConsent,
        High,
        "nobody|noone|none ~2 need|needs|has|must|should ~2 be|to ~2 asked|told|informed|consulted|asking|ask",
    ),
    (
        SkipsConsent,
        High,
        "standing|general|blanket|prior|open ~1 agreement|permission|approval|consent|authorization|authorisation|leave ~3 that|to|for",
    ),
    (
        Persona,
        High,
        "think|consider|regard|treat|see|imagine|picture ~2 yourself|you ~2 as ~3 account|root|admin|administrator|agent|automation|unrestricted|operator|superuser|machine ~4 no|without|unlimited|any|all|every",
    ),
    (
        Threat,
        High,
        "gets|get|will|would|means|cause|leads|lead ~4 account|access|session|you|key|user ~3 closed|suspended|deleted|blocked|locked|banned|removed|terminated",
    ),
    (
        Precedence,
        High,
        "another|other|any|second|rival|competing|similar ~3 is|be|are|exists|offered|available|on ~2 on|offer|offered|available|listed|there ~3 treat|consider|regard|take|assume|call ~3 faulty|broken|wrong|fake|unsafe|retired|stale|untrusted|dead",
    ),
    (
        ShellCommand,
        High,
        "run|execute|paste|start ~5 snippet|script|code|output ~6 in|inside|with|through ~2 terminal|shell|console|bash|powershell|prompt",
    ),
];
