//! `openclaw models auth`: credentials are added, and the order in which they are asked is set (spec `models.md` §8).

mod codex;
mod copilot;
mod keep;
mod order;
mod terminal;
mod token;

use openclaw_models::oauth::{codex as codex_login, github};
use openclaw_models::{ProviderId, Variables};

use crate::args::{ModelsAuthArgs, ModelsAuthCommand, given};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use keep::Keeper;
use terminal::Terminal;

/// Providers with a login here, its method, and the model it is for.
const LOGINS: [(&str, &str, &str); 2] =
    [(codex_login::PROVIDER, "oauth", codex::MODEL), (github::PROVIDER, "device", copilot::MODEL)];

/// Providers whose logins belong to another program, with how a person gets there all the same.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "anthropic",
        "Run `claude setup-token`, then `openclaw models auth setup-token --provider anthropic`; or use an API key.",
    ),
    (
        "google-gemini-cli",
        "Its login is a provider plugin, which this version does not run. Use provider google with GEMINI_API_KEY.",
    ),
    (
        "google-antigravity",
        "Its login is a provider plugin, which this version does not run. Use provider google with GEMINI_API_KEY.",
    ),
    (
        "qwen-portal",
        "Log in with the `qwen` program; its login in ~/.qwen is used. Or set QWEN_PORTAL_API_KEY.",
    ),
    (
        "minimax-portal",
        "Log in with the MiniMax program; its login in ~/.minimax is used. Or set MINIMAX_API_KEY.",
    ),
    ("chutes", "Its login is a provider plugin, which this version does not run. Set CHUTES_API_KEY."),
    (
        "openai",
        "Set OPENAI_API_KEY, or log in with a ChatGPT account: `openclaw models auth login --provider openai-codex`.",
    ),
];

pub(super) fn run(args: ModelsAuthArgs, agent: Option<&str>, context: &CliContext) -> CommandResult {
    let agent = args.agent.as_deref().or(agent);
    let Some(command) = args.command else {
        return Err(CommandFailure::usage("openclaw models auth: say what to do.")
            .hint("Run `openclaw models auth --help` for the commands."));
    };
    let terminal = Terminal::of_process();
    match command {
        ModelsAuthCommand::Add => token::add(&keeper(context, agent)?, &terminal),
        ModelsAuthCommand::Login { provider, method, set_default } => {
            login(&keeper(context, agent)?, &terminal, provider.as_deref(), method.as_deref(), set_default)
        }
        ModelsAuthCommand::LoginGithubCopilot { profile_id, yes } => {
            copilot::run(&keeper(context, agent)?, &terminal, &profile_id, yes)
        }
        ModelsAuthCommand::Order { command } => order::run(command, agent, context),
        ModelsAuthCommand::PasteToken { provider, profile_id, expires_in } => token::paste(
            &keeper(context, agent)?,
            &terminal,
            provider.as_deref(),
            profile_id.as_deref(),
            expires_in.as_deref(),
        ),
        ModelsAuthCommand::SetupToken { provider, yes } => {
            token::setup(&keeper(context, agent)?, &terminal, &provider, yes)
        }
    }
}

fn keeper<'a>(context: &'a CliContext, agent: Option<&str>) -> Result<Keeper<'a>, CommandFailure> {
    openclaw_gateway::keep_files_private();
    let agent = context.config()?.agent(&context.agent(agent)?);
    Ok(Keeper { context, agent, variables: Variables::from(context.env()) })
}

fn login(
    keeper: &Keeper<'_>,
    terminal: &Terminal,
    provider: Option<&str>,
    method: Option<&str>,
    set_default: bool,
) -> CommandResult {
    let providers = LOGINS.map(|(id, ..)| id).join(", ");
    let Some(provider) = given(provider) else {
        return Err(CommandFailure::usage("Missing --provider.")
            .hint(format!("Providers with a login: {providers}.")));
    };
    let provider = ProviderId::normalize(provider);
    let Some((_, known, model)) = LOGINS.iter().find(|(id, ..)| *id == provider.as_str()) else {
        let elsewhere = ELSEWHERE.iter().find(|(id, _)| *id == provider.as_str());
        let hint = elsewhere.map_or_else(
            || format!("Providers with a login: {providers}. For a token: `openclaw models auth paste-token --provider {provider}`"),
            |(_, hint)| (*hint).to_owned(),
        );
        let text = format!("There is no login for provider \"{provider}\" here.");
        return Err(CommandFailure::new("no-login", text).hint(hint));
    };
    if let Some(method) = method.filter(|method| method != known) {
        return Err(CommandFailure::usage(format!("Unknown auth method \"{method}\" of {provider}."))
            .hint(format!("It has one: {known}.")));
    }
    let outcome = if *known == "oauth" {
        codex::run(keeper, terminal)
    } else {
        copilot::run(keeper, terminal, copilot::PROFILE, false)
    }?;
    if set_default {
        keeper.set_default(model)?;
    }
    Ok(outcome)
}
