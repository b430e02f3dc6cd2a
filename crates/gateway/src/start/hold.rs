//! Being sure that no gateway runs: for commands that change state files.

use std::path::PathBuf;

use openclaw_config::Loaded;

pub use super::instance_lock::RunningGateway;
use super::instance_lock::{InstanceLock, InstanceLockError, config_lock_path, holder, state_lock_path};

/// Keeps gateways from starting until it is dropped.
#[derive(Debug)]
pub struct StateHold {
    _lock: InstanceLock,
}

/// Paths of the lock files: always one per state directory; also one per config unless
/// `OPENCLAW_ALLOW_MULTI_GATEWAY` says otherwise.
pub(super) fn lock_files(loaded: &Loaded) -> Vec<PathBuf> {
    let paths = &loaded.paths;
    let mut files = vec![state_lock_path(paths.state_dir())];
    if !loaded.environment.is_truthy("OPENCLAW_ALLOW_MULTI_GATEWAY") {
        files.push(config_lock_path(paths.lock_dir(), paths.config_path()));
    }
    files
}

/// The gateway that runs on this state directory. Changes nothing.
pub fn running_gateway(loaded: &Loaded) -> Option<RunningGateway> {
    lock_files(loaded).iter().find_map(|path| holder(path))
}

/// Takes the place of a gateway, so that none runs meanwhile.
///
/// # Errors
/// [`InstanceLockError::Held`] when one runs.
pub fn hold_state(loaded: &Loaded) -> Result<StateHold, InstanceLockError> {
    let lock = InstanceLock::try_acquire(&lock_files(loaded), loaded.paths.config_path())?;
    Ok(StateHold { _lock: lock })
}

#[cfg(test)]
mod tests {
    use openclaw_config::{Environment, load};

    use super::*;

    #[test]
    fn who_holds_a_directory_is_known_and_nobody_else_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        let loaded = load(&Environment::new([("HOME", home), ("TMPDIR", home)], home));
        assert_eq!(running_gateway(&loaded), None);
        assert!(!loaded.paths.state_dir().exists(), "looking makes nothing");
        let held = hold_state(&loaded).unwrap();
        let us = Some(std::process::id());
        assert_eq!(running_gateway(&loaded), Some(RunningGateway { pid: us, port: None }));
        assert!(matches!(hold_state(&loaded), Err(InstanceLockError::Held { pid, .. }) if pid == us));
        drop(held);
        assert_eq!(running_gateway(&loaded), None);
        let mut lock = InstanceLock::try_acquire(&lock_files(&loaded), loaded.paths.config_path()).unwrap();
        lock.announce(18_790).unwrap();
        assert_eq!(running_gateway(&loaded), Some(RunningGateway { pid: us, port: Some(18_790) }));
        drop(lock);
        std::fs::write(
            state_lock_path(loaded.paths.state_dir()),
            "{\"pid\":4000000,\"createdAt\":\"x\",\"configPath\":\"y\"}",
        )
        .unwrap();
        assert_eq!(running_gateway(&loaded), None, "what a dead process left holds nothing");
        hold_state(&loaded).unwrap();
    }
}
