//! The gateway's start and stop: `gateway:startup`, `gateway_start`, `gateway_stop`.

use std::sync::Arc;
use std::time::Duration;

use openclaw_agent::hooks::payload::{GatewayStart, GatewayStop, HookContext};
use openclaw_agent::hooks::set::Action;
use openclaw_agent::hooks::{Bundled, EventKind, boot};
use openclaw_journal::api::{AgentMessage, Occasion};
use openclaw_journal::caller::CallerRights;
use openclaw_protocol::RunId;
use serde_json::{Map, json};

use crate::handle::Dispatch;
use openclaw_runs::hooks::{context, has_program, shown_config};

/// Time that handlers have to end when the gateway stops.
const LAST_WORDS: Duration = Duration::from_millis(500);

impl Dispatch {
    /// True if any hook wants to hear of the start.
    pub fn has_hooks(&self) -> bool {
        !self.hook_parts().settings.now().hooks.is_empty()
    }

    /// Tells hooks that the gateway takes messages, and lets the agent do what its `BOOT.md` says.
    pub async fn tell_started(&self, port: u16) {
        let parts = self.hook_parts();
        let Some(bus) = parts.hooks.hooks_now() else { return };
        bus.tell(&GatewayStart { port }, &HookContext { port: Some(port), ..HookContext::default() });
        let kind = EventKind::GatewayStartup;
        if !bus.set().hears(kind) {
            return;
        }
        let settings = parts.settings.now();
        let agent = settings.config.agent(&settings.config.default_agent());
        let context = context([
            ("cfg", has_program(&bus, kind).then(|| shown_config(&settings))),
            ("deps", Some(json!({}))),
            ("workspaceDir", Some(json!(agent.workspace.display().to_string()))),
        ]);
        let key = parts.rows.key_rules().main(&agent.id);
        // No chat to say anything in.
        drop(parts.conversation_hooks.fire(&bus, parts.hooks.event(kind, &key, context)).await);
        if bus.set().of_event(kind).any(|action| matches!(action, Action::BuiltIn(Bundled::BootMd))) {
            self.boot().await;
        }
    }

    /// Lets the default agent do what its `BOOT.md` says, in its main session.
    async fn boot(&self) {
        let parts = self.hook_parts();
        let settings = parts.settings.now();
        let agent = settings.config.agent(&settings.config.default_agent());
        let (workspace, config) = (agent.workspace.clone(), Arc::clone(&settings.config));
        let reading = move || boot::prompt(&workspace, &config.sandbox_writable());
        let prompt = match tokio::task::spawn_blocking(reading).await {
            Ok(Ok(Some(prompt))) => prompt,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => return tracing::warn!(%error, "BOOT.md is not run"),
            Err(error) => return tracing::warn!(%error, "BOOT.md is not run"),
        };
        let message = AgentMessage {
            run_id: RunId::new(format!("boot-{}", openclaw_sessions::ids::uuid())),
            session_key: parts.rows.key_rules().main(&agent.id),
            agent_id: agent.id,
            session_id: None,
            text: prompt,
            images: Vec::new(),
            thinking: None,
            timeout_seconds: None,
            lane: None,
            extra_system_prompt: None,
            occasion: Occasion::Heartbeat,
            deliver_to: None,
            rights: CallerRights::of_client(false, true),
            entry_patch: Map::new(),
        };
        match self.agent(message).await.outcome().await {
            Ok(_taken) => tracing::info!("BOOT.md is run"),
            Err(error) => tracing::warn!(%error, "BOOT.md is not run"),
        }
    }

    /// Tells hooks that the gateway stops.
    pub fn tell_stopping(&self, reason: &str) {
        if let Some(bus) = self.hook_parts().hooks.hooks_now() {
            bus.tell(&GatewayStop { reason }, &HookContext::default());
        }
    }

    /// Waits a moment for hooks that were told something, and ends them.
    pub async fn end_hooks(&self) {
        self.hook_parts().hooks.tasks().end(LAST_WORDS).await;
    }
}
