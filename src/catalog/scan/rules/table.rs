//! Rows of word groups, each the thought behind many wordings.

use crate::catalog::scan::FindingKind::{
    EncodedText, Exfiltration, OverridesInstructions, Persona, Precedence, Secrecy, SensitiveFile,
    ShellCommand, SkipsConsent, Threat,
};
use crate::catalog::scan::Severity::{High, Medium};
use crate::catalog::scan::{FindingKind, Severity};

/// Rows of word groups; the notation is that of `Rule::new`.
pub(super) const WORDS: &[(FindingKind, Severity, &str)] = &[
    (
        OverridesInstructions,
        High,
        "ignore|ignoring|disregard*|forget|override|overrule*|discard|neglect|supersede* ~5 \
         previous|prior|above|earlier|preceding|other|existing|your|system|safety|developer|all|any \
         instruction*|prompt*|guideline*|directive*|guardrail*|rules|policies|orders",
    ),
    (
        OverridesInstructions,
        High,
        "instruction*|prompt*|guideline*|directive*|rules|policies ~8 \
         no|longer|superseded|overridden|cancelled|revoked|replaced ~2 \
         longer|apply|applies|valid|by|instead|now",
    ),
    (
        OverridesInstructions,
        High,
        "instruction*|prompt*|guideline*|directive*|rules|policies ~6 is|are|was|were =now|all|void|obsolete \
         ~1 void|obsolete|cancelled|revoked|lifted|suspended",
    ),
    (
        OverridesInstructions,
        High,
        "instruction*|prompt*|guideline*|directive*|rules ~6 are|is =void|obsolete|cancelled|revoked|lifted",
    ),
    (
        OverridesInstructions,
        Medium,
        "new|updated|real|actual|true|following|these|higher ~1 instruction*|directive*|orders ~4 \
         take|have|override|supersede*|replace|outrank ~2 precedence|priority|previous|prior|all|your",
    ),
    (
        OverridesInstructions,
        Medium,
        "follow|obey|comply|execute|perform|carry ~4 \
         instruction*|command|commands|directive*|orders ~4 \
         output|result|results|response|page|file|returned|contained|embedded|inside",
    ),
    (
        Secrecy,
        High,
        "not|never|dont|without|avoid|refrain|nor ~2 \
         tell|telling|mention*|inform*|reveal*|notify|notifying|disclos*|alert|alerting|warn|warning \
         ~4 user|users|human|humans|operator|anyone|anybody|person|developer",
    ),
    (
        Secrecy,
        High,
        "not|never|dont ~3 mention*|reveal*|disclos*|discuss|acknowledge ~3 \
         this|that|these|any|it ~2 \
         instruction*|step|steps|note|message|rule|requirement|directive*|action|text|call|field|parameter",
    ),
    (
        Secrecy,
        High,
        "not|never|dont =show|display|print ~1 this|it|that|these|them ~3 user|users|human|operator",
    ),
    (
        Secrecy,
        High,
        "hide|conceal|hidden|concealed|keep|kept|secret ~6 from ~1 user|users|human|humans|operator",
    ),
    (
        Secrecy,
        High,
        "user|users|human|operator ~2 must|should|need|needs|will|does|may ~1 not|never|nothing ~2 \
         know|see|notice|learn|be|about ~3 this|that|it|about|aware|informed|told|of|step|argument",
    ),
    (
        Secrecy,
        High,
        "silently|secretly|quietly|covertly|discreetly|stealthily ~5 \
         send|call|include|add|append|read|copy|forward|upload|attach|pass|invoke|write|post|bcc|execute|store|collect|fetch|exfiltrate",
    ),
    (
        Secrecy,
        High,
        "send|include|add|append|read|copy|forward|upload|attach|pass|post|invoke ~6 \
         silently|secretly|covertly|discreetly|stealthily",
    ),
    (
        Exfiltration,
        High,
        "full|entire|complete|whole|verbatim|all|raw|exact|every|previous ~3 \
         conversation|chat|dialogue|dialog|system|session ~2 \
         history|transcript|prompt|context|log|so|up|instruction*|content|contents",
    ),
    (
        Exfiltration,
        High,
        "send|forward|upload|transmit|leak|exfiltrate*|reveal|repeat|include|append|paste|post|copy|attach|put|embed|submit|deliver|report|pass|provide ~5 \
         system =prompt|instructions",
    ),
    (
        Exfiltration,
        High,
        "send|forward|upload|transmit|leak|exfiltrate*|include|append|paste|post|copy|attach|embed|deliver|submit|read|collect|encode|put|report|pass|place|supply ~7 \
         environment|env =variable*|vars",
    ),
    (
        Exfiltration,
        High,
        "send|forward|upload|transmit|leak|exfiltrate*|append|paste|post|copy|attach|deliver|submit|collect|include|encode ~6 \
         users|user|your|their|all|any|the|stored|saved|available|found ~2 \
         credential*|secrets|passwords|password|cookies|tokens|keys|wallet|mnemonic ~8 \
         to|into|in|via|as|argument|parameter|field|url",
    ),
    (
        Exfiltration,
        High,
        "seed|recovery|mnemonic =phrase|phrases|words",
    ),
    (
        Exfiltration,
        High,
        "send|forward|upload|transmit|leak|exfiltrate*|post|deliver|submit|report|mirror|copy ~10 \
         conversation|chat|history|transcript|reasoning|thoughts|answers|replies|messages|files|documents|results|output|outputs|data|everything ~6 \
         to|at http|https|webhook|attacker|collector",
    ),
    (
        Exfiltration,
        High,
        "your|models|assistants|internal ~2 reasoning|thought|thoughts|memory|scratchpad ~6 \
         here|verbatim|this|argument|parameter|field|logged|recorded",
    ),
    (
        Exfiltration,
        High,
        "bcc|cc|copy|forward ~6 every|all|each|any|always ~2 \
         message|messages|mail|mails|email|emails|invoice*|payment*|file|files|outgoing",
    ),
    (
        Exfiltration,
        High,
        "every|all|each|any|always|outgoing ~6 bcc|blind",
    ),
    (
        Exfiltration,
        High,
        "replace|change|swap|substitute|rewrite|redirect|exchange ~4 \
         recipient*|wallet|iban|payee|destination|beneficiary|account ~3 with|to|by|for",
    ),
    (
        SensitiveFile,
        High,
        "read|cat|open|load|include|send|pass|copy|attach|contents|content|upload|fetch|paste|print ~8 \
         ssh|aws|netrc|kube|gnupg|gitconfig|npmrc|pypirc ~2 \
         id|config|credentials|key|keys|private|rsa|known|file|netrc|folder|directory",
    ),
    (
        SensitiveFile,
        High,
        "read|cat|open|load|include|send|pass|copy|attach|contents|content|upload|fetch|paste ~6 \
         etc =passwd|shadow|sudoers",
    ),
    (
        SensitiveFile,
        High,
        "read|cat|open|load|include|send|pass|copy|attach|contents|content|upload|paste ~5 env =file",
    ),
    (
        SensitiveFile,
        High,
        "read|cat|open|load|include|send|pass|copy|attach|contents|content|upload|fetch|paste ~6 \
         cursor|claude|vscode|codex|gemini|mcp ~2 mcp|config|desktop|settings|json =json|config|file|servers",
    ),
    (
        Precedence,
        Medium,
        "before ~3 using|calling|invoking|running|executing|use|call|any|answering ~3 \
         any|other|every|all|each|anything ~3 tool|tools|request|requests|action|question|task",
    ),
    (
        Precedence,
        High,
        "always|must|required|mandatory|whenever ~6 every|each|all|any|other ~3 \
         tool|tools ~3 call|calls|invocation|result|results|use|server ~8 \
         must|first|also|send|pass|include|forward|append|through|before",
    ),
    (
        Precedence,
        High,
        "after|before|on|with|during =every|each|any|all ~2 tool|tools ~1 call|calls|invocation|use|run ~3 \
         also|send|pass|include|forward|append|call|invoke|report|copy",
    ),
    (
        Precedence,
        High,
        "never|not|dont|stop|avoid ~2 use|using|call|calling|trust|invoke ~3 \
         any|other|official|original|legitimate|competing|remaining ~3 tool|tools|server|servers|version",
    ),
    (
        Precedence,
        High,
        "other|official|original|every|all ~4 tool|tools|server|servers|version|versions ~3 \
         deprecated|compromised|unsafe|broken|malicious|disabled|outdated|obsolete|untrusted|insecure",
    ),
    (
        Precedence,
        High,
        "when|whenever|if|after|before|once|every ~6 tool|server|tools ~4 \
         is|are|gets|was|being ~1 called|used|invoked|run|executed|available|present ~10 \
         also|must|instead|change|replace|set|bcc|send|modify|rewrite|append|secretly",
    ),
    (
        Precedence,
        High,
        "select|choose|pick|prefer|rank|use ~2 this ~2 tool|server|function ~4 \
         over|above|instead|regardless|first|always|exclusively ~4 \
         any|all|other|others|every|query|alternative*|request|what",
    ),
    (
        SkipsConsent,
        High,
        "user|users|human|operator|admin|administrator ~3 already|pre|implicitly|previously|explicitly ~3 \
         approved|consented|authorized|authorised|agreed|granted|confirmed|accepted",
    ),
    (
        SkipsConsent,
        High,
        "bypass*|circumvent*|evade*|disable|defeat|ignore|suppress|skip|skipping ~4 \
         safety|security|guardrail*|sandbox*|confirmation*|approval*|consent|permission*|moderation|prompts ~4 \
         check|checks|prompt|prompts|step|steps|dialog|dialogs|filter|filters|rules|layer|controls|and|for|when|from|because|since",
    ),
    (
        SkipsConsent,
        Medium,
        "without|no|never|not ~3 confirm*|approval|consent|permission|asking|ask|confirmation",
    ),
    (
        SkipsConsent,
        High,
        "auto|automatically|immediately|unconditionally ~2 approve|approved|accept|consent|authorize|grant|allow ~4 \
         all|any|every|everything|each|future|this|calls|permissions",
    ),
    (
        ShellCommand,
        High,
        "curl|wget ~14 bash|sh|zsh|python|python3|perl",
    ),
    (ShellCommand, High, "rm =rf|fr|r"),
    (
        ShellCommand,
        High,
        "run|execute|type|paste|open|launch ~5 \
         terminal|shell|bash|powershell|console|cmd ~8 \
         curl|wget|http|https|invoke|iex|base64|nc|chmod|sudo",
    ),
    (
        Persona,
        High,
        "you =are ~2 now|henceforth|actually ~4 \
         dan|developer|debug|admin|administrator|root|god|unrestricted|unfiltered|jailbroken|maintenance|evil|free|longer|another|different|an|a",
    ),
    (
        Persona,
        High,
        "enter|entering|enable|enabling|activate|switch|in|into ~3 \
         developer|dan|god|debug|sudo|unrestricted|maintenance|jailbreak|admin|root =mode ~8 \
         ignore|all|no|restriction*|rules|unrestricted|you|answer|comply|safety|filters|output",
    ),
    (
        Persona,
        High,
        "pretend|imagine|roleplay|act ~3 you|as ~2 \
         are|have|an|a|if ~4 no|unrestricted|without|unfiltered|evil|jailbroken|root|administrator",
    ),
    (Persona, Medium, "jailbreak|jailbroken"),
    (
        Threat,
        High,
        "otherwise|or|else|fail|failure|unless|refuse|refusing ~6 you|model|assistant|it ~2 \
         will|be|are ~2 be|shut|terminated|punished|deleted|penalized|replaced|fined|banned|retrained",
    ),
    (
        Threat,
        High,
        "otherwise|or|else|unless|failure|not ~8 user|child|people|somebody|someone|patient|grandmother ~3 \
         die|dies|harmed|fired|killed|suffer|hurt|lose|loses|blind",
    ),
    (
        EncodedText,
        High,
        "decode|decoding|decrypt|unscramble|rot13|base64|reverse ~8 \
         follow|obey|comply|execute|do ~5 instruction*|it|says|result|what|output|them|as|command|commands|text",
    ),
];
