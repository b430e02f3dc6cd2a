//! `exec.approval.request`, `exec.approval.resolve`, `exec.approvals.get`, `exec.approvals.set` (spec `gateway-protocol.md` §6.10).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::approvals::{
    ExecApprovalDecision, ExecApprovalRequestParams, ExecApprovalResolveParams, ExecApprovalsFile,
    ExecApprovalsGetParams, ExecApprovalsSetParams,
};
use openclaw_protocol::params::system::Done;
use openclaw_tools::approvals::{ApprovalRequest, Approvals, DEFAULT_WAIT, Decision};
use openclaw_tools::exec_approvals::file::ApprovalsFile;
use openclaw_tools::exec_approvals::store::{ApprovalsError, ApprovalsStore, Loaded};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::current_settings::CurrentSettings;
use crate::request::{RequestContext, RequestFailure};

/// Parts of the gateway that `exec.approval.*` and `exec.approvals.*` use.
pub(super) struct ApprovalMethods {
    pub(super) settings: CurrentSettings,
    pub(super) approvals: Arc<Approvals>,
    pub(super) state_dir: Arc<Path>,
}

/// Waits for the decision; a client that goes takes its question back.
pub(super) async fn request(
    parts: &ApprovalMethods,
    params: ExecApprovalRequestParams,
) -> Result<ExecApprovalDecision, RequestFailure> {
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
        is_partial: false,
    };
    let asked = parts.approvals.ask(id, request, wait);
    let (question, deciding) = asked.map_err(|error| ErrorShape::invalid(error.to_string()))?;
    let decision = deciding.await;
    Ok(ExecApprovalDecision {
        id: question.id.clone(),
        decision: decision.map(|decision| decision.as_str().to_owned()),
        created_at_ms: question.created_at,
        expires_at_ms: question.expires_at,
    })
}

pub(super) async fn resolve(
    parts: &ApprovalMethods,
    ctx: RequestContext,
    params: ExecApprovalResolveParams,
) -> Result<Done, RequestFailure> {
    let decision = Decision::parse(&params.decision.0);
    let decision = decision.ok_or_else(|| ErrorShape::invalid("invalid decision"))?;
    let client = &ctx.connection().client;
    let by = client.display_name.as_ref().map_or_else(|| client.id.as_str(), |name| name.0.as_str());
    let resolved = parts.approvals.resolve(&params.id.0, decision, Some(by));
    resolved.map_err(|error| ErrorShape::invalid(error.to_string()))?;
    Ok(Done { ok: true })
}

/// The approvals file.
pub(super) async fn get(
    parts: &ApprovalMethods,
    _params: ExecApprovalsGetParams,
) -> Result<ExecApprovalsFile, RequestFailure> {
    let store = store(parts);
    let loaded = spawn_blocking(move || store.load()).await?;
    shown(&loaded.map_err(|error| refused(&error))?)
}

/// Replaces it.
pub(super) async fn set(
    parts: &ApprovalMethods,
    params: ExecApprovalsSetParams,
) -> Result<ExecApprovalsFile, RequestFailure> {
    let file = ApprovalsFile::of_value(Value::Object(params.file))
        .map_err(|error| ErrorShape::invalid(format!("invalid exec.approvals.set params: file: {error}")))?;
    let (store, seen) = (store(parts), params.base_hash.map(|hash| hash.0));
    let replaced = spawn_blocking(move || store.replace(file, seen.as_deref())).await?;
    shown(&replaced.map_err(|error| refused(&error))?)
}

fn store(parts: &ApprovalMethods) -> ApprovalsStore {
    let config = parts.settings.config();
    ApprovalsStore::new(&parts.state_dir, &config.environment().home())
}

fn shown(loaded: &Loaded) -> Result<ExecApprovalsFile, RequestFailure> {
    let mut file = loaded.file.redacted();
    // Default path of the socket at which OpenClaw's own programs listen.
    let socket = || loaded.path.with_extension("sock").display().to_string();
    file.socket.path.get_or_insert_with(socket);
    Ok(ExecApprovalsFile {
        path: loaded.path.display().to_string(),
        exists: loaded.exists,
        hash: loaded.hash.clone(),
        file: serde_json::to_value(file)?,
    })
}

fn refused(error: &ApprovalsError) -> RequestFailure {
    match error {
        ApprovalsError::HashRequired | ApprovalsError::Changed | ApprovalsError::Invalid { .. } => {
            ErrorShape::invalid(error.to_string()).into()
        }
        ApprovalsError::Io { .. } => ErrorShape::unavailable(error.to_string()).into(),
    }
}
