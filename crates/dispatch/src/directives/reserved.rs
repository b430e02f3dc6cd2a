//! Names of commands: a model's alias of such a name is no shortcut.

/// The commands of OpenClaw 2026.2.9 with their other names (spec `messages.md` §5).
const COMMANDS: &[&str] = &[
    "activation",
    "allowlist",
    "approve",
    "bash",
    "commands",
    "compact",
    "config",
    "context",
    "debug",
    "dock-discord",
    "dock-slack",
    "dock-telegram",
    "dock_discord",
    "dock_slack",
    "dock_telegram",
    "elev",
    "elevated",
    "exec",
    "help",
    "id",
    "model",
    "models",
    "new",
    "queue",
    "reason",
    "reasoning",
    "reset",
    "restart",
    "send",
    "skill",
    "status",
    "stop",
    "subagents",
    "t",
    "think",
    "thinking",
    "tts",
    "usage",
    "v",
    "verbose",
    "whoami",
];

/// Whether `/<alias>` means something else already.
pub(super) fn is_reserved(alias: &str, triggers: &[&str]) -> bool {
    let alias = alias.trim().to_lowercase();
    let is_trigger = |trigger: &&str| trigger.trim().trim_start_matches('/').to_lowercase() == alias;
    COMMANDS.contains(&alias.as_str()) || triggers.iter().any(is_trigger)
}
