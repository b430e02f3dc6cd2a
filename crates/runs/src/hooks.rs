//! Places where hooks are told and asked, and the work of the bundled ones (spec `agent-runtime.md`
//! §8). Hooks themselves are in [`openclaw_agent::hooks`].
//!
//! Without hooks each of these places costs one look at a pointer. [`conversation`] tells of
//! sessions that begin, end and are stopped, [`bootstrap`] has the workspace files changed,
//! [`memory`] keeps the end of a conversation, [`run`] of runs
//! and messages, [`delivery`] of messages to chat platforms.

pub mod bootstrap;
pub mod conversation;
mod delivery;
mod memory;
pub mod run;

use std::io::Write as _;
use std::sync::Arc;

use openclaw_agent::hooks::set::Action;
use openclaw_agent::hooks::{Bundled, Event, EventKind, HookBus, command_log};
use openclaw_config::{private_file, redact};
use openclaw_runtime::setup::Settings;
use openclaw_tools::{ExecSettings, Handlers};
use serde_json::{Map, Value};

use crate::hook_state::MadeHooks;
use crate::runner::Runner;
pub use conversation::EndedConversation;
pub use conversation::{GivenBy, HookChat, Restart};

impl Runner {
    /// Returns the hooks in use; `None` if there are none.
    pub fn hooks(&self, settings: &Arc<Settings>) -> Option<HookBus> {
        if settings.hooks.is_empty() {
            return None;
        }
        let shield = match self.secrets.shield(settings, Vec::new(), self.secrets.of_devices()) {
            Ok(shield) => shield,
            Err(error) => {
                tracing::error!(error = %error.message, "hooks are not run: what they must not inherit is not known");
                return None;
            }
        };
        let mut made = self.hooks.made.lock();
        if let Some(made) = made.as_ref()
            && Arc::ptr_eq(&made.settings, settings)
            && Arc::ptr_eq(&made.shield, &shield)
        {
            return Some(made.bus.clone());
        }
        let mut environment = settings.config.environment().clone();
        for (name, value) in &self.deps.command_variables {
            environment.set(name, value);
        }
        let mut exec = ExecSettings::new(&settings.config.tools.exec, environment);
        exec.withheld = Arc::clone(&shield.withheld);
        exec.lock.clone_from(&self.deps.command_lock);
        let handlers = Arc::new(Handlers::new(exec));
        let bus = HookBus::new(Arc::clone(&settings.hooks), handlers, Arc::clone(&self.hooks.tasks));
        *made = Some(MadeHooks { settings: Arc::clone(settings), shield, bus: bus.clone() });
        Some(bus)
    }

    /// The hooks in use under the settings in force.
    pub fn hooks_now(&self) -> Option<HookBus> {
        self.hooks(&self.settings())
    }

    /// Tells the handlers of an event. The work of the bundled ones goes on beside the caller; the
    /// programs are told one after the other by the returned future, which gives the texts that
    /// they want said in the chat that the event comes from.
    pub fn fire(&self, bus: &HookBus, event: Event) -> impl Future<Output = Vec<String>> + Send + use<> {
        for action in bus.set().of_event(event.kind) {
            match action {
                Action::BuiltIn(Bundled::CommandLogger) => self.log_command(bus, &event),
                Action::BuiltIn(Bundled::SessionMemory) => self.keep_memory(bus, &event),
                // Only at `gateway:startup` and `agent:bootstrap`, which have a way of their own.
                Action::BuiltIn(Bundled::BootMd | Bundled::SoulEvil) | Action::Program(_) => {}
            }
        }
        bus.tell_programs(event)
    }

    fn log_command(&self, bus: &HookBus, event: &Event) {
        let line = command_log::line(event);
        let path = self.deps.state_dir.join("logs").join(command_log::FILE);
        bus.tasks().spawn(async move {
            let written = tokio::task::spawn_blocking(move || {
                if let Some(dir) = path.parent() {
                    private_file::make_dir(dir)?;
                }
                private_file::append(&path)?.write_all(line.as_bytes())
            });
            let written = written.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
            if let Err(error) = written {
                tracing::warn!(%error, "a command is not in logs/commands.log");
            }
        });
    }
}

/// True if a program is told of the event: data that only programs read need not be gathered for
/// others.
pub fn has_program(bus: &HookBus, kind: EventKind) -> bool {
    bus.set().of_event(kind).any(|action| matches!(action, Action::Program(_)))
}

/// Returns the configuration as programs may see it.
pub fn shown_config(settings: &Settings) -> Value {
    let mut config = settings.config.document().clone();
    redact::redact(&mut config);
    config
}

/// A context of pairs; missing values are left out.
pub fn context(pairs: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Map<String, Value> {
    pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
