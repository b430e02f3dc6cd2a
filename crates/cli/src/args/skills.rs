//! `openclaw skills`.

use clap::{Args, Subcommand};

/// `openclaw skills`.
#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SkillsCommand>,
}

/// What to say of skills.
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills of the default agent
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Only those that can be used
        #[arg(long)]
        eligible: bool,
        /// Show what is missing
        #[arg(short, long)]
        verbose: bool,
    },
    /// Show everything about one skill
    Info {
        /// Name of the skill
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell which skills can be used, and what the others need
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
