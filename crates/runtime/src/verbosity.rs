//! Level of notes about the work of a run (`/verbose`).

use openclaw_journal::intent::Hints;
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::VerboseLevel;

use crate::events::Verbose;
use crate::setup::Settings;

/// Returns the verbosity of the run's tool events for people and clients, as the message asks or
/// else its session.
pub fn verbose(hints: Option<&Hints>, entry: &SessionEntry, settings: &Settings) -> Verbose {
    match hints.and_then(|hints| hints.verbose).or(entry.verbose_level) {
        Some(level) => level.into(),
        None => {
            let configured = settings.config.agents.defaults.verbose_default.as_deref();
            configured.map(Verbose::parse).unwrap_or_default()
        }
    }
}

impl From<VerboseLevel> for Verbose {
    fn from(level: VerboseLevel) -> Self {
        match level {
            VerboseLevel::On => Self::On,
            VerboseLevel::Full => Self::Full,
            VerboseLevel::Off => Self::Off,
        }
    }
}
