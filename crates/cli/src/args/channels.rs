//! `openclaw channels`, `pairing` and `trace`.

use clap::{Args, Subcommand};

use super::TargetArgs;
use super::value::no_option;

/// `openclaw channels`.
#[derive(Debug, Args)]
pub(crate) struct ChannelsArgs {
    #[command(subcommand)]
    pub(crate) command: ChannelsCommand,
}

/// What to do with chat platforms.
#[derive(Debug, Subcommand)]
pub(crate) enum ChannelsCommand {
    /// Accounts that are configured
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Leave quotas of providers out; they are shown by `models status`
        #[arg(long, hide = true)]
        no_usage: bool,
    },
    /// How the accounts stand
    Status {
        /// Ask the platforms
        #[arg(long)]
        probe: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Configure an account
    Add(Box<ChannelsAddArgs>),
    /// Switch an account off, or delete it
    Remove {
        /// Platform
        #[arg(long, value_name = "name")]
        channel: Option<String>,
        /// Account
        #[arg(long, value_name = "id")]
        account: Option<String>,
        /// Delete its section instead of switching it off
        #[arg(long)]
        delete: bool,
    },
    /// Forget an account's token
    Logout {
        /// Platform
        #[arg(long, value_name = "channel")]
        channel: Option<String>,
        /// Account
        #[arg(long, value_name = "id")]
        account: Option<String>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Log in to an account, where the platform has that
    Login {
        /// Platform
        #[arg(long, value_name = "channel")]
        channel: Option<String>,
        /// Account
        #[arg(long, value_name = "id")]
        account: Option<String>,
        /// Say more
        #[arg(long)]
        verbose: bool,
    },
    /// What the platforms can do, as they say themselves
    Capabilities(CapabilitiesArgs),
    /// What the gateway's log says of platforms
    Logs {
        /// Platform, or all
        #[arg(long, value_name = "name", default_value = "all")]
        channel: String,
        /// Lines at most
        #[arg(long, value_name = "n", default_value = "200")]
        lines: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Look up names of people and groups
    Resolve(ResolveArgs),
    /// Start an account, or start it anew
    Start(AccountArgs),
    /// Stop an account until it is started again
    Stop(AccountArgs),
}

/// `channels capabilities`.
#[derive(Debug, Args)]
pub(crate) struct CapabilitiesArgs {
    /// Platform; all that are configured where absent
    #[arg(long, value_name = "name")]
    pub(crate) channel: Option<String>,
    /// Account
    #[arg(long, value_name = "id")]
    pub(crate) account: Option<String>,
    /// A conversation to be looked up
    #[arg(long, value_name = "dest", allow_hyphen_values = true, value_parser = no_option)]
    pub(crate) target: Option<String>,
    /// Milliseconds the platforms may take
    #[arg(long, value_name = "ms", default_value = "10000")]
    pub(crate) timeout: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `channels resolve`.
#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// Names or ids
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) entries: Vec<String>,
    /// Platform
    #[arg(long, value_name = "name")]
    pub(crate) channel: Option<String>,
    /// Account
    #[arg(long, value_name = "id")]
    pub(crate) account: Option<String>,
    /// What they are
    #[arg(long, value_name = "kind", default_value = "auto", value_parser = ["auto", "user", "group"])]
    pub(crate) kind: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `channels start|stop`.
#[derive(Debug, Args)]
pub(crate) struct AccountArgs {
    /// Platform
    #[arg(long, value_name = "channel")]
    pub(crate) channel: String,
    /// Account
    #[arg(long, value_name = "id")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// `channels add`. The options of platforms that this version does not have are taken and refused by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub(crate) struct ChannelsAddArgs {
    /// Platform
    #[arg(long, value_name = "name")]
    pub(crate) channel: Option<String>,
    /// Account; the default one where absent
    #[arg(long, value_name = "id")]
    pub(crate) account: Option<String>,
    /// Label for people
    #[arg(long, value_name = "name")]
    pub(crate) name: Option<String>,
    /// Bot token
    #[arg(long, value_name = "token")]
    pub(crate) token: Option<String>,
    /// Bot token
    #[arg(long, value_name = "token")]
    pub(crate) bot_token: Option<String>,
    /// File that holds the bot token
    #[arg(long, value_name = "path")]
    pub(crate) token_file: Option<String>,
    /// Take the token from the environment
    #[arg(long)]
    pub(crate) use_env: bool,
    /// Address that the platform pushes to
    #[arg(long, value_name = "url")]
    pub(crate) webhook_url: Option<String>,
    /// Path of the webhook
    #[arg(long, value_name = "path")]
    pub(crate) webhook_path: Option<String>,
    #[arg(long, hide = true)]
    access_token: Option<String>,
    #[arg(long, hide = true)]
    app_token: Option<String>,
    #[arg(long, hide = true)]
    audience: Option<String>,
    #[arg(long, hide = true)]
    audience_type: Option<String>,
    #[arg(long, hide = true)]
    auth_dir: Option<String>,
    #[arg(long, hide = true)]
    auto_discover_channels: bool,
    #[arg(long, hide = true)]
    no_auto_discover_channels: bool,
    #[arg(long, hide = true)]
    cli_path: Option<String>,
    #[arg(long, hide = true)]
    code: Option<String>,
    #[arg(long, hide = true)]
    db_path: Option<String>,
    #[arg(long, hide = true)]
    device_name: Option<String>,
    #[arg(long, hide = true)]
    dm_allowlist: Option<String>,
    #[arg(long, hide = true)]
    group_channels: Option<String>,
    #[arg(long, hide = true)]
    homeserver: Option<String>,
    #[arg(long, hide = true)]
    http_host: Option<String>,
    #[arg(long, hide = true)]
    http_port: Option<String>,
    #[arg(long, hide = true)]
    http_url: Option<String>,
    #[arg(long, hide = true)]
    initial_sync_limit: Option<String>,
    #[arg(long, hide = true)]
    password: Option<String>,
    #[arg(long, hide = true)]
    region: Option<String>,
    #[arg(long, hide = true)]
    service: Option<String>,
    #[arg(long, hide = true)]
    ship: Option<String>,
    #[arg(long, hide = true)]
    signal_number: Option<String>,
    #[arg(long, hide = true)]
    url: Option<String>,
    #[arg(long, hide = true)]
    user_id: Option<String>,
}

/// `openclaw pairing`.
#[derive(Debug, Args)]
pub(crate) struct PairingArgs {
    #[command(subcommand)]
    pub(crate) command: PairingCommand,
}

/// What to do with those who wait to be let in.
#[derive(Debug, Subcommand)]
pub(crate) enum PairingCommand {
    /// Who waits
    List {
        /// Platform
        name: Option<String>,
        /// Platform
        #[arg(long, value_name = "channel")]
        channel: Option<String>,
        /// Account
        #[arg(long, value_name = "id")]
        account: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let somebody in
    Approve {
        /// Platform, or the code where there is one platform alone
        code_or_channel: Option<String>,
        /// The code
        code: Option<String>,
        /// Platform
        #[arg(long, value_name = "channel")]
        channel: Option<String>,
        /// Account
        #[arg(long, value_name = "id")]
        account: Option<String>,
        /// Tell them
        #[arg(long)]
        notify: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
}

/// `openclaw trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// A platform's id of a message, a run's id, or `last`
    #[arg(default_value = "last")]
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}
