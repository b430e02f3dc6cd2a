//! `openclaw hooks`.

use clap::{Args, Subcommand};

/// `openclaw hooks`.
#[derive(Debug, Args)]
pub(crate) struct HooksArgs {
    #[command(subcommand)]
    pub(crate) command: Option<HooksCommand>,
}

/// What to do with hooks.
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// List the hooks there are
    List {
        /// Only those that can be used
        #[arg(long)]
        eligible: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Show what is missing, too
        #[arg(short, long)]
        verbose: bool,
    },
    /// Show one hook
    Info {
        /// Name of the hook
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell which hooks can be used, and what the others need
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Switch a hook on
    Enable {
        /// Name of the hook
        name: String,
    },
    /// Switch a hook off
    Disable {
        /// Name of the hook
        name: String,
    },
}
