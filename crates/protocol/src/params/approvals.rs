//! `exec.approval.request`, `exec.approval.resolve`, `exec.approvals.get` and `set`, and the events `exec.approval.requested` and
//! `exec.approval.resolved` (spec `gateway-protocol.md` §6.10, §7.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;

use super::NonEmpty;
use super::system::Done;

super::calls! {
    /// Asks people whether a command may run, and waits for their decision.
    ExecApprovalRequest: "exec.approval.request" as Strict, ExecApprovalRequestParams => ExecApprovalDecision;
    /// Decides on a command that waits.
    ExecApprovalResolve: "exec.approval.resolve" as Strict, ExecApprovalResolveParams => Done;
    /// The approvals file.
    ExecApprovalsGet: "exec.approvals.get" as Strict, ExecApprovalsGetParams => ExecApprovalsFile;
    /// Replaces the approvals file.
    ExecApprovalsSet: "exec.approvals.set" as Strict, ExecApprovalsSetParams => ExecApprovalsFile;
}

/// What is to be run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecApprovalRequestParams {
    /// The question's id; a new one where absent.
    pub id: Option<NonEmpty>,
    /// The command line.
    pub command: NonEmpty,
    /// Where.
    pub cwd: Option<String>,
    /// `gateway` or `node`.
    pub host: Option<String>,
    /// The security mode in force.
    pub security: Option<String>,
    /// The ask mode in force.
    pub ask: Option<String>,
    /// Whose agent asks.
    pub agent_id: Option<String>,
    /// The program that would run.
    pub resolved_path: Option<String>,
    /// In which session.
    pub session_key: Option<String>,
    /// How long a decision is waited for; 120,000.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
}

/// What people decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecApprovalDecision {
    /// The question.
    pub id: String,
    /// `allow-once`, `allow-always` or `deny`; `null` where nobody decided in time.
    pub decision: Option<String>,
    /// Unix milliseconds.
    pub created_at_ms: i64,
    /// Unix milliseconds.
    pub expires_at_ms: i64,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecApprovalResolveParams {
    /// The question.
    pub id: NonEmpty,
    /// `allow-once`, `allow-always` or `deny`.
    pub decision: NonEmpty,
}

/// Nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecApprovalsGetParams {}

/// The file as it is to be.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecApprovalsSetParams {
    /// All of it.
    pub file: serde_json::Map<String, Value>,
    /// The hash of what it replaces; needed where there is a file.
    pub base_hash: Option<NonEmpty>,
}

/// The approvals file, without the token of its socket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecApprovalsFile {
    /// Where it is.
    pub path: String,
    /// Whether it is there.
    pub exists: bool,
    /// SHA-256 of its text, in hex.
    pub hash: String,
    /// What is in it.
    pub file: Value,
}

/// `exec.approval.requested`: something waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecApprovalRequested {
    /// The question.
    pub id: String,
    /// What is asked; what is not known is `null`.
    pub request: ExecApprovalSubject,
    /// Unix milliseconds.
    pub created_at_ms: i64,
    /// Unix milliseconds.
    pub expires_at_ms: i64,
}

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecApprovalSubject {
    /// The command line.
    pub command: String,
    /// Where.
    pub cwd: Option<String>,
    /// `gateway` or `node`.
    pub host: Option<String>,
    /// The security mode in force.
    pub security: Option<String>,
    /// The ask mode in force.
    pub ask: Option<String>,
    /// Whose agent asks.
    pub agent_id: Option<String>,
    /// The program that would run.
    pub resolved_path: Option<String>,
    /// In which session.
    pub session_key: Option<String>,
}

/// `exec.approval.resolved`: somebody has decided.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecApprovalResolved {
    /// The question.
    pub id: String,
    /// `allow-once`, `allow-always` or `deny`.
    pub decision: String,
    /// Who decided.
    pub resolved_by: Option<String>,
    /// Unix milliseconds.
    pub ts: i64,
}
