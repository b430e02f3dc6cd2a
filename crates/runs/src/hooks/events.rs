//! Events of the gateway and of conversations: programs are told, and what comes with the gateway is done.

use std::io::Write as _;
use std::path::PathBuf;

use openclaw_agent::hooks::set::Action;
use openclaw_agent::hooks::{Bundled, Event, HookBus, command_log};
use openclaw_config::private_file;

use super::MemoryHook;

/// Work of hooks at events.
pub struct HookEvents {
    memory: MemoryHook,
    state_dir: PathBuf,
}

impl HookEvents {
    pub(crate) fn new(memory: MemoryHook, state_dir: PathBuf) -> Self {
        Self { memory, state_dir }
    }

    /// Tells the handlers of an event. The work of the bundled ones goes on beside the caller; the
    /// programs are told one after the other by the returned future, which gives the texts that
    /// they want said in the chat that the event comes from.
    pub fn fire(&self, bus: &HookBus, event: Event) -> impl Future<Output = Vec<String>> + Send + use<> {
        for action in bus.set().of_event(event.kind) {
            match action {
                Action::BuiltIn(Bundled::CommandLogger) => self.log_command(bus, &event),
                Action::BuiltIn(Bundled::SessionMemory) => self.memory.keep(bus, &event),
                // Only at `gateway:startup` and `agent:bootstrap`, which have a way of their own.
                Action::BuiltIn(Bundled::BootMd | Bundled::SoulEvil) | Action::Program(_) => {}
            }
        }
        bus.tell_programs(event)
    }

    fn log_command(&self, bus: &HookBus, event: &Event) {
        let line = command_log::line(event);
        let path = self.state_dir.join("logs").join(command_log::FILE);
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
