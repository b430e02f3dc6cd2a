//! Whether a command may run on this host: by rules alone, or after a person was asked (spec `tools.md` §3.3).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_agent::ToolError;
use openclaw_config::clock::now_ms;
use openclaw_config::settings::ExecHost;

use super::approvals::allowlist::{Evaluation, Rules, Surroundings, evaluate};
use super::approvals::executable::OnDisk;
use super::approvals::file::ApprovalsFile;
use super::approvals::resolve::{Asked, Decision, Effective, ToolValues, decide, resolve};
use super::approvals::store::{ApprovalsError, ApprovalsStore, mint};
use super::settings::SkillBins;
use crate::approvals::ApprovalRequest;
use crate::row::blocking;

/// A command and all that is looked at to judge it. It has to be what the command then runs with.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) host: ExecHost,
    pub(super) command: String,
    pub(super) agent: String,
    pub(super) session_key: Option<String>,
    /// What settings, session and call say.
    pub(super) values: ToolValues,
    pub(super) shell: PathBuf,
    /// `PATH` of the command.
    pub(super) path: String,
    pub(super) cwd: PathBuf,
    pub(super) home: PathBuf,
    /// Variables that the call sets, as people are shown them: `A=1 B='x y' `.
    pub(super) variables: String,
    pub(super) safe_bins: Arc<[String]>,
    pub(super) skill_bins: SkillBins,
    /// Absent outside of a gateway: no file, no exceptions.
    pub(super) store: Option<ApprovalsStore>,
}

/// What was found and decided.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) decision: Decision,
    /// Why the rule that a person gave for the future is not kept.
    pub(super) not_kept: Option<String>,
    found: Evaluation,
    rules: Effective,
}

impl Case {
    /// Judges, and notes which entries of the allowlist were used.
    pub(super) async fn judge(self: &Arc<Self>, asked: Asked) -> Result<Judged, ToolError> {
        let case = Arc::clone(self);
        blocking(move || case.decide(asked).map_err(|error| ToolError::Failed(error.to_string()))).await
    }

    fn decide(&self, asked: Asked) -> Result<Judged, ApprovalsError> {
        let file = match &self.store {
            Some(store) => store.load()?.file,
            None => ApprovalsFile::default(),
        };
        let rules = resolve(&file, &self.agent, self.values);
        let none = BTreeSet::new();
        let skills = rules.auto_allow_skills.then(|| self.skill_bins.find());
        let found = evaluate(
            &self.command,
            Rules {
                allowlist: &rules.allowlist,
                safe_bins: &self.safe_bins,
                skill_bins: skills.as_ref().unwrap_or(&none),
            },
            Surroundings {
                shell: &self.shell,
                path: &self.path,
                cwd: &self.cwd,
                home: &self.home,
                sets_variables: !self.variables.is_empty(),
                files: &OnDisk,
            },
        );
        let decision = decide(self.host, &rules, &found, asked);
        let not_kept = match decision {
            Decision::Run => {
                self.note_use(&found);
                None
            }
            Decision::RunAndRemember => self.keep(&found).err().map(|error| error.to_string()),
            Decision::Ask | Decision::Deny(_) => None,
        };
        Ok(Judged { decision, not_kept, found, rules })
    }

    /// The command runs all the same where the file can't be written.
    fn note_use(&self, found: &Evaluation) {
        let Some(store) = self.store.as_ref().filter(|_| !found.used_entries().is_empty()) else { return };
        let noted = store.update(|file| {
            for (pattern, path) in found.used_entries() {
                file.record_use(&self.agent, pattern, &self.command, path, now_ms());
            }
        });
        if let Err(error) = noted {
            tracing::warn!(%error, "the use of the allowlist is not noted");
        }
    }

    /// Puts the programs of the command on the allowlist. Where that fails the command runs, this once.
    fn keep(&self, found: &Evaluation) -> Result<(), ApprovalsError> {
        let Some(store) = &self.store else { return Ok(()) };
        let kept = store.update(|file| {
            for pattern in found.to_allow_always() {
                file.allow(&self.agent, pattern, &mut mint);
            }
        });
        kept.map(drop).inspect_err(|error| {
            tracing::error!(%error, "allow-always was answered, and the rule is not kept");
        })
    }

    /// What people are asked.
    pub(super) fn question(&self, judged: &Judged) -> ApprovalRequest {
        let shown = |path: &Path| path.display().to_string();
        ApprovalRequest {
            command: format!("{}{}", self.variables, self.command),
            cwd: Some(shown(&self.cwd)),
            host: Some(self.host.as_str().to_owned()),
            security: Some(judged.rules.security.as_str().to_owned()),
            ask: Some(judged.rules.ask.as_str().to_owned()),
            agent_id: Some(self.agent.clone()).filter(|agent| !agent.is_empty()),
            resolved_path: judged.found.first_resolved().map(shown),
            session_key: self.session_key.clone(),
        }
    }
}
