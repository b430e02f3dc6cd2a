//! Report of the doctor, for people and as one document.

use std::path::PathBuf;

use openclaw_gateway::RunningGateway;
use openclaw_sessions::checkup::{Finding, Repair, Severity};
use serde_json::{Value, json};

use crate::context::CliContext;
use crate::output;

/// Line of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DoctorCheck {
    pub(super) finding: Finding,
    pub(super) is_fixed: bool,
    /// Reason why it could not be fixed.
    pub(super) failure: Option<String>,
}

/// Contents of the doctor's report.
#[derive(Debug)]
pub(super) struct DoctorReport {
    pub(super) checks: Vec<DoctorCheck>,
    pub(super) notes: Vec<String>,
    /// Things that are as they should be, or that nobody has set up yet, as sentences.
    pub(super) facts: Vec<String>,
    pub(super) running: Option<RunningGateway>,
    pub(super) backup: Option<PathBuf>,
    pub(super) is_fix: bool,
    /// True if a repair failed.
    pub(super) has_failed: bool,
}

/// Returns the findings that were fixed, in their former order, then those that are left.
pub(super) fn checks(
    before: &[Finding],
    after: &[Finding],
    failures: &[(Repair, String)],
) -> Vec<DoctorCheck> {
    let fixed = before.iter().filter(|finding| !after.iter().any(|left| left.id == finding.id));
    let fixed = fixed.map(|finding| DoctorCheck { finding: finding.clone(), is_fixed: true, failure: None });
    let left = after.iter().map(|finding| {
        let failed = failures.iter().find(|(repair, _)| finding.repairs.contains(repair));
        DoctorCheck { finding: finding.clone(), is_fixed: false, failure: failed.map(|(_, why)| why.clone()) }
    });
    fixed.chain(left).collect()
}

/// Headings by the first part of an id, in the order of the report.
const SECTIONS: &[(&str, &[&str])] = &[
    ("Config", &["config"]),
    ("State integrity", &["state", "sessions", "agent", "credentials", "models", "workspace", "approvals"]),
    ("State of older versions", &["old"]),
    ("Session stores", &["store"]),
    ("Transcripts", &["transcript", "transcripts"]),
    ("Left behind", &["lock", "files"]),
    ("Database", &["database"]),
    ("Devices", &["devices", "identity"]),
    ("Security", &["security"]),
    ("Gateway", &["gateway"]),
    ("Sandbox", &["sandbox"]),
    ("Model", &["model"]),
    ("Memory", &["memory"]),
    ("Channels", &["channels"]),
    ("Not in this version", &["absent"]),
];

impl DoctorReport {
    /// 0, unless a repair failed, or `--check` finds that errors remain.
    pub(super) fn exit(&self, is_check: bool) -> u8 {
        let is_error = |check: &DoctorCheck| !check.is_fixed && check.finding.severity == Severity::Error;
        u8::from(self.has_failed || (is_check && self.checks.iter().any(is_error)))
    }

    /// True if nothing is left that anybody has to do something about.
    fn is_in_order(&self) -> bool {
        self.checks.iter().all(|check| check.is_fixed || check.finding.severity == Severity::Info)
    }

    pub(super) fn print_json(&self, exit: u8) {
        output::json(&self.document(exit));
    }

    pub(super) fn document(&self, exit: u8) -> Value {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|check| {
                json!({
                    "id": check.finding.id,
                    "severity": check.finding.severity.as_str(),
                    "message": message(check),
                    "fixable": !check.finding.repairs.is_empty(),
                    "fixed": check.is_fixed,
                })
            })
            .collect();
        let mut document = json!({"checks": checks, "exit": exit});
        if let Some(out) = document.as_object_mut() {
            if let Some(running) = self.running {
                out.insert("gateway".to_owned(), json!({"running": true, "pid": running.pid}));
            }
            if let Some(backup) = &self.backup {
                out.insert("backup".to_owned(), json!(backup.display().to_string()));
            }
            if !self.facts.is_empty() {
                out.insert("facts".to_owned(), json!(self.facts));
            }
            if !self.notes.is_empty() {
                out.insert("notes".to_owned(), json!(self.notes));
            }
        }
        document
    }

    pub(super) fn print_text(&self, context: &CliContext) {
        self.lines(context).iter().for_each(|line| output::row(line));
    }

    pub(super) fn lines(&self, context: &CliContext) -> Vec<String> {
        let style = context.style;
        let mut lines = vec![style.accent("OpenClaw doctor")];
        lines.extend(self.notes.iter().cloned());
        for (title, parts) in SECTIONS {
            let belongs = |check: &&DoctorCheck| {
                parts.contains(&check.finding.id.split('.').next().unwrap_or_default())
            };
            let mut checks = self.checks.iter().filter(belongs).peekable();
            if checks.peek().is_some() {
                lines.extend([String::new(), style.accent(title)]);
                lines.extend(
                    checks.flat_map(|check| in_lines(check, format!("- {}", painted(check, context)))),
                );
            }
        }
        lines.push(String::new());
        if self.is_in_order() {
            lines.push(style.success("State is in order."));
        }
        lines.extend(self.facts.iter().cloned());
        lines.extend(self.next_steps(context));
        lines.push("Doctor complete.".to_owned());
        lines
    }

    /// Next steps for the person.
    fn next_steps(&self, context: &CliContext) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(backup) = &self.backup {
            lines.push(format!(
                "What was changed is kept in {} (manifest.jsonl says what was where).",
                context.short(backup)
            ));
        }
        let left: Vec<&DoctorCheck> = self.checks.iter().filter(|check| !check.is_fixed).collect();
        let fixable = left.iter().filter(|check| !check.finding.repairs.is_empty()).count();
        let needs_stop = left
            .iter()
            .flat_map(|check| &check.finding.repairs)
            .any(|repair| !repair.is_safe_beside_a_gateway());
        let command = context.hint_command("openclaw doctor --fix");
        match self.running {
            Some(running) if needs_stop => {
                let pid = running.pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
                lines.push(format!(
                    "A gateway{pid} has this state directory: stop it, then run \"{command}\" to repair the rest."
                ));
            }
            Some(_) | None if fixable == left.len() && fixable > 0 && !self.is_fix => {
                lines.push(format!("Run \"{command}\" to apply changes."));
            }
            Some(_) | None if fixable > 0 && !self.is_fix => {
                lines.push(format!(
                    "Run \"{command}\" to repair {fixable} of these {}; the rest is for you to do.",
                    left.len()
                ));
            }
            Some(_) | None => {}
        }
        lines
    }
}

/// The lines of a check: each mistake of a config has one. A line feed in any other text is somebody else's.
fn in_lines(check: &DoctorCheck, text: String) -> Vec<String> {
    if matches!(check.finding.id, "config.invalid" | "config.unreadable") {
        text.lines().map(str::to_owned).collect()
    } else {
        vec![text]
    }
}

fn message(check: &DoctorCheck) -> String {
    match &check.failure {
        Some(failure) => format!("{} Could not be repaired: {failure}.", check.finding.message),
        None => check.finding.message.clone(),
    }
}

fn painted(check: &DoctorCheck, context: &CliContext) -> String {
    let text = message(check);
    let style = context.style;
    match (check.is_fixed, check.finding.severity) {
        (true, _) => format!("{text} {}", style.success("Fixed.")),
        (false, Severity::Error) => style.error(&text),
        (false, Severity::Warning) => style.warn(&text),
        (false, Severity::Info) => text,
    }
}
