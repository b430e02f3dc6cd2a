//! Calls of tools that no model has asked for.

use std::sync::Arc;

use openclaw_agent::hooks::RunHooks;
use openclaw_agent::host::Host;
use openclaw_channels::Address;
use openclaw_journal::clock::Clock;
use openclaw_runtime::setup::Settings;

use crate::calling_run::CallingRun;
use crate::hooks::Hooks;
use crate::prepare::equipment::Equipment;
use crate::run_host::HostLink;
use crate::session::RunSession;

/// Parts for calls of tools that no model has asked for.
pub(crate) struct DirectCalls {
    equipment: Arc<Equipment>,
    hooks: Arc<Hooks>,
    host: Arc<HostLink>,
    clock: Clock,
}

impl DirectCalls {
    pub(crate) fn new(
        equipment: Arc<Equipment>,
        hooks: Arc<Hooks>,
        host: Arc<HostLink>,
        clock: Clock,
    ) -> Self {
        Self { equipment, hooks, host, clock }
    }

    /// Returns the tools and what they need.
    pub(crate) fn equipment(&self) -> &Equipment {
        &self.equipment
    }

    /// Returns the hooks that are asked about a call in a session.
    pub(crate) fn hooks_of(
        &self,
        settings: &Arc<Settings>,
        session: &RunSession,
        at: Option<&Address>,
    ) -> RunHooks {
        self.hooks.of_run(settings, (&session.agent, &session.key), at)
    }

    /// Returns what the tools of a call ask the gateway for.
    pub(crate) fn host_of(&self, run: CallingRun) -> Arc<dyn Host> {
        self.host.tool_host(run)
    }

    /// Returns the time, in Unix milliseconds.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}
