//! The grammar of `openclaw approvals`.

use clap::{Args, Subcommand};

use super::AskArgs;

/// `openclaw approvals`.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    pub(crate) command: ApprovalsCommand,
}

/// Its commands.
#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// Show the approvals file
    Get {
        #[command(flatten)]
        at: ApprovalsAtArgs,
    },
    /// Replace the approvals file
    Set {
        /// The new file
        #[arg(long, value_name = "path", conflicts_with = "stdin")]
        file: Option<String>,
        /// Read the new file from standard input
        #[arg(long)]
        stdin: bool,
        #[command(flatten)]
        at: ApprovalsAtArgs,
    },
    /// Programs that may run unasked
    Allowlist {
        #[command(subcommand)]
        command: AllowlistCommand,
    },
}

/// `openclaw approvals allowlist`.
#[derive(Debug, Subcommand)]
pub(crate) enum AllowlistCommand {
    /// Allow a program, or several by a pattern such as "~/bin/*"
    Add(AllowlistArgs),
    /// Take a pattern off the list
    Remove(AllowlistArgs),
}

/// One entry of an allowlist.
#[derive(Debug, Args)]
pub(crate) struct AllowlistArgs {
    /// Path of a program; *, ** and ? are wildcards
    pub(crate) pattern: String,
    /// Whose list; * is every agent
    #[arg(long, value_name = "id", default_value = "*")]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) at: ApprovalsAtArgs,
}

/// Whose approvals file.
#[derive(Debug, Args)]
pub(crate) struct ApprovalsAtArgs {
    /// The file of the running gateway instead of this host's
    #[arg(long)]
    pub(crate) gateway: bool,
    /// The file of a node (there are no nodes yet)
    #[arg(long, value_name = "node")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) ask: AskArgs,
}
