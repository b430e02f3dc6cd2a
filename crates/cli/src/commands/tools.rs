//! `openclaw tools explain`: which tools a run has, by the same rules as the run itself. Reads the config and the stored session; no
//! gateway is needed.

use std::sync::Arc;

use openclaw_config::Config;
use openclaw_gateway::platforms;
use openclaw_models::ModelRef;
use openclaw_protocol::{AgentId, SessionKey};
use openclaw_runtime::tool_access::{Access, Explanation, RunOf, ToolAccess, explain, unknown_names};
use openclaw_sessions::store::read_row;
use openclaw_sessions::{SessionEntry, SessionSettings};
use openclaw_tools::CATALOGUE;
use serde::Serialize;

use super::default_models::DefaultModels;
use crate::args::{ToolsArgs, ToolsCommand, ToolsExplainArgs};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output::{self, Column, Style, grid, width};

pub(super) fn run(args: &ToolsArgs, context: &CliContext) -> CommandResult {
    let ToolsCommand::Explain(args) = &args.command;
    let config = context.config()?;
    context.print_warnings_about(&["tools"]);
    let (agent, session) = place(context, config, args)?;
    let (session, entry) = stored(config, &agent, session)?;
    let models = DefaultModels::load(config, context.env());
    let model = match args.model.as_deref() {
        Some(text) => named_model(text)?,
        None => models.next_of(&agent, &entry),
    };
    let is_owner = args.sender != "other";
    let resolved = config.agent(&agent);
    let (provider, name) = (model.provider.as_str(), model.model.as_str());
    let run = RunOf {
        config,
        agent: &resolved,
        provider,
        model: name,
        session: &session,
        is_owner,
        has_image_model: models.have_eyes(&agent),
    };
    let mut explanation = explain(run, &entry, &platforms());
    if let Some(tool) = &args.tool {
        keep_only(&mut explanation, tool)?;
    }
    let warnings: Vec<String> = unknown_names(config).iter().map(ToString::to_string).collect();
    let report = ToolListing::of(&agent, &session, &model, &explanation, &warnings);
    for warning in &warnings {
        output::error_line(&context.style.warn(warning));
    }
    if args.json {
        output::json(&report);
    } else {
        report.lines(context.style, width(context.env())).iter().for_each(|line| output::row(line));
    }
    Ok(0)
}

/// The agent and the session that are meant.
fn place(
    context: &CliContext,
    config: &Config,
    args: &ToolsExplainArgs,
) -> Result<(AgentId, SessionKey), CommandFailure> {
    let rules = SessionSettings::from(config).key_rules();
    let asked = args.agent.as_deref();
    let Some(text) = args.session.as_deref() else {
        let agent = context.agent(asked)?;
        let session = rules.main(&agent);
        return Ok((agent, session));
    };
    let named = context.agent(asked)?;
    let session = rules
        .canonical_for(text, &named)
        .map_err(|error| CommandFailure::usage(format!("--session: {error}")))?;
    // A key that names no agent belongs to the one that is asked for.
    let owner = session.agent_or(&named);
    if asked.is_some() && owner != named {
        return Err(CommandFailure::usage(format!(
            "Session \"{session}\" belongs to agent \"{owner}\", not to \"{named}\"."
        ))
        .hint("Leave --agent out, or name another session."));
    }
    Ok((context.agent(Some(owner.as_str()))?, session))
}

/// The session as its row names it, and the row; one that does not exist yet says nothing.
fn stored(
    config: &Config,
    agent: &AgentId,
    session: SessionKey,
) -> Result<(SessionKey, SessionEntry), CommandFailure> {
    let (store, rules) = (config.session_store(agent), SessionSettings::from(config).key_rules());
    let found = read_row(&store, agent, &rules, &session).map_err(|error| {
        CommandFailure::new("store", format!("could not read {}: {error}", store.display()))
    })?;
    Ok(match found {
        Some((key, entry)) => (session.spelled_as(&Arc::from(key)), Arc::unwrap_or_clone(entry)),
        None => (session, SessionEntry::default()),
    })
}

fn named_model(text: &str) -> Result<ModelRef, CommandFailure> {
    let is_whole = text.contains('/');
    ModelRef::parse(text, "").filter(|_| is_whole).ok_or_else(|| {
        CommandFailure::usage(format!("--model \"{text}\" is no provider/model")).hint(
            "For example --model openai/gpt-5.2; `openclaw models list` shows those that are configured.",
        )
    })
}

/// Keeps only one tool, by any name that a policy takes for it.
fn keep_only(explanation: &mut Explanation, tool: &str) -> Result<(), CommandFailure> {
    let name = CATALOGUE.canonical_name(tool);
    explanation.tools.retain(|found| found.name == name);
    if explanation.tools.is_empty() {
        return Err(CommandFailure::new("unknown-tool", format!("There is no tool \"{tool}\"."))
            .hint("Run `openclaw tools explain` without --tool for all of them."));
    }
    Ok(())
}

/// Report to print.
#[derive(Debug, Serialize)]
struct ToolListing<'a> {
    agent: &'a str,
    session: &'a str,
    model: String,
    tools: Vec<ListedTool<'a>>,
    warnings: &'a [String],
}

#[derive(Debug, Serialize)]
struct ListedTool<'a> {
    name: &'a str,
    offered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<ToolAbsence>,
}

/// Reason why a run does not have a tool.
#[derive(Debug, Serialize)]
struct ToolAbsence {
    kind: &'static str,
    /// Place of the rule in the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    text: String,
}

impl ToolAbsence {
    fn of(access: &Access) -> Option<Self> {
        match access {
            Access::Offered => None,
            Access::Absent(absence) => {
                Some(Self { kind: absence.kind(), rule: absence.setting(), text: absence.to_string() })
            }
            Access::Removed(removal) => {
                Some(Self { kind: removal.kind(), rule: removal.step(), text: removal.to_string() })
            }
        }
    }
}

impl<'a> ToolListing<'a> {
    fn of(
        agent: &'a AgentId,
        session: &'a SessionKey,
        model: &ModelRef,
        found: &'a Explanation,
        warnings: &'a [String],
    ) -> Self {
        let row = |tool: &'a ToolAccess| ListedTool {
            name: tool.name,
            offered: tool.access == Access::Offered,
            reason: ToolAbsence::of(&tool.access),
        };
        Self {
            agent: agent.as_str(),
            session: session.spelled(),
            model: model.to_string(),
            tools: found.tools.iter().map(row).collect(),
            warnings,
        }
    }

    fn lines(&self, style: Style, width: usize) -> Vec<String> {
        const COLUMNS: [Column; 3] = [("Tool", 18), ("Offered", 9), ("Why", 24)];
        const WHY: usize = 2;
        let row = |row: &ListedTool<'_>| {
            let why = row.reason.as_ref().map_or("every rule keeps it", |reason| reason.text.as_str());
            vec![row.name.to_owned(), if row.offered { "yes" } else { "no" }.to_owned(), why.to_owned()]
        };
        let rows: Vec<Vec<String>> = self.tools.iter().map(row).collect();
        let mut lines = vec![
            style.accent("Tools of a run"),
            format!("Agent:   {}", self.agent),
            format!("Session: {}", self.session),
            format!("Model:   {}", self.model),
        ];
        lines.extend(grid(&COLUMNS, &rows, WHY, width));
        lines
    }
}
