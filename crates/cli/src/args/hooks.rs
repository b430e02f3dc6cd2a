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
    /// Install hooks from a directory, an archive or npm, and switch them on
    Install {
        /// A directory, an archive (.tar, .tgz, .tar.gz, .tar.bz2, .zip) or an npm package
        #[arg(value_name = "path-or-spec")]
        from: String,
        /// Use the directory where it is instead of copying it
        #[arg(short, long)]
        link: bool,
    },
    /// Fetch installed hooks of npm again
    Update {
        /// The id that `hooks install` gave
        #[arg(conflicts_with = "all")]
        id: Option<String>,
        /// All that were installed
        #[arg(long)]
        all: bool,
        /// Only say what would change
        #[arg(long)]
        dry_run: bool,
    },
}
