//! Changes of the config file that methods make: planned on the newest text, written, and taken at once.

use openclaw_agent::roster::RosterError;
use openclaw_agent::skills::UpdateError;
use openclaw_config::write::WriteError;
use openclaw_config::{Loaded, load};

use crate::reload::Reload;
use crate::request::RequestFailure;

/// Number of attempts to plan a change anew because somebody else wrote the file meanwhile.
const TRIES: usize = 3;

/// Reason why a change was not made.
pub(super) trait ChangeError: Into<RequestFailure> + Send + 'static {
    /// True if somebody else wrote the file since it was read.
    fn is_conflict(&self) -> bool;
}

impl ChangeError for RosterError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Write(WriteError::Changed))
    }
}

impl ChangeError for WriteError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Changed)
    }
}

impl ChangeError for UpdateError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Write(WriteError::Changed))
    }
}

/// Plans and writes a change of the file, again when somebody else wrote it meanwhile, and has the gateway take it.
pub(super) async fn change<T: Send + 'static, E: ChangeError>(
    reload: &Reload,
    change: impl Fn(&Loaded) -> Result<T, E> + Send + 'static,
) -> Result<T, RequestFailure> {
    let environment = reload.environment().clone();
    let write = move || {
        for _ in 1..TRIES {
            match change(&load(&environment)) {
                Err(error) if error.is_conflict() => {}
                done => return done,
            }
        }
        change(&load(&environment))
    };
    let written = tokio::task::spawn_blocking(write).await?.map_err(Into::into)?;
    reload.now().await;
    Ok(written)
}
