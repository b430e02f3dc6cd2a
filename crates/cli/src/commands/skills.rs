//! `openclaw skills list|info|check`: the skills of the default agent, read from the disk (spec `cli.md` §10). No gateway is
//! needed.

mod text;

use openclaw_agent::skills::status::status;
use openclaw_protocol::params::skills::{SkillInstallOption, SkillNeeds, SkillStatus, SkillsStatusResult};
use serde::Serialize;

use crate::args::{SkillsArgs, SkillsCommand};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

pub(super) fn run(args: &SkillsArgs, context: &CliContext) -> CommandResult {
    let config = context.config()?;
    context.print_warnings_about(&["skills"]);
    let found = status(config, &config.agent(&config.default_agent()).workspace);
    match &args.command {
        None => list(&found, Printed::Text { verbose: false }, SkillFilter::All, context),
        Some(SkillsCommand::List { json, eligible, verbose }) => {
            let printed = if *json { Printed::Json } else { Printed::Text { verbose: *verbose } };
            list(&found, printed, if *eligible { SkillFilter::Eligible } else { SkillFilter::All }, context)
        }
        Some(SkillsCommand::Info { name, json }) => return info(&found, name, *json, context),
        Some(SkillsCommand::Check { json: true }) => output::json(&SkillCheck::of(&found)),
        Some(SkillsCommand::Check { json: false }) => print(&text::check(&found, context)),
    }
    Ok(0)
}

#[derive(Debug, Clone, Copy)]
enum Printed {
    Json,
    Text { verbose: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkillFilter {
    All,
    Eligible,
}

fn print(lines: &[String]) {
    lines.iter().for_each(|line| output::row(line));
}

fn list(found: &SkillsStatusResult, printed: Printed, which: SkillFilter, context: &CliContext) {
    let is_wanted = |skill: &&SkillStatus| which == SkillFilter::All || skill.eligible;
    let skills: Vec<&SkillStatus> = found.skills.iter().filter(is_wanted).collect();
    match printed {
        Printed::Json => output::json(&SkillList {
            workspace_dir: &found.workspace_dir,
            managed_skills_dir: &found.managed_skills_dir,
            skills: skills.into_iter().map(ListRow::of).collect(),
        }),
        Printed::Text { .. } if skills.is_empty() && which == SkillFilter::Eligible => {
            let all = context.hint_command("openclaw skills list");
            print(&[
                format!("No eligible skills found. Run `{all}` to see all skills."),
                String::new(),
                text::TIP.to_owned(),
            ]);
        }
        Printed::Text { .. } if skills.is_empty() => print(&text::none(found, context)),
        Printed::Text { verbose } => print(&text::list(&skills, verbose, context)),
    }
}

fn info(found: &SkillsStatusResult, name: &str, json: bool, context: &CliContext) -> CommandResult {
    let is_meant = |skill: &&SkillStatus| skill.name == name || skill.skill_key == name;
    let Some(skill) = found.skills.iter().find(is_meant) else {
        let all = context.hint_command("openclaw skills list");
        return Err(CommandFailure::new("skill-not-found", format!("Skill \"{name}\" not found."))
            .hint(format!("Run `{all}` to see available skills.")));
    };
    if json {
        output::json(skill);
    } else {
        print(&text::info(skill, context));
    }
    Ok(0)
}

/// `skills list --json`, keys in the order of the reference.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SkillList<'a> {
    workspace_dir: &'a str,
    managed_skills_dir: &'a str,
    skills: Vec<ListRow<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListRow<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    emoji: Option<&'a str>,
    eligible: bool,
    disabled: bool,
    blocked_by_allowlist: bool,
    source: &'a str,
    bundled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_env: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<&'a str>,
    missing: &'a SkillNeeds,
}

impl<'a> ListRow<'a> {
    fn of(skill: &'a SkillStatus) -> Self {
        Self {
            name: &skill.name,
            description: &skill.description,
            emoji: skill.emoji.as_deref(),
            eligible: skill.eligible,
            disabled: skill.disabled,
            blocked_by_allowlist: skill.blocked_by_allowlist,
            source: &skill.source,
            bundled: skill.bundled,
            primary_env: skill.primary_env.as_deref(),
            homepage: skill.homepage.as_deref(),
            missing: &skill.missing,
        }
    }
}

/// `skills check --json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SkillCheck<'a> {
    summary: SkillCounts,
    eligible: Vec<&'a str>,
    disabled: Vec<&'a str>,
    blocked: Vec<&'a str>,
    missing_requirements: Vec<CheckRow<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SkillCounts {
    total: usize,
    eligible: usize,
    disabled: usize,
    blocked: usize,
    missing_requirements: usize,
}

#[derive(Debug, Serialize)]
struct CheckRow<'a> {
    name: &'a str,
    missing: &'a SkillNeeds,
    install: &'a [SkillInstallOption],
}

/// The skills by what keeps them from being used.
struct Sorted<'a> {
    eligible: Vec<&'a SkillStatus>,
    disabled: Vec<&'a SkillStatus>,
    blocked: Vec<&'a SkillStatus>,
    missing: Vec<&'a SkillStatus>,
}

impl<'a> Sorted<'a> {
    fn of(found: &'a SkillsStatusResult) -> Self {
        let of = |is_so: fn(&SkillStatus) -> bool| found.skills.iter().filter(|skill| is_so(skill)).collect();
        Self {
            eligible: of(|skill| skill.eligible),
            disabled: of(|skill| skill.disabled),
            blocked: of(|skill| skill.blocked_by_allowlist && !skill.disabled),
            missing: of(|skill| !skill.eligible && !skill.disabled && !skill.blocked_by_allowlist),
        }
    }
}

impl<'a> SkillCheck<'a> {
    fn of(found: &'a SkillsStatusResult) -> Self {
        let Sorted { eligible, disabled, blocked, missing } = Sorted::of(found);
        let names = |skills: &[&'a SkillStatus]| skills.iter().map(|skill| skill.name.as_str()).collect();
        let row = |skill: &&'a SkillStatus| CheckRow {
            name: &skill.name,
            missing: &skill.missing,
            install: &skill.install,
        };
        Self {
            summary: SkillCounts {
                total: found.skills.len(),
                eligible: eligible.len(),
                disabled: disabled.len(),
                blocked: blocked.len(),
                missing_requirements: missing.len(),
            },
            eligible: names(&eligible),
            disabled: names(&disabled),
            blocked: names(&blocked),
            missing_requirements: missing.iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
