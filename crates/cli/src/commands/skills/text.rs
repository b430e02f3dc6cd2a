//! Texts of `openclaw skills`.

use std::path::Path;

use openclaw_protocol::params::skills::{SkillNeeds, SkillStatus, SkillsStatusResult};

use super::Sorted;
use crate::context::CliContext;
use crate::output::{Column, Style, grid, width};

/// Pointer to more skills.
pub(super) const TIP: &str = "Tip: use `npx clawhub` to search, install, and sync skills.";
/// Symbol of a skill that names none.
const SYMBOL: &str = "\u{1f4e6}";

fn symbol(skill: &SkillStatus) -> &str {
    skill.emoji.as_deref().unwrap_or(SYMBOL)
}

/// Text of `skills list` where there are none: the places that are searched, and what a skill is.
pub(super) fn none(found: &SkillsStatusResult, context: &CliContext) -> Vec<String> {
    let short = |dir: &str| context.short(Path::new(dir));
    vec![
        "No skills found.".to_owned(),
        String::new(),
        "They are looked for in:".to_owned(),
        format!("- {} (this agent)", short(&format!("{}/skills", found.workspace_dir))),
        format!("- {} (all agents)", short(&found.managed_skills_dir)),
        "- the directories of skills.load.extraDirs".to_owned(),
        "A skill is a directory with a SKILL.md that says what it is for, and how it is done.".to_owned(),
        String::new(),
        TIP.to_owned(),
    ]
}

/// `skills list`.
pub(super) fn list(skills: &[&SkillStatus], verbose: bool, context: &CliContext) -> Vec<String> {
    const COLUMNS: [Column; 5] =
        [("Status", 10), ("Skill", 18), ("Description", 24), ("Source", 10), ("Missing", 18)];
    const DESCRIPTION: usize = 2;
    let ready = skills.iter().filter(|skill| skill.eligible).count();
    let rows: Vec<Vec<String>> = skills
        .iter()
        .map(|skill| {
            let mut row = vec![
                word(skill).to_owned(),
                format!("{} {}", symbol(skill), skill.name),
                skill.description.split_whitespace().collect::<Vec<_>>().join(" "),
                skill.source.clone(),
            ];
            row.extend(verbose.then(|| summary(&skill.missing)));
            row
        })
        .collect();
    let columns = COLUMNS.get(..if verbose { 5 } else { 4 }).unwrap_or(&COLUMNS);
    let title = format!(
        "{} {}",
        context.style.accent("Skills"),
        context.style.muted(&format!("({ready}/{} ready)", skills.len()))
    );
    let mut lines = vec![title];
    lines.extend(grid(columns, &rows, DESCRIPTION, width(context.env())));
    lines.extend([String::new(), TIP.to_owned()]);
    lines
}

fn word(skill: &SkillStatus) -> &'static str {
    match () {
        () if skill.eligible => "\u{2713} ready",
        () if skill.disabled => "\u{23f8} disabled",
        () if skill.blocked_by_allowlist => "\u{1f6ab} blocked",
        () => "\u{2717} missing",
    }
}

/// `skills info`.
pub(super) fn info(skill: &SkillStatus, context: &CliContext) -> Vec<String> {
    let style = context.style;
    let standing = match () {
        () if skill.eligible => style.success("\u{2713} Ready"),
        () if skill.disabled => style.warn("\u{23f8} Disabled"),
        () if skill.blocked_by_allowlist => style.warn("\u{1f6ab} Blocked by allowlist"),
        () => style.error("\u{2717} Missing requirements"),
    };
    let mut lines =
        vec![format!("{} {} {standing}", symbol(skill), style.accent(&skill.name)), String::new()];
    lines.extend(skill.description.lines().map(str::to_owned));
    lines.extend([String::new(), style.accent("Details:")]);
    let mut detail =
        |name: &str, value: &str| lines.push(format!("{} {value}", style.muted(&format!("  {name}:"))));
    detail("Source", &skill.source);
    detail("Path", &context.short(Path::new(&skill.file_path)));
    for (name, value) in [("Homepage", &skill.homepage), ("Primary env", &skill.primary_env)] {
        if let Some(value) = value {
            detail(name, value);
        }
    }
    if skill.skill_key != skill.name {
        detail("Config key", &skill.skill_key);
    }
    lines.extend(requirements(skill, style));
    if !skill.eligible && !skill.install.is_empty() {
        lines.extend([String::new(), style.accent("Install options:")]);
        lines.extend(
            skill.install.iter().map(|option| format!("  {} {}", style.warn("\u{2192}"), option.label)),
        );
    }
    lines.extend([String::new(), TIP.to_owned()]);
    lines
}

fn requirements(skill: &SkillStatus, style: Style) -> Vec<String> {
    let (wanted, missing) = (&skill.requirements, &skill.missing);
    let kinds = [
        ("Binaries", &wanted.bins, &missing.bins),
        ("Any binaries", &wanted.any_bins, &missing.any_bins),
        ("Environment", &wanted.env, &missing.env),
        ("Config", &wanted.config, &missing.config),
        ("OS", &wanted.os, &missing.os),
    ];
    let mark = |name: &String, missing: &[String]| {
        if missing.contains(name) {
            style.error(&format!("\u{2717} {name}"))
        } else {
            style.success(&format!("\u{2713} {name}"))
        }
    };
    let line = |(name, wanted, missing): (&str, &Vec<String>, &Vec<String>)| {
        let marked: Vec<String> = wanted.iter().map(|name| mark(name, missing)).collect();
        format!("{} {}", style.muted(&format!("  {name}:")), marked.join(", "))
    };
    let lines: Vec<String> =
        kinds.into_iter().filter(|(_, wanted, _)| !wanted.is_empty()).map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    [String::new(), style.accent("Requirements:")].into_iter().chain(lines).collect()
}

/// `skills check`.
pub(super) fn check(found: &SkillsStatusResult, context: &CliContext) -> Vec<String> {
    let style = context.style;
    let Sorted { eligible, disabled, blocked, missing } = Sorted::of(found);
    let count = |name: &str, number: usize| format!("{} {number}", style.muted(name));
    let mut lines = vec![
        style.accent("Skills Status Check"),
        String::new(),
        count("Total:", found.skills.len()),
        count("\u{2713} Eligible:", eligible.len()),
        count("\u{23f8} Disabled:", disabled.len()),
        count("\u{1f6ab} Blocked by allowlist:", blocked.len()),
        count("\u{2717} Missing requirements:", missing.len()),
    ];
    if !eligible.is_empty() {
        lines.extend([String::new(), style.accent("Ready to use:")]);
        lines.extend(eligible.iter().map(|skill| format!("  {} {}", symbol(skill), skill.name)));
    }
    if !missing.is_empty() {
        lines.extend([String::new(), style.accent("Missing requirements:")]);
        lines.extend(missing.iter().map(|skill| {
            let why = style.muted(&format!("({})", summary(&skill.missing)));
            format!("  {} {} {why}", symbol(skill), skill.name)
        }));
    }
    lines.extend([String::new(), TIP.to_owned()]);
    lines
}

/// Missing requirements, in one line.
fn summary(missing: &SkillNeeds) -> String {
    let kinds = [
        ("bins", &missing.bins),
        ("anyBins", &missing.any_bins),
        ("env", &missing.env),
        ("config", &missing.config),
        ("os", &missing.os),
    ];
    let some = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    some.map(|(kind, names)| format!("{kind}: {}", names.join(", "))).collect::<Vec<_>>().join("; ")
}
