//! `openclaw agents`.

use clap::{Args, Subcommand};

use super::DetailArgs;

/// `openclaw agents`.
#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,
}

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the configured agents
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Show the routing bindings
        #[arg(long)]
        bindings: bool,
        #[command(flatten)]
        detail: DetailArgs,
    },
    /// Add an agent with a workspace of its own; asks when no flags are given
    Add(AgentsAddArgs),
    /// Remove an agent; its directories go to the trash
    Delete {
        /// Agent id
        id: String,
        /// Don't ask
        #[arg(long)]
        force: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change name, theme, emoji or avatar of an agent
    SetIdentity(AgentsSetIdentityArgs),
    /// Tell which agent and session a message would reach, and by which rule
    Route(AgentsRouteArgs),
}

/// `openclaw agents add`.
#[derive(Debug, Default, Args)]
pub(crate) struct AgentsAddArgs {
    /// Name of the agent; its id is made of it
    pub(crate) name: Option<String>,
    /// Workspace directory
    #[arg(long, value_name = "dir")]
    pub(crate) workspace: Option<String>,
    /// Directory of its credentials and models
    #[arg(long, value_name = "dir")]
    pub(crate) agent_dir: Option<String>,
    /// Channel it answers, such as telegram or telegram:ops (may be repeated)
    #[arg(long, value_name = "channel[:accountId]")]
    pub(crate) bind: Vec<String>,
    /// Model, such as anthropic/claude-opus-4-6
    #[arg(long, value_name = "id")]
    pub(crate) model: Option<String>,
    /// Ask nothing; needs --workspace
    #[arg(long)]
    pub(crate) non_interactive: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `openclaw agents set-identity`.
#[derive(Debug, Default, Args)]
pub(crate) struct AgentsSetIdentityArgs {
    /// Agent id
    #[arg(long, value_name = "id")]
    pub(crate) agent: Option<String>,
    /// Workspace that tells the agent and holds IDENTITY.md
    #[arg(long, value_name = "dir")]
    pub(crate) workspace: Option<String>,
    /// File to read instead of the workspace's IDENTITY.md
    #[arg(long, value_name = "path")]
    pub(crate) identity_file: Option<String>,
    /// Read IDENTITY.md
    #[arg(long)]
    pub(crate) from_identity: bool,
    /// Name
    #[arg(long, value_name = "name")]
    pub(crate) name: Option<String>,
    /// What it is
    #[arg(long, value_name = "theme")]
    pub(crate) theme: Option<String>,
    /// Emoji
    #[arg(long, value_name = "emoji")]
    pub(crate) emoji: Option<String>,
    /// Path in the workspace, URL or data URI
    #[arg(long, value_name = "value")]
    pub(crate) avatar: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `openclaw agents route`.
#[derive(Debug, Default, Args)]
pub(crate) struct AgentsRouteArgs {
    /// Channel the message comes in on
    #[arg(long, value_name = "channel")]
    pub(crate) channel: String,
    /// Our account on it; default "default"
    #[arg(long, value_name = "id")]
    pub(crate) account: Option<String>,
    #[arg(
        long,
        value_name = "kind:id",
        allow_hyphen_values = true,
        help = "Who or where: group:<id>, channel:<id>, dm:<id>, or an id alone for a person"
    )]
    pub(crate) peer: Option<String>,
    /// The room of a thread or the group of a topic, in the same form
    #[arg(long, value_name = "kind:id", allow_hyphen_values = true)]
    pub(crate) parent_peer: Option<String>,
    /// Discord server
    #[arg(long, value_name = "id")]
    pub(crate) guild: Option<String>,
    /// Slack or Teams workspace
    #[arg(long, value_name = "id")]
    pub(crate) team: Option<String>,
    /// Thread or topic
    #[arg(long, value_name = "id")]
    pub(crate) thread: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
