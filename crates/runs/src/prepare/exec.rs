//! Settings of the commands that tools and people run.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_commands::CommandContext;
use openclaw_config::ResolvedAgent;
use openclaw_config::settings::Exec;
use openclaw_protocol::SessionKey;
use openclaw_runtime::setup::Settings;
use openclaw_tools::approvals::Approvals;
use openclaw_tools::exec_approvals::store::ApprovalsStore;
use openclaw_tools::{CommandLock, CommandSessions, ExecSettings};

use crate::not_begun::NotBegun;
use crate::secrets::{KnownSecrets, Shield};

/// Parts for commands that tools and people run.
pub(crate) struct CommandSetup {
    /// Variables that commands have besides the configured ones.
    variables: Vec<(String, String)>,
    /// Held by commands, so that the next gateway can wait for them to be gone.
    lock: Option<CommandLock>,
    /// The commands that run.
    sessions: Arc<CommandSessions>,
    /// Commands that wait for a person's word.
    approvals: Arc<Approvals>,
    secrets: Arc<KnownSecrets>,
    state_dir: PathBuf,
}

impl CommandSetup {
    pub(crate) fn new(
        variables: Vec<(String, String)>,
        lock: Option<CommandLock>,
        sessions: Arc<CommandSessions>,
        approvals: Arc<Approvals>,
        secrets: Arc<KnownSecrets>,
        state_dir: PathBuf,
    ) -> Self {
        Self { variables, lock, sessions, approvals, secrets, state_dir }
    }

    /// Returns the settings by which commands of an agent run, whoever gives them.
    pub(super) fn settings_for(
        &self,
        settings: &Settings,
        agent: &ResolvedAgent,
        key: &SessionKey,
        wished: &Exec,
        shield: &Shield,
    ) -> ExecSettings {
        let mut environment = settings.config.environment().clone();
        for (name, value) in &self.variables {
            environment.set(name, value);
        }
        let mut exec = ExecSettings::new(wished, environment);
        let home = settings.config.environment().home();
        exec.approvals = Some(ApprovalsStore::new(&self.state_dir, &home));
        exec.people = Arc::clone(&self.approvals);
        exec.agent = agent.id.to_string();
        exec.withheld = Arc::clone(&shield.withheld);
        exec.lock = self.lock.clone();
        exec.sessions = Arc::clone(&self.sessions);
        exec.scope = format!("session:{}", key.as_str());
        exec.owner = Some(key.clone());
        exec
    }

    /// Returns the settings for a command that a person gives in a chat.
    pub(crate) fn of_person(&self, context: &CommandContext<'_>) -> Result<ExecSettings, NotBegun> {
        let CommandContext { settings, agent, key, .. } = context;
        let shield = self.secrets.known(settings)?;
        let mut exec = self.settings_for(settings, agent, key, &agent.exec, &shield);
        exec.may_background = true;
        Ok(exec)
    }
}
