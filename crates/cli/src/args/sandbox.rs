//! `openclaw sandbox`.

use clap::{Args, Subcommand};

/// `openclaw sandbox`.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

/// Its commands.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// What holds for a session: whether it is in a sandbox, and which tools it has there
    Explain {
        /// Agent id
        #[arg(long, value_name = "id")]
        agent: Option<String>,
        /// Session key
        #[arg(long, value_name = "key")]
        session: Option<String>,
        /// Output JSON
        #[arg(long)]
        json: bool,
    },
    /// The sandboxes there are
    List {
        /// Those of browsers only
        #[arg(long)]
        browser: bool,
        /// Output JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove sandboxes; the next run makes them anew. Their files stay
    Recreate {
        /// All
        #[arg(long)]
        all: bool,
        /// Those of one agent
        #[arg(long, value_name = "id")]
        agent: Option<String>,
        /// That of one session
        #[arg(long, value_name = "key")]
        session: Option<String>,
        /// Those of browsers only
        #[arg(long)]
        browser: bool,
        /// Do not ask
        #[arg(long)]
        force: bool,
    },
}
