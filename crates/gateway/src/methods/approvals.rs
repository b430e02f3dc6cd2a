//! `exec.approval.request`, `exec.approval.resolve` (spec `gateway-protocol.md` §6.10).

use std::time::Duration;

use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::approvals::{
    ExecApprovalDecision, ExecApprovalRequestParams, ExecApprovalResolveParams,
};
use openclaw_protocol::params::system::Done;
use openclaw_tools::approvals::{ApprovalRequest, DEFAULT_WAIT, Decision};

use crate::request::{Failure, RequestContext};

/// Waits for the decision; a client that goes takes its question back.
pub(super) async fn request(
    ctx: RequestContext,
    params: ExecApprovalRequestParams,
) -> Result<ExecApprovalDecision, Failure> {
    let wait = params.timeout_ms.map_or(DEFAULT_WAIT, Duration::from_millis);
    let id = params.id.map(|id| id.0);
    let request = ApprovalRequest {
        command: params.command.0,
        cwd: params.cwd,
        host: params.host,
        security: params.security,
        ask: params.ask,
        agent_id: params.agent_id,
        resolved_path: params.resolved_path,
        session_key: params.session_key,
    };
    let asked = ctx.gateway.approvals.ask(id, request, wait);
    let (question, deciding) = asked.map_err(|error| ErrorShape::invalid(error.to_string()))?;
    let decision = deciding.await;
    Ok(ExecApprovalDecision {
        id: question.id.clone(),
        decision: decision.map(|decision| decision.as_str().to_owned()),
        created_at_ms: question.created_at,
        expires_at_ms: question.expires_at,
    })
}

pub(super) async fn resolve(ctx: RequestContext, params: ExecApprovalResolveParams) -> Result<Done, Failure> {
    let decision = Decision::parse(&params.decision.0);
    let decision = decision.ok_or_else(|| ErrorShape::invalid("invalid decision"))?;
    let client = &ctx.connection().client;
    let by = client.display_name.as_ref().map_or_else(|| client.id.as_str(), |name| name.0.as_str());
    let resolved = ctx.gateway.approvals.resolve(&params.id.0, decision, Some(by));
    resolved.map_err(|error| ErrorShape::invalid(error.to_string()))?;
    Ok(Done { ok: true })
}
