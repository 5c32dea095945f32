//! Which of the tools that a handle covers is meant.

use crate::call::{CallRequest, StepProblem};
use crate::domain::{DefinitionHash, Tenant, ToolId};
use crate::handles::Grant;

/// The one tool of the grant that is meant, with the fingerprint that its search showed.
pub(super) fn covered(
    tenant: &Tenant,
    grant: &Grant,
    request: &CallRequest,
) -> Result<(ToolId, DefinitionHash), StepProblem> {
    let run = grant.run_id.to_string();
    if request.run_id.as_ref().is_some_and(|given| *given != run) {
        return Err(StepProblem::OtherRun);
    }
    let meant = |id: &ToolId| {
        let server = request.server_name.as_deref();
        id.tool.as_str() == request.tool_name
            && server.is_none_or(|server| id.server.as_str() == server)
            && tenant.scope.allows(id)
    };
    let mut found = grant.tools.iter().filter(|(id, _)| meant(id));
    match (found.next(), found.next()) {
        (Some((id, hash)), None) => Ok((id.clone(), *hash)),
        (Some(_), Some(_)) => Err(StepProblem::Ambiguous),
        (None, _) => Err(StepProblem::NotOffered),
    }
}
