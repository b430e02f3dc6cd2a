//! `openclaw security`.

use clap::{Args, Subcommand};

/// `openclaw security`.
#[derive(Debug, Args)]
pub(crate) struct SecurityArgs {
    #[command(subcommand)]
    pub(crate) command: SecurityCommand,
}

/// Subcommands of `openclaw security`.
#[derive(Debug, Subcommand)]
pub(crate) enum SecurityCommand {
    /// Look for what lets strangers in
    Audit(SecurityAuditArgs),
}

/// `openclaw security audit`.
#[derive(Debug, Args)]
pub(crate) struct SecurityAuditArgs {
    /// Ask the gateway too
    #[arg(long)]
    pub(crate) deep: bool,
    /// Close open groups, mask secrets in tool output, and take rights on files from others
    #[arg(long)]
    pub(crate) fix: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 1 when a finding is at least so bad: critical, warn, info
    #[arg(long, value_name = "severity")]
    pub(crate) fail_on: Option<String>,
}
