//! Output of `openclaw approvals`.

use openclaw_protocol::params::approvals::ExecApprovalsFile;
use openclaw_tools::exec_approvals::file::{ApprovalsFile, Policy};
use openclaw_tools::exec_approvals::store::Loaded;

use crate::context::CliContext;
use crate::output::{Column, age, boxed, grid, width};

/// `{path,exists,hash,file}`, without the socket's token.
pub(super) fn document(loaded: &Loaded) -> ExecApprovalsFile {
    ExecApprovalsFile {
        path: loaded.path.display().to_string(),
        exists: loaded.exists,
        hash: loaded.hash.clone(),
        file: serde_json::to_value(loaded.file.redacted()).unwrap_or_default(),
    }
}

/// The file in tables.
pub(super) fn lines(context: &CliContext, label: &str, loaded: &Loaded, now_ms: i64) -> Vec<String> {
    let (style, width) = (context.style, width(context.env()));
    let entries = entries(&loaded.file, label, now_ms);
    let mut lines = vec![style.accent("Approvals")];
    lines.extend(boxed(["Field", "Value"], &summary(context, label, loaded, entries.len()), width));
    let settings = settings_of_agents(&loaded.file);
    if !settings.is_empty() {
        const COLUMNS: [Column; 2] = [("Agent", 10), ("Settings", 20)];
        const SETTINGS: usize = 1;
        lines.extend([String::new(), style.accent("Settings of agents")]);
        lines.extend(grid(&COLUMNS, &settings, SETTINGS, width));
    }
    lines.push(String::new());
    if entries.is_empty() {
        lines.push(style.muted("No allowlist entries."));
    } else {
        const COLUMNS: [Column; 4] = [("Target", 10), ("Agent", 8), ("Pattern", 20), ("Last Used", 10)];
        const PATTERN: usize = 2;
        lines.push(style.accent("Allowlist"));
        lines.extend(grid(&COLUMNS, &entries, PATTERN, width));
    }
    lines
}

fn summary(context: &CliContext, label: &str, loaded: &Loaded, entries: usize) -> Vec<(String, String)> {
    let file = &loaded.file;
    let rows = [
        ("Target", label.to_owned()),
        ("Path", context.short(&loaded.path)),
        ("Exists", if loaded.exists { "yes" } else { "no" }.to_owned()),
        ("Hash", loaded.hash.clone()),
        ("Version", file.version.to_string()),
        ("Socket", file.socket.path.clone().unwrap_or_else(|| "default".to_owned())),
        ("Defaults", said(&file.defaults).unwrap_or_else(|| "none".to_owned())),
        ("Agents", file.agents.len().to_string()),
        ("Allowlist", entries.to_string()),
    ];
    rows.map(|(field, value)| (field.to_owned(), value)).into()
}

/// The agents that say something else than `defaults`.
fn settings_of_agents(file: &ApprovalsFile) -> Vec<Vec<String>> {
    let rows = file.agents.iter();
    rows.filter_map(|(agent, rules)| Some(vec![agent.clone(), said(&rules.policy)?])).collect()
}

/// `security=deny, ask=always`; nothing where nothing is said.
fn said(policy: &Policy) -> Option<String> {
    let settings = [
        ("security", policy.security.map(|word| word.as_str())),
        ("ask", policy.ask.map(|word| word.as_str())),
        ("askFallback", policy.ask_fallback.map(|word| word.as_str())),
        ("autoAllowSkills", policy.auto_allow_skills.map(|is_on| if is_on { "on" } else { "off" })),
    ];
    let said: Vec<String> =
        settings.into_iter().filter_map(|(name, word)| Some(format!("{name}={}", word?))).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn entries(file: &ApprovalsFile, label: &str, now_ms: i64) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (agent, rules) in &file.agents {
        for entry in rules.allowlist.iter().filter(|entry| !entry.pattern.trim().is_empty()) {
            let used = entry.last_used_at.as_ref().and_then(milliseconds);
            let used = used.map_or_else(|| "never".to_owned(), |at| age(now_ms.saturating_sub(at)));
            rows.push(vec![label.to_owned(), agent.clone(), entry.pattern.trim().to_owned(), used]);
        }
    }
    rows
}

/// Whole milliseconds; the file may hold a fraction.
fn milliseconds(number: &serde_json::Number) -> Option<i64> {
    let text = number.to_string();
    text.split('.').next()?.parse().ok()
}
