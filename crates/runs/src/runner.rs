//! Parts that runs are made of, and the reads that all of them share.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use openclaw_agent::bootstrap::WorkspaceFiles;
use openclaw_agent::prompt::{RepoRoots, SystemPromptReport};
use openclaw_agent::user_time::user_zone;
use openclaw_delivery::ack_reaction::Acks;
use openclaw_journal::inbox::{InboxRow, Queued};
use openclaw_journal::journal::JournalError;
use openclaw_protocol::RunId;
use openclaw_protocol::message::UserMessage;
use openclaw_runtime::child_runs::ChildRuns;
use openclaw_runtime::session_model::SessionModels;
use openclaw_runtime::setup::{Deps, Settings};
use openclaw_runtime::shared::SharedState;
use openclaw_sessions::entry::Json;
use openclaw_sessions::store::{Edit, Refused};
use openclaw_sessions::{KeyRules, SessionEntry, SessionKey, StoreError};
use openclaw_tools::WebShared;

use crate::attempt::Suspects;
use crate::hook_state::Hooks;
use crate::kept::KeptTranscripts;
use crate::reports::Reports;
use crate::result::Figures;
use crate::run_host::RunHost;
use crate::secrets::KnownSecrets;
use crate::told_errors::ToldErrors;
use crate::wording::{self, Circumstances};

/// Parts that runs are made of.
pub struct Runner {
    /// Stores, models and platforms that the gateway hands in.
    pub deps: Deps,
    /// Gateway around the runs, once there is one.
    host: OnceLock<Weak<dyn RunHost>>,
    /// Models of sessions.
    pub models: SessionModels,
    /// Sub-agents that its sessions have started.
    pub child_runs: Arc<ChildRuns>,
    /// Secrets that tools may not say.
    pub secrets: KnownSecrets,
    /// Hooks in use and their tasks.
    pub hooks: Hooks,
    /// Reactions that say that a message was taken.
    pub acks: Arc<Acks>,
    /// Errors that chats were told of.
    pub(crate) told_errors: ToldErrors,
    pub(crate) kept: KeptTranscripts,
    pub(crate) reports: Reports,
    pub(crate) repo_roots: RepoRoots,
    pub(crate) workspace_files: WorkspaceFiles,
    /// State that the web tools of all runs share.
    pub(crate) web: WebShared,
    /// Messages that may end the process.
    pub suspects: Suspects,
    /// State that everything that works on messages shares.
    pub shared: Arc<SharedState>,
}

impl Runner {
    /// Makes the parts from what the gateway hands in.
    pub fn new(mut deps: Deps, shared: Arc<SharedState>) -> Self {
        let (store, events) = (Arc::clone(&deps.store), Arc::clone(&deps.system_events));
        let config = Arc::clone(&deps.settings.borrow().config);
        Self {
            host: OnceLock::new(),
            models: SessionModels::new(deps.models.clone(), store, events, shared.clock.clone()),
            child_runs: Arc::new(ChildRuns::new(&deps.state_dir)),
            secrets: KnownSecrets::new(std::mem::take(&mut deps.secrets), &deps.state_dir, &config),
            hooks: Hooks::default(),
            acks: Arc::default(),
            kept: KeptTranscripts::default(),
            reports: Reports::default(),
            repo_roots: RepoRoots::default(),
            web: WebShared::default(),
            workspace_files: WorkspaceFiles::default(),
            suspects: Suspects::default(),
            told_errors: ToldErrors::default(),
            deps,
            shared,
        }
    }

    /// Sets the gateway around the runs. Only the first one counts.
    pub fn set_host(&self, host: Weak<dyn RunHost>) {
        let _ = self.host.set(host);
    }

    /// Returns the gateway around the runs; `None` before there is one and after it has ended.
    pub(crate) fn host(&self) -> Option<Arc<dyn RunHost>> {
        self.host.get()?.upgrade()
    }

    /// Writes the parts of a system prompt as a report for the session's row, once the model is
    /// asked.
    pub(crate) async fn keep_report(
        &self,
        key: &SessionKey,
        report: Option<SystemPromptReport>,
    ) -> Option<Json> {
        tokio::task::yield_now().await;
        let kept = self.reports.keep(key, report?);
        kept.inspect_err(|error| tracing::warn!(session = %key, %error, "the row does not say what the prompt was made of")).ok()
    }

    /// Models that sessions have chosen, among all models.
    pub fn models(&self) -> &SessionModels {
        &self.models
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.deps.settings.borrow())
    }

    /// Rules by which session keys are read.
    pub fn key_rules(&self) -> &KeyRules {
        self.deps.store.rules()
    }

    /// A message with the request it waited without, decided about.
    pub async fn load(&self, waiting: &InboxRow<Queued>) -> Result<InboxRow, JournalError> {
        let row = self.load_alone(waiting).await?;
        match &waiting.gathering {
            Some(gathering) => self.gathered(row, gathering).await,
            None => Ok(row),
        }
    }

    /// Loads a message as if nothing was run together with it.
    pub(crate) async fn load_alone(&self, waiting: &InboxRow<Queued>) -> Result<InboxRow, JournalError> {
        let request = match waiting.payload.kept() {
            Some(request) => request.clone(),
            None => self.shared.journal.payload(&waiting.run_id).await?,
        };
        let request = self.decided(&waiting.session_key, request).await;
        Ok(waiting.without_payload().with(request))
    }

    /// Returns the message that was found at start, and all that were accepted since, by the ids of
    /// their entries. `None` for a new message, and if they can't be read.
    pub(crate) async fn entries_since<P>(&self, row: &InboxRow<P>) -> Option<HashMap<String, RunId>> {
        let accepted_at = row.recovered.then_some(row.accepted_at)?;
        let read = self.shared.journal.entries_since(accepted_at).await;
        read.inspect_err(|error| tracing::warn!(%error, "inbox could not be read")).ok()
    }

    /// A message as a run under way sees it.
    pub fn steered_message(&self, row: &InboxRow) -> UserMessage {
        let zone = user_zone(self.settings().config.agents.defaults.user_timezone.as_deref());
        wording::message(row, &Circumstances::plain(zone))
    }

    pub(crate) async fn entry(
        &self,
        session_key: &SessionKey,
    ) -> Result<Option<Arc<SessionEntry>>, StoreError> {
        Ok(self.deps.store.get(session_key).await?.map(|row| row.entry))
    }

    /// Returns the session's row for uses that have a default; `None` also if the store can't be
    /// read, which shows when the run begins.
    pub async fn entry_or_none(&self, session_key: &SessionKey) -> Option<Arc<SessionEntry>> {
        self.entry(session_key).await.ok().flatten()
    }

    pub(crate) async fn store_figures(&self, key: &SessionKey, figures: Figures) -> Result<(), StoreError> {
        let change = Box::new(move |edit: Edit<'_>| {
            if edit.is_new || edit.entry.session_id.as_ref() != Some(&figures.session_id) {
                return Err(Refused("the session was deleted or reset while its run ended".to_owned()));
            }
            figures.apply(edit.entry, edit.now);
            Ok(())
        });
        match self.deps.store.record(key, change).await {
            Ok(_) => Ok(()),
            Err(StoreError::Refused(reason)) => {
                tracing::debug!(session = %key, %reason, "figures of a run have no row to go to");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
