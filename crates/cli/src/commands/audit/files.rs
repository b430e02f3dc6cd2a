//! Audit of the state's files: modes that let other users read or write them.

use std::path::{Path, PathBuf};

use openclaw_config::Config;

use super::{AuditFinding, Severity};
use crate::commands::logs::log_file;
use crate::context::CliContext;

/// Mode bits, id of the check, severity and title. The first row any of whose bits are set in a mode counts.
type ModeRule = (u32, &'static str, Severity, &'static str);

/// Files that are checked in the same way.
struct FileClass {
    rows: &'static [ModeRule],
    /// Reason why it matters.
    advice: &'static str,
    /// Mode that it should have.
    least: u32,
}

const STATE_DIR: FileClass = FileClass {
    rows: &[
        (0o002, "fs.state_dir.perms_world_writable", Severity::Critical, "State dir is world-writable"),
        (0o020, "fs.state_dir.perms_group_writable", Severity::Warn, "State dir is group-writable"),
        (0o055, "fs.state_dir.perms_readable", Severity::Warn, "State dir is readable by others"),
    ],
    advice: "consider restricting to 700",
    least: 0o700,
};
const CONFIG: FileClass = FileClass {
    rows: &[
        (0o022, "fs.config.perms_writable", Severity::Critical, "Config file is writable by others"),
        (0o004, "fs.config.perms_world_readable", Severity::Critical, "Config file is world-readable"),
        (0o040, "fs.config.perms_group_readable", Severity::Warn, "Config file is group-readable"),
    ],
    advice: "config can contain tokens and private settings",
    least: 0o600,
};
const INCLUDED: FileClass = FileClass {
    rows: &[
        (
            0o022,
            "fs.config_include.perms_writable",
            Severity::Critical,
            "Included config file is writable by others",
        ),
        (
            0o004,
            "fs.config_include.perms_world_readable",
            Severity::Critical,
            "Included config file is world-readable",
        ),
        (
            0o040,
            "fs.config_include.perms_group_readable",
            Severity::Warn,
            "Included config file is group-readable",
        ),
    ],
    advice: "it is part of the config, which can contain tokens and private settings",
    least: 0o600,
};
const BACKUP: FileClass = FileClass {
    rows: &[(0o066, "fs.config_backup.secrets", Severity::Critical, "Copy of the config is open to others")],
    advice: "it has the tokens that the config had",
    least: 0o600,
};
const CREDENTIALS: FileClass = FileClass {
    rows: &[
        (
            0o022,
            "fs.credentials_dir.perms_writable",
            Severity::Critical,
            "Credentials dir is writable by others",
        ),
        (0o044, "fs.credentials_dir.perms_readable", Severity::Warn, "Credentials dir is readable by others"),
    ],
    advice: "who may write there lets people in; who may read has what is in it",
    least: 0o700,
};
const PROFILES: FileClass = FileClass {
    rows: &[
        (
            0o022,
            "fs.auth_profiles.perms_writable",
            Severity::Critical,
            "auth-profiles.json is writable by others",
        ),
        (
            0o044,
            "fs.auth_profiles.perms_readable",
            Severity::Warn,
            "auth-profiles.json is readable by others",
        ),
    ],
    advice: "it has the keys of model providers",
    least: 0o600,
};
const SESSIONS: FileClass = FileClass {
    rows: &[(
        0o044,
        "fs.sessions_store.perms_readable",
        Severity::Warn,
        "sessions.json is readable by others",
    )],
    advice: "it tells who talks with the agent",
    least: 0o600,
};
const LOG: FileClass = FileClass {
    rows: &[(0o044, "fs.log_file.perms_readable", Severity::Warn, "Log file is readable by others")],
    advice: "logs can contain private messages and tool output",
    least: 0o600,
};

/// Folders that programs copy to other machines.
const SYNCED: [&str; 6] =
    ["Mobile Documents", "iCloud Drive", "Dropbox", "Google Drive", "GoogleDrive", "OneDrive"];

/// A file or directory whose mode lets others in.
pub(super) struct OpenToOthers {
    pub(super) path: PathBuf,
    /// Mode that it should have.
    pub(super) least: u32,
    finding: AuditFinding,
}

pub(super) fn findings(context: &CliContext, config: &Config) -> Vec<AuditFinding> {
    let paths = context.paths();
    let links = [
        (paths.state_dir(), "fs.state_dir.symlink", "State dir is a symlink"),
        (paths.config_path(), "fs.config.symlink", "Config file is a symlink"),
    ];
    let links = links.into_iter().filter(|(path, ..)| path.is_symlink());
    let links = links.map(|(path, id, title)| {
        let detail =
            format!("{} leads elsewhere: who may write there decides about this file.", path.display());
        AuditFinding::new(id, Severity::Warn, title, detail)
    });
    synced(context)
        .into_iter()
        .chain(links)
        .chain(open_to_others(context, config).into_iter().map(|open| open.finding))
        .collect()
}

fn synced(context: &CliContext) -> Option<AuditFinding> {
    let paths = [context.paths().state_dir(), context.paths().config_path()];
    let is_synced = |path: &&Path| {
        path.components().any(|part| {
            let name = part.as_os_str().to_string_lossy();
            SYNCED.iter().any(|synced| name == *synced || name.starts_with(&format!("{synced} ")))
        })
    };
    let path = paths.into_iter().find(is_synced)?;
    let detail =
        format!("{} is copied to other machines, with its tokens and conversations.", path.display());
    Some(
        AuditFinding::new("fs.synced_dir", Severity::Warn, "State or config lies in a synced folder", detail)
            .remedy("Set OPENCLAW_STATE_DIR to a folder that is not synced."),
    )
}

/// Finds every file and directory whose mode lets others in.
pub(super) fn open_to_others(context: &CliContext, config: &Config) -> Vec<OpenToOthers> {
    places(context, config).into_iter().filter_map(|(path, kind)| look(path, &kind)).collect()
}

fn places(context: &CliContext, config: &Config) -> Vec<(PathBuf, FileClass)> {
    let paths = context.paths();
    let mut places =
        vec![(paths.state_dir().to_path_buf(), STATE_DIR), (paths.config_path().to_path_buf(), CONFIG)];
    places.extend(context.loaded.included_files.iter().map(|file| (file.clone(), INCLUDED)));
    places.extend(backups(paths.config_path()).into_iter().map(|file| (file, BACKUP)));
    places.push((paths.credentials_dir().to_path_buf(), CREDENTIALS));
    for id in config.agent_ids() {
        places.push((config.agent(&id).agent_dir.join("auth-profiles.json"), PROFILES));
        places.push((config.session_store(&id), SESSIONS));
    }
    places.push((log_file(context), LOG));
    places
}

/// The copies that writing the config leaves beside it, and those that people made: `openclaw.json.bak…`.
fn backups(config: &Path) -> Vec<PathBuf> {
    let prefix = format!("{}.bak", config.file_name().unwrap_or_default().to_string_lossy());
    let entries = config.parent().and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(unix)]
fn look(path: PathBuf, kind: &FileClass) -> Option<OpenToOthers> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(&path).ok()?.permissions().mode() & 0o777;
    let (_, id, severity, title) = kind.rows.iter().find(|(bits, ..)| mode & bits != 0)?;
    let shown = path.display();
    let finding =
        AuditFinding::new(*id, *severity, *title, format!("{shown} mode={mode:o}; {}.", kind.advice))
            .remedy(format!("chmod {:o} {shown}", kind.least));
    Some(OpenToOthers { least: kind.least, finding, path })
}

#[cfg(not(unix))]
fn look(_path: PathBuf, _kind: &FileClass) -> Option<OpenToOthers> {
    None
}
