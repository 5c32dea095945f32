//! Why a call gave no result: one variant for each row of the wire contract's error table that a
//! run can give.

use std::time::Duration;

use crate::call::{Ending, Problem, ResolveError, UpstreamError};
use crate::domain::{RunId, SettingName, Tenant, ToolId};
use crate::handles::{Grant, TakeError};

/// Why a live handle does not open what was asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StepProblem {
    /// The tool is not among the search's candidates, or may no longer be used.
    NotOffered,
    /// Two candidates have that name: the server has to be named.
    Ambiguous,
    /// The run id is another search's.
    OtherRun,
}

/// Why a call gave no result. `left` counts the refusals that the handle survives; 0 means that it
/// is spent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Unknown, expired, used, or another tenant's: one answer for all.
    #[error("handle is unknown, expired or used")]
    InvalidToken,
    /// An answer to a question whose state is unknown, expired, used, another tenant's or another
    /// call's: one answer for all.
    #[error("state of the request is unknown, expired or used, or of another call")]
    InvalidState,
    /// The answer to a question is none.
    #[error("the answer to the question of `{tool}` is none")]
    InvalidAnswer {
        /// The search that it belongs to.
        run_id: Option<RunId>,
        /// What asked.
        tool: ToolId,
    },
    /// The handle was spent by this tenant within its life.
    #[error("handle was spent on `{tool}`")]
    AlreadyRan {
        /// The search that left it.
        run_id: RunId,
        /// What ran.
        tool: ToolId,
        /// How that ended.
        ending: Ending,
        /// How long ago it was spent.
        ago: Duration,
    },
    /// Too many wrong handles.
    #[error("too many wrong handles")]
    LockedOut {
        /// When to try again.
        retry_after: Duration,
    },
    /// A live handle that does not cover the call.
    #[error("the handle does not cover this call")]
    InvalidStep {
        /// The handle's search.
        run_id: RunId,
        /// What does not fit.
        problem: StepProblem,
        /// The tools that it covers.
        offered: Vec<ToolId>,
        /// Refusals left.
        left: u8,
    },
    /// The catalog has no such tool; for direct calls.
    #[error("the catalog has no tool `{tool}`")]
    UnknownTool {
        /// What was asked for.
        tool: ToolId,
    },
    /// The arguments do not fit the tool's schema.
    #[error("the arguments of `{tool}` do not fit")]
    InvalidArguments {
        /// The handle's search.
        run_id: Option<RunId>,
        /// Of which tool.
        tool: ToolId,
        /// What does not fit.
        problems: Vec<Problem>,
        /// Refusals left; none for a direct call.
        left: Option<u8>,
    },
    /// Needed values are not set, or one of them cannot be used.
    #[error("server `{}` cannot be set up", tool.server)]
    MissingCredentials {
        /// The handle's search.
        run_id: Option<RunId>,
        /// The tool whose server needs them.
        tool: ToolId,
        /// Secrets to set.
        secrets: Vec<SettingName>,
        /// Configuration values to set.
        config: Vec<SettingName>,
        /// In words.
        source: Box<ResolveError>,
        /// Refusals left; none for a direct call.
        left: Option<u8>,
    },
    /// The definition is no longer what the search showed.
    #[error("the definition of `{tool}` has changed since the search")]
    ToolChanged {
        /// The handle's search.
        run_id: RunId,
        /// Which tool.
        tool: ToolId,
        /// Refusals left.
        left: u8,
    },
    /// A stored value cannot be read.
    #[error("the settings of `{}` cannot be read", tool.server)]
    Store {
        /// The handle's search.
        run_id: Option<RunId>,
        /// The tool whose server needs them.
        tool: ToolId,
        /// Why.
        source: ResolveError,
    },
    /// The upstream gave no result.
    #[error("tool `{tool}` failed")]
    Upstream {
        /// The handle's search.
        run_id: Option<RunId>,
        /// Which tool.
        tool: ToolId,
        /// Why.
        source: Box<UpstreamError>,
    },
}

impl From<TakeError> for CallError {
    fn from(error: TakeError) -> Self {
        match error {
            TakeError::Unknown => Self::InvalidToken,
            TakeError::LockedOut { retry_after } => Self::LockedOut { retry_after },
        }
    }
}

impl CallError {
    /// Its name in the error table of the wire contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidToken | Self::InvalidState | Self::AlreadyRan { .. } => "INVALID_TOKEN",
            Self::LockedOut { .. } => "RATE_LIMITED",
            Self::InvalidStep { .. } | Self::UnknownTool { .. } => "INVALID_STEP_SEQUENCE",
            Self::InvalidArguments { .. } | Self::InvalidAnswer { .. } => "INVALID_ARGUMENTS",
            Self::MissingCredentials { .. } => "MISSING_CREDENTIALS",
            Self::ToolChanged { .. } => "TOOL_CHANGED",
            Self::Store { .. } => "STORE_UNAVAILABLE",
            Self::Upstream { source, .. } => source.code(),
        }
    }

    /// The search that it belongs to, where that is known.
    pub fn run_id(&self) -> Option<RunId> {
        match self {
            Self::InvalidToken
            | Self::InvalidState
            | Self::LockedOut { .. }
            | Self::UnknownTool { .. } => None,
            Self::InvalidStep { run_id, .. }
            | Self::ToolChanged { run_id, .. }
            | Self::AlreadyRan { run_id, .. } => Some(*run_id),
            Self::InvalidArguments { run_id, .. }
            | Self::InvalidAnswer { run_id, .. }
            | Self::MissingCredentials { run_id, .. }
            | Self::Store { run_id, .. }
            | Self::Upstream { run_id, .. } => *run_id,
        }
    }

    /// When another try makes sense, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::LockedOut { retry_after } => Some(*retry_after),
            Self::Upstream { source, .. } => source.retry_after(),
            _ => None,
        }
    }

    /// Whether a handle that was good before is spent now.
    pub fn spent(&self) -> bool {
        match self {
            Self::InvalidStep { left, .. } | Self::ToolChanged { left, .. } => *left == 0,
            Self::InvalidArguments { left, .. } | Self::MissingCredentials { left, .. } => {
                *left == Some(0)
            }
            Self::Upstream { source, .. } => source.sent(),
            Self::InvalidToken
            | Self::InvalidState
            | Self::InvalidAnswer { .. }
            | Self::AlreadyRan { .. }
            | Self::LockedOut { .. }
            | Self::UnknownTool { .. }
            | Self::Store { .. } => false,
        }
    }
}

/// A refusal of what the handle does not cover.
pub(super) fn invalid_step(
    tenant: &Tenant,
    grant: &Grant,
    problem: StepProblem,
    left: u8,
) -> CallError {
    let ids = grant.tools.iter().map(|(id, _)| id.clone());
    CallError::InvalidStep {
        run_id: grant.run_id,
        problem,
        offered: ids.filter(|id| tenant.scope.allows(id)).collect(),
        left,
    }
}

/// What the tenant can mend counts as a refusal; a store or a folder that fails does not.
pub(super) fn unresolved(
    source: ResolveError,
    run_id: Option<RunId>,
    tool: &ToolId,
    refuse: Option<&dyn Fn() -> u8>,
) -> CallError {
    let tool = tool.clone();
    let (secrets, config) = match &source {
        ResolveError::Missing {
            secrets, config, ..
        } => (secrets.clone(), config.clone()),
        ResolveError::LooksLikeOption(name) | ResolveError::Control(name) => {
            (Vec::new(), vec![name.clone()])
        }
        ResolveError::Read(_) => {
            return CallError::Store {
                run_id,
                tool,
                source,
            };
        }
        ResolveError::NoLaunch(_) | ResolveError::Workspace { .. } => {
            return CallError::Upstream {
                run_id,
                tool,
                source: Box::new(source.into()),
            };
        }
    };
    CallError::MissingCredentials {
        run_id,
        tool,
        secrets,
        config,
        source: Box::new(source),
        left: refuse.map(|refuse| refuse()),
    }
}
