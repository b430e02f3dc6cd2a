//! The grammar of `openclaw tools`.

use clap::{Args, Subcommand};

/// `openclaw tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

/// Its commands.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Tell which tools a run has, and which rule keeps it from the others
    Explain(ToolsExplainArgs),
}

/// `openclaw tools explain`.
#[derive(Debug, Args)]
pub(crate) struct ToolsExplainArgs {
    /// Whose run; of the session's agent or the default one if absent
    #[arg(long, value_name = "id")]
    pub(crate) agent: Option<String>,
    /// In which session; the agent's main one if absent
    #[arg(long, value_name = "key")]
    pub(crate) session: Option<String>,
    /// With which model; what the session would use if absent
    #[arg(long, value_name = "provider/model")]
    pub(crate) model: Option<String>,
    /// Who asks for it: `owner`, or `other` for anybody else who is heard
    #[arg(long, value_name = "who", value_parser = ["owner", "other"], default_value = "owner")]
    pub(crate) sender: String,
    /// Only this tool
    #[arg(long, value_name = "name")]
    pub(crate) tool: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
