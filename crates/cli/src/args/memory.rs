//! `openclaw memory`.

use clap::{Args, Subcommand};

/// `openclaw memory`.
#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
}

/// Actions of `openclaw memory`.
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// Show what is indexed, and what is searched with
    Status {
        /// Agent id; all agents if absent
        #[arg(long, value_name = "id")]
        agent: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Ask the provider of embeddings for a vector
        #[arg(long)]
        deep: bool,
        /// Bring the index in step with the files first
        #[arg(long)]
        index: bool,
        /// Accepted for compatibility
        #[arg(long, hide = true)]
        verbose: bool,
    },
    /// Bring the index in step with the files
    Index {
        /// Agent id; all agents if absent
        #[arg(long, value_name = "id")]
        agent: Option<String>,
        /// Write everything anew
        #[arg(long)]
        force: bool,
        /// Show what is indexed, and what was done
        #[arg(long)]
        verbose: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search the memory files of an agent
    Search {
        /// Words to look for
        query: String,
        /// Agent id
        #[arg(long, value_name = "id")]
        agent: Option<String>,
        /// Largest number of hits
        #[arg(long, value_name = "n")]
        max_results: Option<String>,
        /// Smallest score, from 0 to 1
        #[arg(long, value_name = "n")]
        min_score: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find what memory files say of something, and take it out of them
    Forget {
        /// Words that the entries hold, all of them
        query: String,
        /// Agent id
        #[arg(long, value_name = "id")]
        agent: Option<String>,
        /// Take the entries out without a question
        #[arg(long)]
        yes: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
