//! The grammar of `openclaw system`.

use clap::{Args, Subcommand};

use super::TargetArgs;

/// `openclaw system`.
#[derive(Debug, Args)]
pub(crate) struct SystemArgs {
    #[command(subcommand)]
    pub(crate) command: SystemCommand,
}

/// Its commands.
#[derive(Debug, Subcommand)]
pub(crate) enum SystemCommand {
    /// Tell the default agent something with a heartbeat
    Event {
        /// What it is told
        #[arg(long, value_name = "text")]
        text: Option<String>,
        /// When: now, or next-heartbeat
        #[arg(long, value_name = "mode", default_value = "next-heartbeat")]
        mode: String,
        #[command(flatten)]
        ask: AskArgs,
    },
    /// Periodic turns of the agents
    Heartbeat {
        #[command(subcommand)]
        command: HeartbeatCommand,
    },
    /// Who is here
    Presence {
        #[command(flatten)]
        ask: AskArgs,
    },
}

/// `openclaw system heartbeat`.
#[derive(Debug, Subcommand)]
pub(crate) enum HeartbeatCommand {
    /// What came of the last one
    Last {
        #[command(flatten)]
        ask: AskArgs,
    },
    /// Have them made again
    Enable {
        #[command(flatten)]
        ask: AskArgs,
    },
    /// Have none made until the gateway restarts
    Disable {
        #[command(flatten)]
        ask: AskArgs,
    },
}

/// What every command of the gateway takes.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Accepted for compatibility
    #[arg(long, hide = true)]
    pub(crate) expect_final: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}
