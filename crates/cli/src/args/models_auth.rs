//! `openclaw models auth`.

use clap::{Args, Subcommand};

/// `openclaw models auth`.
#[derive(Debug, Args)]
pub(crate) struct ModelsAuthArgs {
    /// Agent id
    #[arg(long, value_name = "id")]
    pub(crate) agent: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<ModelsAuthCommand>,
}

/// What to do with credentials. None of them is ever an argument: other programs can read those.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsAuthCommand {
    /// Add a token or key; asks for provider and token
    Add,
    /// Log in at a provider with the browser
    Login {
        /// Provider id
        #[arg(long, value_name = "id")]
        provider: Option<String>,
        /// Kind of login, where a provider has several
        #[arg(long, value_name = "id")]
        method: Option<String>,
        /// Make the provider's model the default
        #[arg(long)]
        set_default: bool,
    },
    /// Log in at GitHub Copilot with a code for another device
    #[command(name = "login-github-copilot")]
    LoginGithubCopilot {
        /// Profile id
        #[arg(long, value_name = "id", default_value = "github-copilot:github")]
        profile_id: String,
        /// Replace a profile of this id without asking
        #[arg(long)]
        yes: bool,
    },
    /// The order in which an agent's profiles are asked
    Order {
        #[command(subcommand)]
        command: AuthOrderCommand,
    },
    /// Store a token; it is asked for, or read from standard input
    PasteToken {
        /// Provider id
        #[arg(long, value_name = "name")]
        provider: Option<String>,
        #[arg(long, value_name = "id", help = "Profile id [default: <provider>:manual]")]
        profile_id: Option<String>,
        /// How long the token is good for, such as 365d or 12h
        #[arg(long, value_name = "duration")]
        expires_in: Option<String>,
    },
    /// Store the token that `claude setup-token` prints; it is asked for, or read from standard input
    SetupToken {
        /// Provider id
        #[arg(long, value_name = "name", default_value = "anthropic")]
        provider: String,
        /// Don't ask whether the token was made
        #[arg(long)]
        yes: bool,
    },
}

/// `openclaw models auth order`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthOrderCommand {
    /// Forget the agent's own order
    Clear {
        #[command(flatten)]
        of: OrderOf,
    },
    /// Show the agent's own order
    Get {
        #[command(flatten)]
        of: OrderOf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Ask these profiles, in this order
    Set {
        #[command(flatten)]
        of: OrderOf,
        /// Profile ids
        #[arg(required = true)]
        profile_ids: Vec<String>,
    },
}

/// Whose order.
#[derive(Debug, Args)]
pub(crate) struct OrderOf {
    /// Agent id
    #[arg(long, value_name = "id")]
    pub(crate) agent: Option<String>,
    /// Provider id
    #[arg(long, value_name = "name")]
    pub(crate) provider: Option<String>,
}
