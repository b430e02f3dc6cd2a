//! The hooks that come with the gateway.

/// Hooks that are built into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bundled {
    /// Runs `BOOT.md` once the gateway has started.
    BootMd,
    /// Notes commands in a log of their own.
    CommandLogger,
    /// Keeps the end of a conversation that starts anew.
    SessionMemory,
    /// Swaps the agent's soul now and then.
    SoulEvil,
}

/// Bundled hooks with name and `HOOK.md`, in the order in which they are listed.
pub(super) const ALL: [(Bundled, &str, &str); 4] = [
    (Bundled::BootMd, "boot-md", include_str!("texts/boot-md.md")),
    (Bundled::CommandLogger, "command-logger", include_str!("texts/command-logger.md")),
    (Bundled::SessionMemory, "session-memory", include_str!("texts/session-memory.md")),
    (Bundled::SoulEvil, "soul-evil", include_str!("texts/soul-evil.md")),
];

impl Bundled {
    /// Returns the name of the hook, which is also its key below `hooks.internal.entries`.
    pub fn name(self) -> &'static str {
        ALL.iter().find(|(hook, ..)| *hook == self).map_or("", |(_, name, _)| name)
    }
}
