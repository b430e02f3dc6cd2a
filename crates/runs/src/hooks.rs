//! Places where hooks are told and asked, and the work of the bundled ones (spec `agent-runtime.md`
//! §8). Hooks themselves are in [`openclaw_agent::hooks`].
//!
//! Without hooks each of these places costs one look at a pointer. [`events`] tells the handlers of
//! an event, [`bootstrap`] has the workspace files changed, [`memory`] keeps the end of a
//! conversation, [`run`] tells of runs and messages, [`delivery`] of messages to chat platforms.
//! [`conversation_hooks`](crate::conversation_hooks) tells of sessions that begin, end and are
//! stopped.

pub mod bootstrap;
mod delivery;
mod events;
mod memory;
pub mod run;

use std::sync::Arc;

use openclaw_agent::hooks::set::Action;
use openclaw_agent::hooks::{Event, EventKind, HookBus, HookTasks, RunHooks};
use openclaw_channels::Address;
use openclaw_config::{ResolvedAgent, redact};
use openclaw_journal::clock::Clock;
use openclaw_protocol::SessionKey;
use openclaw_runtime::setup::{LiveSettings, Settings};
use openclaw_tools::{CommandLock, ExecSettings, Handlers};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::secrets::{KnownSecrets, Shield};
pub use delivery::tell_sent;
pub use events::HookEvents;
pub(crate) use memory::MemoryHook;

/// The hooks in use, and their tasks.
pub struct Hooks {
    settings: LiveSettings,
    secrets: Arc<KnownSecrets>,
    /// Variables that programs have besides the configured ones.
    variables: Vec<(String, String)>,
    /// Held by programs, so that the next gateway can wait for them to be gone.
    lock: Option<CommandLock>,
    clock: Clock,
    tasks: Arc<HookTasks>,
    /// Made for these settings.
    made: Mutex<Option<MadeHooks>>,
}

/// Hooks that were made for settings and secrets.
struct MadeHooks {
    settings: Arc<Settings>,
    shield: Arc<Shield>,
    bus: HookBus,
}

impl Hooks {
    pub(crate) fn new(
        settings: LiveSettings,
        secrets: Arc<KnownSecrets>,
        variables: Vec<(String, String)>,
        lock: Option<CommandLock>,
        clock: Clock,
    ) -> Self {
        Self { settings, secrets, variables, lock, clock, tasks: Arc::default(), made: Mutex::default() }
    }

    /// Returns the settings in force.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.now()
    }

    /// Tasks of hooks that run beside the work.
    pub fn tasks(&self) -> &Arc<HookTasks> {
        &self.tasks
    }

    /// Returns the hooks in use; `None` if there are none.
    pub fn hooks(&self, settings: &Arc<Settings>) -> Option<HookBus> {
        if settings.hooks.is_empty() {
            return None;
        }
        let shield = match self.secrets.known(settings) {
            Ok(shield) => shield,
            Err(error) => {
                tracing::error!(error = %error.message, "hooks are not run: what they must not inherit is not known");
                return None;
            }
        };
        let mut made = self.made.lock();
        if let Some(made) = made.as_ref()
            && Arc::ptr_eq(&made.settings, settings)
            && Arc::ptr_eq(&made.shield, &shield)
        {
            return Some(made.bus.clone());
        }
        let mut environment = settings.config.environment().clone();
        for (name, value) in &self.variables {
            environment.set(name, value);
        }
        let mut exec = ExecSettings::new(&settings.config.tools.exec, environment);
        exec.withheld = Arc::clone(&shield.withheld);
        exec.lock.clone_from(&self.lock);
        let handlers = Arc::new(Handlers::new(exec));
        let bus = HookBus::new(Arc::clone(&settings.hooks), handlers, Arc::clone(&self.tasks));
        *made = Some(MadeHooks { settings: Arc::clone(settings), shield, bus: bus.clone() });
        Some(bus)
    }

    /// The hooks in use under the settings in force.
    pub fn hooks_now(&self) -> Option<HookBus> {
        self.hooks(&self.settings.now())
    }

    /// Returns the hooks of a session's run.
    pub(crate) fn of_run(
        &self,
        settings: &Arc<Settings>,
        (agent, key): (&ResolvedAgent, &SessionKey),
        at: Option<&Address>,
    ) -> RunHooks {
        match self.hooks(settings) {
            Some(bus) => RunHooks::new(bus, run::context_of(agent, key, at)),
            None => RunHooks::none(),
        }
    }

    /// Makes an event of a session that happens now.
    pub fn event(&self, kind: EventKind, key: &SessionKey, context: Map<String, Value>) -> Event {
        let timestamp = self.clock.now_ms();
        Event { kind, session_key: key.to_string(), context, timestamp, messages: Vec::new() }
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
