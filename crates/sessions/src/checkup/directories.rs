//! Directories that must be there, and other state directories that must not.

use std::io;
use std::path::{Path, PathBuf};

use super::{Finding, Premises, Repair, Severity, finding};

/// Names that state directories had over time, newest first (spec `config.md` §1.2).
const STATE_DIR_NAMES: &[&str] = &[".openclaw", ".clawdbot", ".moltbot", ".moldbot"];

/// A directory that has to be there.
pub struct RequiredDir {
    id: &'static str,
    what: &'static str,
    /// The directory.
    pub path: PathBuf,
}

/// The directories that a state directory in order has.
pub fn wanted_directories(premises: &Premises) -> Vec<RequiredDir> {
    let state = &premises.state;
    let wanted = |id, what, path| RequiredDir { id, what, path };
    let mut all =
        vec![wanted("state.dir-missing", "State directory", state.layout.state_dir().to_path_buf())];
    if premises.is_configured {
        let sessions = state.layout.sessions_dir(&state.rules.default_agent);
        all.push(wanted("sessions.dir-missing", "Session store dir", sessions));
        all.push(wanted("agent.dir-missing", "Agent dir", state.agent_dir.clone()));
    }
    all.push(wanted("credentials.dir-missing", "OAuth dir", state.credentials_dir.clone()));
    all
}

pub(super) fn check(premises: &Premises, found: &mut Vec<Finding>) -> io::Result<()> {
    for RequiredDir { id, what, path } in wanted_directories(premises) {
        if !path.is_dir() {
            let message = format!("CRITICAL: {what} missing ({}).", path.display());
            found.push(finding(id, Severity::Error, message, vec![Repair::MakeDir(path)]));
        }
    }
    check_others(premises, found);
    Ok(())
}

/// State in more than one place: half of a conversation may be in the other.
fn check_others(premises: &Premises, found: &mut Vec<Finding>) {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let own = resolved(premises.state.layout.state_dir());
    let is_of_home = own.parent() == Some(&*resolved(&premises.home))
        && own.file_name().is_some_and(|name| STATE_DIR_NAMES.iter().any(|known| name == *known));
    if !is_of_home {
        // A directory that was chosen is one of several by intention.
        return;
    }
    let others: Vec<PathBuf> = STATE_DIR_NAMES
        .iter()
        .map(|name| premises.home.join(name))
        .filter(|dir| dir.is_dir() && resolved(dir) != own && holds_state(dir))
        .collect();
    if !others.is_empty() {
        let list: Vec<String> = others.iter().map(|dir| dir.display().to_string()).collect();
        let message = format!(
            "Several state directories: {} is in use, {} too hold state. Merge what you need, then rename the others.",
            premises.state.layout.state_dir().display(),
            list.join(" and "),
        );
        found.push(finding("state.several", Severity::Warning, message, Vec::new()));
    }
}

fn holds_state(dir: &Path) -> bool {
    let names = [
        "openclaw.json",
        "clawdbot.json",
        "moltbot.json",
        "moldbot.json",
        "agents",
        "sessions",
        "credentials",
    ];
    names.iter().any(|name| dir.join(name).exists())
}
