//! `openclaw agents set-identity`.

use std::path::{Path, PathBuf};

use openclaw_agent::identity::Identity as IdentityFile;
use openclaw_agent::place::{Head, PlaceError};
use openclaw_agent::{roster, workspace_file};
use openclaw_config::Config;
use openclaw_config::settings::Identity;
use openclaw_config::write::Actor;
use openclaw_protocol::AgentId;
use serde::Serialize;

use super::{failure, not_found};
use crate::args::{AgentsSetIdentityArgs, given, given_text};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// A file that is larger is not read.
const MAX_BYTES: u64 = 64 * 1024;

/// The result, keys in the order of the reference.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    agent_id: String,
    identity: Identity,
    workspace: Option<String>,
    identity_file: Option<String>,
}

pub(super) fn run(args: &AgentsSetIdentityArgs, context: &CliContext) -> CommandResult {
    let config = context.config()?;
    let explicit = explicit(args);
    let place = IdentitySource::of(args, &explicit, config, context)?;
    let is_named = given(args.identity_file.as_deref()).is_some();
    let workspace = place.workspace.as_deref().filter(|_| !is_named);
    let from_file = match &place.file {
        Some(file) => read(file, workspace, context)?,
        None => Identity::default(),
    };
    let wanted = Identity {
        name: explicit.name.or(from_file.name),
        theme: explicit.theme.or(from_file.theme),
        emoji: explicit.emoji.or(from_file.emoji),
        avatar: explicit.avatar.or(from_file.avatar),
    };
    openclaw_gateway::keep_files_private();
    let whole = roster::set_identity(&context.loaded, &place.agent, &wanted, Actor::Cli)
        .map_err(|error| failure(error, context))?;
    report(args.json, place, whole, context);
    Ok(0)
}

fn explicit(args: &AgentsSetIdentityArgs) -> Identity {
    Identity {
        name: given_text(&args.name),
        theme: given_text(&args.theme),
        emoji: given_text(&args.emoji),
        avatar: given_text(&args.avatar),
    }
}

/// Agent whose identity is set, and the file it is read from.
#[derive(Debug, PartialEq, Eq)]
struct IdentitySource {
    agent: AgentId,
    workspace: Option<PathBuf>,
    file: Option<PathBuf>,
}

impl IdentitySource {
    fn of(
        args: &AgentsSetIdentityArgs,
        explicit: &Identity,
        config: &Config,
        context: &CliContext,
    ) -> Result<Self, CommandFailure> {
        let path = |text: &Option<String>| given(text.as_deref()).map(|text| context.env().expand_path(text));
        let named_file = path(&args.identity_file);
        let reads_file = args.from_identity || named_file.is_some() || *explicit == Identity::default();
        let agent = match given(args.agent.as_deref()) {
            Some(text) => Some(configured(text, config)?),
            None => None,
        };
        let beside = || named_file.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let own = || agent.as_ref().filter(|_| reads_file).map(|id| config.agent(id).workspace);
        let here = || agent.is_none().then(|| context.env().expand_path("."));
        let workspace = path(&args.workspace).or_else(beside).or_else(own).or_else(here);
        let file = reads_file
            .then(|| named_file.clone().or_else(|| workspace.as_ref().map(|dir| dir.join("IDENTITY.md"))));
        let agent = match (agent, &workspace) {
            (Some(agent), _) => agent,
            (None, Some(dir)) => at(dir, config, context)?,
            (None, None) => {
                return Err(CommandFailure::usage("Say which agent with --agent or --workspace."));
            }
        };
        Ok(Self { agent, workspace, file: file.flatten() })
    }
}

fn configured(text: &str, config: &Config) -> Result<AgentId, CommandFailure> {
    let id = AgentId::normalize(text);
    if config.has_agent(&id) { Ok(id) } else { Err(not_found(text)) }
}

/// The agent whose workspace this is.
fn at(dir: &Path, config: &Config, context: &CliContext) -> Result<AgentId, CommandFailure> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let wanted = real(dir);
    let mut found = config.agent_ids();
    found.retain(|id| real(&config.agent(id).workspace) == wanted);
    match found.as_slice() {
        [agent] => Ok(agent.clone()),
        [] => Err(CommandFailure::new(
            "agent-not-found",
            format!("No agent has the workspace {}.", context.short(dir)),
        )
        .hint("Say which agent with --agent <id>.")),
        several => {
            let names = several.iter().map(AgentId::as_str).collect::<Vec<_>>().join(", ");
            let text = format!("Several agents have the workspace {}: {names}.", context.short(dir));
            Err(CommandFailure::new("agent-ambiguous", text).hint("Say which agent with --agent <id>."))
        }
    }
}

fn read(file: &Path, workspace: Option<&Path>, context: &CliContext) -> Result<Identity, CommandFailure> {
    let failed = |why: &str| CommandFailure::new("identity-file", format!("{}: {why}", context.short(file)));
    let text = match head(file, workspace) {
        Ok(Some(head)) if head.is_cut => {
            return Err(failed("it is larger than 64 KiB").hint("Name a smaller file with --identity-file."));
        }
        Ok(Some(head)) => String::from_utf8_lossy(&head.bytes).into_owned(),
        Ok(None) => String::new(),
        Err(error) => {
            let hint = "Put a regular file there, or pass --name, --theme, --emoji or --avatar.";
            return Err(failed(&workspace_file::why(&error)).hint(hint));
        }
    };
    let found = IdentityFile::parse(&text);
    let identity = Identity {
        name: found.name,
        theme: found.theme.or(found.creature).or(found.vibe),
        emoji: found.emoji,
        avatar: found.avatar,
    };
    if identity == Identity::default() {
        return Err(CommandFailure::new(
            "identity-file",
            format!("No identity data found in {}.", context.short(file)),
        )
        .hint("Pass --name, --theme, --emoji or --avatar, or fill in the file."));
    }
    Ok(identity)
}

/// The beginning of the file: a pipe or a device would keep the command for ever. A file of a
/// workspace must not be a link elsewhere, for the agent may have made it; a file that the owner
/// named may be one.
fn head(file: &Path, workspace: Option<&Path>) -> Result<Option<Head>, PlaceError> {
    let real = match workspace {
        Some(_) => file.to_owned(),
        None => match file.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        },
    };
    let (Some(dir), Some(name)) = (real.parent(), real.file_name().and_then(|name| name.to_str())) else {
        return Err(PlaceError::NotAFile(real.display().to_string()));
    };
    workspace_file::read(dir, name, MAX_BYTES)
}

fn report(json: bool, place: IdentitySource, whole: Identity, context: &CliContext) {
    if json {
        output::json(&Changed {
            agent_id: place.agent.to_string(),
            identity: whole,
            workspace: place.workspace.map(|dir| dir.display().to_string()),
            identity_file: place.file.map(|file| file.display().to_string()),
        });
        return;
    }
    output::line(&format!("Agent: {}", place.agent));
    let fields =
        [("Name", whole.name), ("Theme", whole.theme), ("Emoji", whole.emoji), ("Avatar", whole.avatar)];
    for (label, text) in fields.into_iter().filter_map(|(label, text)| text.map(|text| (label, text))) {
        output::line(&format!("  {label}: {text}"));
    }
    if let Some(file) = place.file {
        output::line(&format!("  From: {}", context.short(&file)));
    }
}
