//! The grammar of the command line: names and shapes as in OpenClaw (spec `cli.md` §2). What the words mean is decided by
//! the commands.

mod agents;
mod approvals;
mod channels;
mod examples;
mod hooks;
mod memory;
mod message;
mod models;
mod models_auth;
mod sandbox;
mod security;
mod skills;
mod system;
mod tools;
pub(crate) mod value;

use clap::{Args, Parser, Subcommand};

pub(crate) use agents::{AgentsAddArgs, AgentsArgs, AgentsCommand, AgentsRouteArgs, AgentsSetIdentityArgs};
pub(crate) use approvals::{
    AllowlistArgs, AllowlistCommand, ApprovalsArgs, ApprovalsAtArgs, ApprovalsCommand,
};
pub(crate) use channels::{
    AccountArgs, CapabilitiesArgs, ChannelsAddArgs, ChannelsArgs, ChannelsCommand, PairingArgs,
    PairingCommand, ResolveArgs, TraceArgs,
};
pub(crate) use examples::with_examples;
#[cfg(test)]
pub(crate) use examples::{EXAMPLES, NOT_THERE};
pub(crate) use hooks::{HooksArgs, HooksCommand};
pub(crate) use memory::{MemoryArgs, MemoryCommand};
pub(crate) use message::{DISCARD, FAILED, MessageArgs, RETRY};
pub(crate) use models::{
    AliasesCommand, FallbacksCommand, FormArgs, ModelsArgs, ModelsCommand, ProbeArgs, ScanArgs,
};
pub(crate) use models_auth::{AuthOrderCommand, ModelsAuthArgs, ModelsAuthCommand, OrderOf};
pub(crate) use sandbox::{SandboxArgs, SandboxCommand};
pub(crate) use security::{SecurityArgs, SecurityAuditArgs, SecurityCommand};
pub(crate) use skills::{SkillsArgs, SkillsCommand};
pub(crate) use system::{AskArgs, HeartbeatCommand, SystemArgs, SystemCommand};
pub(crate) use tools::{ToolsArgs, ToolsCommand, ToolsExplainArgs};
use value::no_option;
pub(crate) use value::{given, given_text, positive};

/// The words after the profile flags.
#[derive(Debug, Parser)]
#[command(
    name = "openclaw",
    about = "A personal AI-agent gateway",
    disable_help_subcommand = true,
    disable_version_flag = true,
    subcommand_required = false,
    after_help = "Before the command: --profile <name>, --dev, --no-color. Version: -V, --version."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run one agent turn and print the reply
    Agent(AgentArgs),
    /// Agents and their workspaces
    Agents(AgentsArgs),
    /// Which commands may run on a host unasked
    #[command(visible_alias = "exec-approvals")]
    Approvals(Box<ApprovalsArgs>),
    /// Accounts of chat platforms
    Channels(Box<ChannelsArgs>),
    /// Read and change openclaw.json
    Config(ConfigArgs),
    /// Print the address of the web chat, and open it
    Dashboard(DashboardArgs),
    /// Check the state directory, and repair it
    Doctor(DoctorArgs),
    /// Run the gateway, or ask a running one
    Gateway(Box<GatewayArgs>),
    /// Health of the running gateway
    Health(HealthArgs),
    /// Programs that are told what happens, and may change it
    Hooks(HooksArgs),
    /// Tail the gateway's log
    Logs(LogsArgs),
    /// Memory files: what is indexed, and searching in it
    Memory(MemoryArgs),
    /// Send messages to chat platforms
    Message(Box<MessageArgs>),
    /// Models and credentials
    Models(ModelsArgs),
    /// Who asks to be let in on chat platforms
    Pairing(PairingArgs),
    /// Sandboxes: what holds for a session, which there are
    Sandbox(SandboxArgs),
    /// Find what lets strangers in, and close it
    Security(SecurityArgs),
    /// List stored conversations
    Sessions(SessionsArgs),
    /// Create the config file, the workspace and the sessions directory
    Setup(SetupArgs),
    /// Skills: which there are, and what they need
    Skills(SkillsArgs),
    /// Overview of gateway, agents and sessions
    Status(StatusArgs),
    /// Tell the agent something, heartbeats, and who is here
    System(SystemArgs),
    /// Which tools a run has, and why
    Tools(ToolsArgs),
    /// What became of a message of a chat platform
    Trace(TraceArgs),
}

/// How to reach a gateway.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TargetArgs {
    /// Gateway URL (needs --token or --password)
    #[arg(long, value_name = "url")]
    pub(crate) url: Option<String>,
    /// Gateway token
    #[arg(long, value_name = "token")]
    pub(crate) token: Option<String>,
    /// Gateway password
    #[arg(long, value_name = "password")]
    pub(crate) password: Option<String>,
    /// Timeout in milliseconds
    #[arg(long, value_name = "ms", allow_negative_numbers = true)]
    pub(crate) timeout: Option<String>,
}

/// `openclaw agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// The message
    #[arg(short, long, value_name = "text", allow_hyphen_values = true, value_parser = no_option)]
    pub(crate) message: Option<String>,
    /// Sender whose session is used
    #[arg(short, long, value_name = "number", allow_hyphen_values = true, value_parser = no_option)]
    pub(crate) to: Option<String>,
    /// Session id to continue
    #[arg(long, value_name = "id")]
    pub(crate) session_id: Option<String>,
    /// Agent id
    #[arg(long, value_name = "id")]
    pub(crate) agent: Option<String>,
    /// Thinking level: off, minimal, low, medium, high, xhigh
    #[arg(long, value_name = "level")]
    pub(crate) thinking: Option<String>,
    /// Verbose level of the session: on, full, off
    #[arg(long, value_name = "on|full|off")]
    pub(crate) verbose: Option<String>,
    /// Channel of the conversation
    #[arg(long, value_name = "channel")]
    pub(crate) channel: Option<String>,
    /// Recipient of the delivered reply
    #[arg(long, value_name = "target", allow_hyphen_values = true, value_parser = no_option)]
    pub(crate) reply_to: Option<String>,
    /// Channel of the delivered reply
    #[arg(long, value_name = "channel")]
    pub(crate) reply_channel: Option<String>,
    /// Account of the delivered reply
    #[arg(long, value_name = "id")]
    pub(crate) reply_account: Option<String>,
    /// Run in this process instead of the gateway
    #[arg(long)]
    pub(crate) local: bool,
    /// Send the reply to the channel too
    #[arg(long)]
    pub(crate) deliver: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Deadline of the run in seconds
    #[arg(long, value_name = "seconds", allow_negative_numbers = true)]
    pub(crate) timeout: Option<String>,
}

/// Flags that commands without more to tell accept too (spec `cli.md` §1.4).
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DetailArgs {
    #[arg(long, hide = true)]
    verbose: bool,
    #[arg(long, hide = true)]
    debug: bool,
}

/// `openclaw config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
}

/// What to do with the config.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the value at a path such as gateway.port
    Get {
        /// Dotted path; a key with a dot in it: models.gpt-5\.2 or models[gpt-5.2]
        path: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Show secrets inside objects
        #[arg(long)]
        show_secrets: bool,
    },
    /// Set the value at a path
    Set {
        /// Dotted path; a key with a dot in it: models.gpt-5\.2 or models[gpt-5.2]
        path: String,
        /// JSON5, else plain text
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// The value must be JSON5
        #[arg(long)]
        json: bool,
    },
    /// Remove the value at a path
    Unset {
        /// Dotted path; a key with a dot in it: models.gpt-5\.2 or models[gpt-5.2]
        path: String,
    },
}

/// `openclaw dashboard`.
#[derive(Debug, Args)]
pub(crate) struct DashboardArgs {
    /// Print the address only
    #[arg(long)]
    pub(crate) no_open: bool,
    #[command(flatten)]
    detail: DetailArgs,
}

/// `openclaw doctor`.
#[derive(Debug, Default, Args)]
#[command(
    after_help = "Exit code: 0, whatever is found. 1 when a repair fails, and with --check when errors remain."
)]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired; what is changed is kept in a backup
    #[arg(long)]
    pub(crate) fix: bool,
    /// Same as --fix
    #[arg(long)]
    pub(crate) repair: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 1 when errors remain
    #[arg(long)]
    pub(crate) check: bool,
    /// With --fix: also rename transcripts that no session uses
    #[arg(long)]
    pub(crate) archive_orphans: bool,
    /// Take keys out of the config that it may not have; the file as it was stays beside it
    #[arg(long)]
    pub(crate) remove_unknown: bool,
    /// Write a gateway token into the config if it has none
    #[arg(long)]
    pub(crate) generate_gateway_token: bool,
    /// Ask nothing; the doctor never does
    #[arg(long, hide = true)]
    pub(crate) non_interactive: bool,
    /// Agree to everything; the doctor never asks
    #[arg(long, hide = true)]
    pub(crate) yes: bool,
    /// Say nothing about workspaces; the doctor does not yet
    #[arg(long, hide = true)]
    pub(crate) no_workspace_suggestions: bool,
    /// System services, which are not here yet
    #[arg(long, hide = true)]
    pub(crate) deep: bool,
    /// Service definitions, which are not here yet
    #[arg(long, hide = true)]
    pub(crate) force: bool,
}

/// `openclaw gateway`.
#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    #[command(subcommand)]
    pub(crate) command: Option<GatewayCommand>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// What to do with the gateway.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Run the gateway in the foreground
    Run(RunArgs),
    /// Call a method and print its result
    Call {
        /// Method name, such as health or sessions.list
        method: String,
        /// Parameters as JSON
        #[arg(long, value_name = "json", default_value = "{}")]
        params: String,
        /// Wait for the final answer of an agent run
        #[arg(long)]
        expect_final: bool,
        /// Print JSON only
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Health of the gateway
    Health {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Accepted for compatibility
        #[arg(long, hide = true)]
        expect_final: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Service, config, port and reachability
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Don't connect
        #[arg(long)]
        no_probe: bool,
        /// Also look at system services
        #[arg(long)]
        deep: bool,
        /// Exit with 1 when the gateway can't be reached
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Tokens and cost by day
    UsageCost {
        /// How many days, up to today
        #[arg(long, value_name = "days", default_value = "30", allow_negative_numbers = true)]
        days: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Accepted for compatibility
        #[arg(long, hide = true)]
        expect_final: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Which gateways can be reached from here
    Probe {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// SSH host to reach a gateway through
        #[arg(long, value_name = "target", hide = true)]
        ssh: Option<String>,
        /// Identity file for --ssh
        #[arg(long, value_name = "path", hide = true)]
        ssh_identity: Option<String>,
        /// Find an SSH host on the network
        #[arg(long, hide = true)]
        ssh_auto: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
}

/// Flags of `openclaw gateway run`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunArgs {
    /// Port of the WebSocket and HTTP server
    #[arg(long, value_name = "port", allow_negative_numbers = true)]
    pub(crate) port: Option<String>,
    /// Where to listen: loopback, lan, tailnet, auto, custom
    #[arg(long, value_name = "mode")]
    pub(crate) bind: Option<String>,
    /// Shared token for clients
    #[arg(long, value_name = "token")]
    pub(crate) token: Option<String>,
    /// Authentication: token, password
    #[arg(long, value_name = "mode")]
    pub(crate) auth: Option<String>,
    /// Shared password for clients
    #[arg(long, value_name = "password")]
    pub(crate) password: Option<String>,
    /// Tailscale exposure: off; serve and funnel are not implemented yet
    #[arg(long, value_name = "mode")]
    pub(crate) tailscale: Option<String>,
    /// Undo the Tailscale exposure at exit (not implemented yet)
    #[arg(long)]
    pub(crate) tailscale_reset_on_exit: bool,
    /// Start although gateway.mode is not local
    #[arg(long)]
    pub(crate) allow_unconfigured: bool,
    /// Create a development config when there is none (not implemented yet; see --dev before the command)
    #[arg(long)]
    pub(crate) dev: bool,
    /// With --dev: start from nothing (not implemented yet)
    #[arg(long)]
    pub(crate) reset: bool,
    /// Stop a gateway that holds the port
    #[arg(long)]
    pub(crate) force: bool,
    /// Log more to the console
    #[arg(long)]
    pub(crate) verbose: bool,
    /// WebSocket log style: auto, full, compact
    #[arg(long, value_name = "style", default_value = "auto")]
    pub(crate) ws_log: String,
    /// Same as --ws-log compact
    #[arg(long)]
    pub(crate) compact: bool,
    /// Accepted for compatibility
    #[arg(long, hide = true)]
    pub(crate) claude_cli_logs: bool,
    /// Log what models say, piece by piece (logs/raw-stream.jsonl)
    #[arg(long)]
    pub(crate) raw_stream: bool,
    /// File for --raw-stream
    #[arg(long, value_name = "path")]
    pub(crate) raw_stream_path: Option<String>,
}

/// `openclaw health`.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// More detail
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Same as --verbose
    #[arg(long, hide = true)]
    pub(crate) debug: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// `openclaw status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Full report
    #[arg(long)]
    pub(crate) all: bool,
    /// Probe channels too
    #[arg(long)]
    pub(crate) deep: bool,
    /// Show provider usage
    #[arg(long)]
    pub(crate) usage: bool,
    /// Timeout in milliseconds
    #[arg(long, value_name = "ms", allow_negative_numbers = true)]
    pub(crate) timeout: Option<String>,
    /// More detail
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Same as --verbose
    #[arg(long, hide = true)]
    pub(crate) debug: bool,
}

/// `openclaw sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Store file to read
    #[arg(long, value_name = "path")]
    pub(crate) store: Option<String>,
    /// Only sessions updated in the last minutes
    #[arg(long, value_name = "minutes", allow_negative_numbers = true)]
    pub(crate) active: Option<String>,
    /// Agent whose store is read; default agent if absent
    #[arg(long, value_name = "id")]
    pub(crate) agent: Option<String>,
    /// Read the stores of all agents
    #[arg(long, conflicts_with_all = ["agent", "store"])]
    pub(crate) all_agents: bool,
    #[command(flatten)]
    detail: DetailArgs,
}

/// `openclaw logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Most lines at once
    #[arg(long, value_name = "n", default_value = "200", allow_negative_numbers = true)]
    pub(crate) limit: String,
    /// Most bytes at once
    #[arg(long, value_name = "n", default_value = "250000", allow_negative_numbers = true)]
    pub(crate) max_bytes: String,
    /// Keep printing new lines
    #[arg(long)]
    pub(crate) follow: bool,
    /// Milliseconds between looks with --follow
    #[arg(long, value_name = "ms", default_value = "1000", allow_negative_numbers = true)]
    pub(crate) interval: String,
    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
    /// No styling
    #[arg(long)]
    pub(crate) plain: bool,
    /// No colour
    #[arg(long)]
    pub(crate) no_color: bool,
    /// Accepted for compatibility
    #[arg(long, hide = true)]
    pub(crate) expect_final: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// `openclaw setup`.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// The interactive wizard, which is not here yet
    #[arg(long, hide = true)]
    pub(crate) wizard: bool,
    /// Ask nothing; setup never does
    #[arg(long, hide = true)]
    pub(crate) non_interactive: bool,
    /// Gateway on this host or elsewhere: local, remote
    #[arg(long, value_name = "mode")]
    pub(crate) mode: Option<String>,
    /// URL of a remote gateway
    #[arg(long, value_name = "url")]
    pub(crate) remote_url: Option<String>,
    /// Token of a remote gateway
    #[arg(long, value_name = "token")]
    pub(crate) remote_token: Option<String>,
    /// Workspace of the default agent
    #[arg(long, value_name = "dir")]
    pub(crate) workspace: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
