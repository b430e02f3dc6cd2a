//! `openclaw agents add`.

use std::io::{IsTerminal as _, stdin};

use openclaw_agent::roster::{self, BindingChanges, Created, IdentityLines, NewAgent, NewBinding};
use openclaw_config::Config;
use openclaw_config::write::Actor;
use openclaw_protocol::AgentId;
use openclaw_sessions::key::group::surface;
use serde::Serialize;

use super::credentials::Offer;
use super::{exists, failure, reserved, wizard};
use crate::args::{AgentsAddArgs, given, given_text};
use crate::commands::questions::Questions;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// Agent to add, from flags or answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentSetup {
    pub(super) agent: NewAgent,
    /// Credentials that a person wants copied.
    pub(super) credentials: Option<Offer>,
}

/// The result, keys in the order of the reference.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Added<'a> {
    agent_id: &'a str,
    name: &'a str,
    workspace: String,
    agent_dir: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    bindings: &'a BindingChanges,
}

pub(super) fn run(args: &AgentsAddArgs, context: &CliContext) -> CommandResult {
    let config = context.config()?;
    let wanted = if is_scripted(args) {
        from_flags(args, config, context)?
    } else if stdin().is_terminal() && !args.json {
        let mut questions = Questions::of_process();
        wizard::ask(&mut questions, args.name.as_deref(), config, context)?
    } else {
        return Err(CommandFailure::usage(
            "openclaw agents add asks questions, and there is no terminal to ask on.",
        )
        .hint("Pass what it asks for: `openclaw agents add <name> --non-interactive --workspace <dir>`"));
    };
    openclaw_gateway::keep_files_private();
    let created = roster::create(&context.loaded, &wanted.agent, Actor::Cli)
        .map_err(|error| failure(error, context))?;
    if let Some(offer) = &wanted.credentials {
        offer.copy()?;
    }
    report(&wanted.agent, &created, config, args.json, context);
    Ok(0)
}

/// Any flag that answers a question means that none is to be asked.
fn is_scripted(args: &AgentsAddArgs) -> bool {
    let has_flags =
        args.workspace.is_some() || args.agent_dir.is_some() || args.model.is_some() || !args.bind.is_empty();
    args.non_interactive || has_flags
}

fn from_flags(
    args: &AgentsAddArgs,
    config: &Config,
    context: &CliContext,
) -> Result<AgentSetup, CommandFailure> {
    let Some(workspace) = given(args.workspace.as_deref()) else {
        return Err(CommandFailure::usage(
            "Non-interactive mode requires --workspace. Re-run without flags to use the wizard.",
        ));
    };
    let Some(name) = given(args.name.as_deref()) else {
        return Err(CommandFailure::usage("Non-interactive mode requires a name.")
            .hint("`openclaw agents add <name> --workspace <dir>`"));
    };
    let id = new_id(name, config)?;
    let agent_dir = match given(args.agent_dir.as_deref()) {
        Some(dir) => context.env().expand_path(dir),
        None => context.paths().agent_dir(&id),
    };
    let agent = NewAgent {
        bindings: bindings(args.bind.iter().map(String::as_str), config)?,
        workspace: context.env().expand_path(workspace),
        model: given_text(&args.model),
        name: name.to_owned(),
        agent_dir: Some(agent_dir),
        identity: IdentityLines::default(),
        id,
    };
    Ok(AgentSetup { agent, credentials: None })
}

/// The id that a name gives, unless it is taken.
pub(super) fn new_id(name: &str, config: &Config) -> Result<AgentId, CommandFailure> {
    let id = AgentId::normalize(name);
    // A name without anything usable becomes the main agent's id.
    if !name.chars().any(|c| c.to_lowercase().any(|c| c.is_ascii_alphanumeric() || c == '_')) {
        return Err(CommandFailure::usage(format!(
            "The name \"{name}\" has no letter or digit to make an id of."
        ))
        .hint("Use letters from a to z, digits, _ or -."));
    }
    if id.as_str() == AgentId::MAIN {
        return Err(reserved(id.as_str()));
    }
    if config.has_agent(&id) { Err(exists(id.as_str())) } else { Ok(id) }
}

/// Reads texts such as `telegram` and `telegram:ops`; every mistake is told.
pub(super) fn bindings<'a>(
    texts: impl Iterator<Item = &'a str>,
    config: &Config,
) -> Result<Vec<NewBinding>, CommandFailure> {
    let (mut found, mut mistakes) = (Vec::new(), Vec::new());
    for text in texts {
        match binding(text, config) {
            Ok(binding) => found.push(binding),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(CommandFailure::new("bad-binding", mistakes.join("\n"))) }
}

fn binding(text: &str, config: &Config) -> Result<NewBinding, String> {
    let (name, account) = match text.split_once(':') {
        Some((name, account)) => (name.trim(), Some(account.trim())),
        None => (text.trim(), None),
    };
    let channel =
        surface(name).filter(|id| *id != "webchat").ok_or_else(|| format!("Unknown channel \"{name}\"."))?;
    if let Some(switch) = openclaw_config::plugin_switches(config.document(), channel).first() {
        return Err(format!("Channel \"{channel}\" is disabled ({}).", switch.says()));
    }
    if account == Some("") {
        return Err(format!("No account in \"{text}\"; write {channel} or {channel}:<accountId>."));
    }
    Ok(NewBinding { channel: channel.to_owned(), account: account.map(str::to_owned) })
}

fn report(new: &NewAgent, created: &Created, config: &Config, json: bool, context: &CliContext) {
    if !created.bindings.conflicts.is_empty() {
        let list = created.bindings.conflicts.join("\n- ");
        output::error_line(
            &context.style.warn(&format!("Not bound, another agent answers there:\n- {list}")),
        );
    }
    if let Some(offer) = Offer::of(config, &created.agent_dir) {
        output::error_line(&offer.hint());
    }
    if json {
        output::json(&Added {
            agent_id: new.id.as_str(),
            name: &new.name,
            workspace: created.workspace.display().to_string(),
            agent_dir: created.agent_dir.display().to_string(),
            model: new.model.as_deref(),
            bindings: &created.bindings,
        });
        return;
    }
    output::line(&format!("Added agent {} ({})", new.id, new.name));
    output::line(&format!("  Workspace: {}", context.short(&created.workspace)));
    output::line(&format!("  Agent dir: {}", context.short(&created.agent_dir)));
    output::line(&format!("  Sessions: {}", context.short(&created.sessions_dir)));
    if let Some(model) = &new.model {
        output::line(&format!("  Model: {model}"));
    }
    for binding in &created.bindings.added {
        output::line(&format!("  Answers: {binding}"));
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    #[test]
    fn bindings_name_a_channel_and_maybe_an_account() {
        let env = Environment::new([("HOME", "/h")], "/");
        let config = Config::from_json5(
            "{ plugins: { entries: { discord: { enabled: false } }, deny: ['signal'] }, channels: { telegram: {} } }",
            &env,
        );
        let config = config.unwrap_or_else(|error| panic!("{error}"));
        type Read<'a> = Result<(&'a str, Option<&'a str>), &'a str>;
        let rows: [(&str, Read<'_>); 9] = [
            ("telegram", Ok(("telegram", None))),
            (" Telegram : Ops ", Ok(("telegram", Some("Ops")))),
            ("gchat:*", Ok(("googlechat", Some("*")))),
            ("slack:a:b", Ok(("slack", Some("a:b")))),
            ("fax", Err("Unknown channel \"fax\".")),
            ("webchat", Err("Unknown channel \"webchat\".")),
            ("slack:", Err("No account in \"slack:\"; write slack or slack:<accountId>.")),
            ("discord", Err("Channel \"discord\" is disabled (plugins.entries.discord.enabled is false).")),
            ("signal", Err("Channel \"signal\" is disabled (plugins.deny names signal).")),
        ];
        for (text, expect) in rows {
            let got = binding(text, &config);
            let got =
                got.as_ref().map(|b| (b.channel.as_str(), b.account.as_deref())).map_err(String::as_str);
            assert_eq!(got, expect, "{text:?}");
        }
        let all = bindings(["fax", "telegram", "pigeon"].into_iter(), &config).unwrap_err();
        assert_eq!(all.message, "Unknown channel \"fax\".\nUnknown channel \"pigeon\".");
    }
}
