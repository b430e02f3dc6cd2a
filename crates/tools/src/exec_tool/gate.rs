//! Gate that decides if a command may run on this host: by rules alone, or after a person was asked
//! (spec `tools.md` §3.3).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use openclaw_agent::ToolError;
use openclaw_config::clock::now_ms;
use openclaw_config::settings::ExecHost;

use crate::approvals::ApprovalRequest;
use crate::blocking::blocking;
use crate::exec::approvals::allowlist::{Evaluation, Rules, Surroundings, evaluate};
use crate::exec::approvals::executable::OnDisk;
use crate::exec::approvals::file::ApprovalsFile;
use crate::exec::approvals::resolve::{
    ApprovalProgress, Decision, EffectivePolicy, ToolValues, decide, resolve,
};
use crate::exec::approvals::shown::CommandFiles;
use crate::exec::approvals::store::{ApprovalsError, ApprovalsStore, mint};
use crate::exec::settings::SkillBins;

/// A command and all that is looked at to judge it. It has to be what the command then runs with.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) host: ExecHost,
    pub(super) command: String,
    pub(super) agent: String,
    pub(super) session_key: Option<String>,
    /// Combined values of settings, session and call.
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
    /// Directories that tools write to.
    pub(super) writable: Vec<PathBuf>,
    /// Files that people were shown with the question; unset before they are asked.
    pub(super) shown: OnceLock<CommandFiles>,
}

/// Results of the checks, and the decision.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) decision: Decision,
    /// Reason why the rule that a person gave for the future is not kept.
    pub(super) not_kept: Option<String>,
    found: Evaluation,
    rules: EffectivePolicy,
}

impl Case {
    /// Judges, and notes which entries of the allowlist were used.
    pub(super) async fn judge(self: &Arc<Self>, asked: ApprovalProgress) -> Result<Judged, ToolError> {
        let case = Arc::clone(self);
        blocking(move || case.decide(asked).map_err(|error| ToolError::Failed(error.to_string()))).await
    }

    fn decide(&self, asked: ApprovalProgress) -> Result<Judged, ApprovalsError> {
        let file = match &self.store {
            Some(store) => store.load()?.file,
            None => ApprovalsFile::default(),
        };
        let rules = resolve(&file, &self.agent, self.values);
        let none = BTreeSet::new();
        let skills = rules.auto_allow_skills.then(|| self.skill_bins.find());
        let allowed = Rules {
            allowlist: &rules.allowlist,
            safe_bins: &self.safe_bins,
            skill_bins: skills.as_ref().unwrap_or(&none),
        };
        let surroundings = self.surroundings();
        let found = evaluate(&self.command, allowed, surroundings);
        let decision = match decide(self.host, &rules, &found, asked) {
            Decision::Ask => {
                // A question is asked once.
                let _ = self.shown.set(CommandFiles::of(&self.command, &found, surroundings));
                Decision::Ask
            }
            Decision::Run | Decision::RunAndRemember if self.has_changed(&found) => {
                Decision::Deny("changed-since-asked".to_owned())
            }
            decision => decision,
        };
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

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            shell: &self.shell,
            path: &self.path,
            cwd: &self.cwd,
            home: &self.home,
            sets_variables: !self.variables.is_empty(),
            writable: &self.writable,
            is_root: nix::unistd::geteuid().is_root(),
            files: &OnDisk,
        }
    }

    /// Returns true if something else would run than what people were asked about.
    fn has_changed(&self, found: &Evaluation) -> bool {
        let now = || CommandFiles::of(&self.command, found, self.surroundings());
        self.shown.get().is_some_and(|shown| !shown.holds(&now()))
    }

    /// The command runs all the same where the file can't be written. Rules of the instance at home get no note: it would begin
    /// a file of this one, and what is changed there later would not hold here.
    fn note_use(&self, found: &Evaluation) {
        let Some(store) = self.store.as_ref().filter(|store| !store.is_shared()) else { return };
        if found.used_entries().is_empty() {
            return;
        }
        let noted = store.update(|file| {
            for (pattern, path) in found.used_entries() {
                file.record_use(&self.agent, pattern, &self.command, path, now_ms());
            }
        });
        if let Err(error) = noted {
            tracing::warn!(%error, "the use of the allowlist is not noted");
        }
    }

    /// Puts the programs of the command on the allowlist. If that fails the command runs, this
    /// once.
    fn keep(&self, found: &Evaluation) -> Result<(), ApprovalsError> {
        let Some(store) = &self.store else { return Ok(()) };
        let kept = store.update(|file| {
            for remembered in found.to_allow_always() {
                file.remember(&self.agent, remembered, &mut mint);
            }
        });
        kept.map(drop).inspect_err(|error| {
            tracing::error!(%error, "allow-always was answered, and the rule is not kept");
        })
    }

    /// Returns the question for people.
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
            is_partial: self.shown.get().is_some_and(CommandFiles::is_partial),
        }
    }
}
