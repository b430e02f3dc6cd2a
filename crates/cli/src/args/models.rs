//! `openclaw models`.

use clap::{Args, Subcommand};

use super::ModelsAuthArgs;

/// `openclaw models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
    /// Print JSON
    #[arg(long)]
    pub(crate) status_json: bool,
    /// Print plain text
    #[arg(long)]
    pub(crate) status_plain: bool,
    /// Agent id
    #[arg(long, value_name = "id")]
    pub(crate) agent: Option<String>,
}

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Short names of models
    Aliases {
        #[command(subcommand)]
        command: AliasesCommand,
    },
    /// Credentials: logins, tokens and their order
    Auth(ModelsAuthArgs),
    /// Models that are tried when the default one fails
    Fallbacks {
        #[command(subcommand)]
        command: FallbacksCommand,
    },
    /// Models that are tried when the image model fails
    ImageFallbacks {
        #[command(subcommand)]
        command: FallbacksCommand,
    },
    /// Models in use; --all shows every known one
    List {
        /// Every known model
        #[arg(long)]
        all: bool,
        /// Only local ones
        #[arg(long)]
        local: bool,
        /// Only of this provider
        #[arg(long, value_name = "name")]
        provider: Option<String>,
        #[command(flatten)]
        form: FormArgs,
    },
    /// Find free models of OpenRouter that can call tools or see images
    Scan(ScanArgs),
    /// Set the default model
    Set {
        /// provider/model, or an alias
        model: String,
    },
    /// Set the model for images
    SetImage {
        /// provider/model, or an alias
        model: String,
    },
    /// Default model, fallbacks and credentials
    Status {
        #[command(flatten)]
        form: FormArgs,
        /// Exit with 1 when a credential is missing or expired, with 2 when one expires soon
        #[arg(long)]
        check: bool,
        /// Agent id
        #[arg(long, value_name = "id")]
        agent: Option<String>,
        #[command(flatten)]
        probe: ProbeArgs,
    },
}

/// How a list is printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct FormArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print names alone
    #[arg(long)]
    pub(crate) plain: bool,
}

/// `openclaw models aliases`.
#[derive(Debug, Subcommand)]
pub(crate) enum AliasesCommand {
    /// Give a model a short name
    Add {
        /// Short name
        alias: String,
        /// provider/model, or another alias
        model: String,
    },
    /// Show the short names
    List {
        #[command(flatten)]
        form: FormArgs,
    },
    /// Forget a short name
    Remove {
        /// Short name
        alias: String,
    },
}

/// `openclaw models fallbacks` and `image-fallbacks`.
#[derive(Debug, Subcommand)]
pub(crate) enum FallbacksCommand {
    /// Add a model at the end
    Add {
        /// provider/model, or an alias
        model: String,
    },
    /// Remove all of them
    Clear,
    /// Show them in order
    List {
        #[command(flatten)]
        form: FormArgs,
    },
    /// Remove a model
    Remove {
        /// provider/model, or an alias
        model: String,
    },
}

/// Flags of `openclaw models status --probe`.
#[derive(Debug, Default, Args)]
pub(crate) struct ProbeArgs {
    /// Ask the model once with every credential
    #[arg(long)]
    pub(crate) probe: bool,
    /// Probe only this provider
    #[arg(long, value_name = "name")]
    pub(crate) probe_provider: Option<String>,
    /// Probe only these profiles; may be repeated or separated by commas
    #[arg(long, value_name = "id")]
    pub(crate) probe_profile: Vec<String>,
    /// Time for one probe in milliseconds [default: 8000]
    #[arg(long, value_name = "ms", allow_negative_numbers = true)]
    pub(crate) probe_timeout: Option<String>,
    /// Probes at once [default: 2]
    #[arg(long, value_name = "n", allow_negative_numbers = true)]
    pub(crate) probe_concurrency: Option<String>,
    /// Longest answer in tokens [default: 8]
    #[arg(long, value_name = "n", allow_negative_numbers = true)]
    pub(crate) probe_max_tokens: Option<String>,
}

/// `openclaw models scan`.
#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    /// Only models of at least this many billion parameters
    #[arg(long, value_name = "b", allow_negative_numbers = true)]
    pub(crate) min_params: Option<String>,
    /// Only models that are not older
    #[arg(long, value_name = "days", allow_negative_numbers = true)]
    pub(crate) max_age_days: Option<String>,
    /// Only models of this maker
    #[arg(long, value_name = "name")]
    pub(crate) provider: Option<String>,
    /// How many become fallbacks
    #[arg(long, value_name = "n", default_value = "6", allow_negative_numbers = true)]
    pub(crate) max_candidates: String,
    /// Time for one probe in milliseconds [default: 12000]
    #[arg(long, value_name = "ms", allow_negative_numbers = true)]
    pub(crate) timeout: Option<String>,
    /// Probes at once [default: 3]
    #[arg(long, value_name = "n", allow_negative_numbers = true)]
    pub(crate) concurrency: Option<String>,
    /// List them without asking any
    #[arg(long)]
    pub(crate) no_probe: bool,
    /// Take the best without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Ask nothing; same as --yes
    #[arg(long)]
    pub(crate) no_input: bool,
    /// Make the first one the default model
    #[arg(long)]
    pub(crate) set_default: bool,
    /// Make the first one that sees the image model
    #[arg(long)]
    pub(crate) set_image: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
