//! The directories a gateway keeps its state in are its user's own (`docs/security.md`).

use std::io;
use std::path::{Path, PathBuf};

use openclaw_config::shared_place::{self, Modes, OwnDir};
use openclaw_config::{Config, private_file};
use openclaw_sessions::Layout;

use super::run::StartError;

/// Makes sure that the directories of the state are there and ours, and closes those to others that
/// others may write to. Files that another user has put there by then are not used. Returns lines for
/// the log.
pub(super) fn claim(config: &Config) -> Result<Vec<String>, StartError> {
    let state_dir = config.paths().state_dir();
    let mut lines = Vec::new();
    let failed = |source| state_dir_error(state_dir, source);
    lines.extend(own_all(state_dir).map_err(failed)?);
    for dir in parts(config).iter().filter(|dir| dir.is_dir()) {
        lines.extend(own_all(dir).map_err(failed)?);
    }
    for dir in config.agent_ids().iter().map(|agent| config.paths().sessions_dir(agent)) {
        if dir.is_dir() {
            lines.extend(own(&dir).map_err(failed)?.1);
        }
    }
    for dir in store_dirs(config) {
        let failed = |source| not_ours("session store's directory", &dir, source, "session.store");
        lines.extend(own(&dir).map_err(failed)?.1);
    }
    let credentials = config.paths().credentials_dir();
    match own_all(credentials) {
        Ok(line) => lines.extend(line),
        Err(source) if shared_place::is_not_ours(&source) => {
            return Err(not_ours("credentials directory", credentials, source, "OPENCLAW_OAUTH_DIR"));
        }
        // Nothing is kept there yet.
        Err(error) => lines.push(format!("cannot make {}: {error}", credentials.display())),
    }
    Ok(lines)
}

/// The directories below the state directory from which files are read. Directories of transcripts
/// may be big; files there that are not ours are refused when they are opened.
fn parts(config: &Config) -> Vec<PathBuf> {
    let paths = config.paths();
    let device = paths.device_identity();
    let mut dirs = vec![paths.devices_dir(), paths.log_dir().to_path_buf(), paths.state_dir().join("agents")];
    dirs.extend(device.parent().map(Path::to_path_buf));
    for agent in config.agent_ids() {
        dirs.extend([paths.agent_root(&agent), config.agent(&agent).agent_dir]);
    }
    dirs
}

/// Directories in which `session.store` puts stores; without it they are below the state directory.
fn store_dirs(config: &Config) -> Vec<PathBuf> {
    let Some(store) = config.session.store.as_deref() else { return Vec::new() };
    let layout = Layout::new(config.paths().state_dir(), config.paths().home(), Some(store));
    let dirs = config.agent_ids().into_iter().filter_map(|agent| {
        let dir = layout.store_path(&agent).parent()?.to_path_buf();
        (!dir.starts_with(config.paths().state_dir())).then_some(dir)
    });
    let mut dirs: Vec<PathBuf> = dirs.collect();
    dirs.sort_unstable();
    dirs.dedup();
    dirs
}

/// A directory with everything in it: who has put something there may have done so before others were kept out.
fn own_all(dir: &Path) -> io::Result<Option<String>> {
    let (own, line) = own(dir)?;
    own.check_entries()?;
    Ok(line)
}

fn own(dir: &Path) -> io::Result<(OwnDir, Option<String>)> {
    private_file::make_dir(dir)?;
    let own = OwnDir::open(dir)?;
    let modes = own.close_to_others()?;
    if modes != Modes::Private {
        own.check_entries()?;
    }
    let shown = dir.display();
    let line = match modes {
        Modes::Private => None,
        Modes::Repaired => Some(format!("others could write to {shown}; its mode is 700 now")),
        Modes::Shared => {
            Some(format!("others may write to {shown}, and its mode can't be changed: have it set to 700"))
        }
    };
    Ok((own, line))
}

/// Error for a state directory that can't be used.
pub(super) fn state_dir_error(path: &Path, source: io::Error) -> StartError {
    if shared_place::is_not_ours(&source) {
        return not_ours("state directory", path, source, "OPENCLAW_STATE_DIR");
    }
    StartError::StateDir { path: path.to_path_buf(), source }
}

/// Error for another directory that can't be used; `setting` names the setting that chooses a
/// different one.
pub(super) fn not_ours(
    what: &'static str,
    path: &Path,
    source: io::Error,
    setting: &'static str,
) -> StartError {
    StartError::NotOurs { what, path: path.to_path_buf(), source, setting }
}
