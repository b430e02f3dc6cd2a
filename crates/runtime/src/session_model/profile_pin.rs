//! The credential profile in a session's row (spec `models.md` §8.6).

use openclaw_models::credentials::{Pin, PinSource};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::AuthProfileSource;

/// Returns the profile that the row keeps.
pub fn of(entry: &SessionEntry) -> Option<Pin> {
    let compactions = entry.auth_profile_override_compaction_count;
    let source = match entry.auth_profile_override_source {
        Some(AuthProfileSource::User) => PinSource::User,
        Some(AuthProfileSource::Auto) => PinSource::Auto,
        // Rows of before there was a source: only what was chosen by itself was counted.
        None if compactions.is_some() => PinSource::Auto,
        None => PinSource::User,
    };
    Some(Pin { profile: entry.auth_profile_override.as_deref()?.to_owned(), source, compactions })
}

/// Change that a run makes to the profile in the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// No change, as the run used another model than the session's.
    AsItIs,
    /// The profile the session goes on with, if any.
    This(Option<Pin>),
}

/// Writes the profile that the run went on with. A choice that a person made meanwhile stays.
pub fn keep(entry: &mut SessionEntry, keep: &Keep) {
    let Keep::This(pin) = keep else { return };
    let pin = pin.as_ref();
    let chosen = of(entry).filter(|stored| stored.source == PinSource::User);
    if chosen.is_some() && chosen.as_ref() != pin {
        return;
    }
    entry.auth_profile_override = pin.map(|pin| pin.profile.as_str().into());
    entry.auth_profile_override_source = pin.map(|pin| match pin.source {
        PinSource::User => AuthProfileSource::User,
        PinSource::Auto => AuthProfileSource::Auto,
    });
    entry.auth_profile_override_compaction_count = pin.and_then(|pin| pin.compactions);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(profile: &str, source: PinSource) -> Pin {
        let compactions = (source == PinSource::Auto).then_some(2);
        Pin { profile: profile.to_owned(), source, compactions }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        for wanted in [pin("p:a", PinSource::Auto), pin("p:b", PinSource::User)] {
            let mut entry = SessionEntry::default();
            keep(&mut entry, &Keep::This(Some(wanted.clone())));
            assert_eq!(of(&entry), Some(wanted));
        }
        let mut entry = SessionEntry::default();
        keep(&mut entry, &Keep::This(Some(pin("p:a", PinSource::Auto))));
        keep(&mut entry, &Keep::AsItIs);
        assert_eq!(of(&entry), Some(pin("p:a", PinSource::Auto)));
        keep(&mut entry, &Keep::This(None));
        assert_eq!(of(&entry), None);
    }

    #[test]
    fn a_choice_made_during_the_run_stays() {
        let mut entry = SessionEntry::default();
        keep(&mut entry, &Keep::This(Some(pin("p:chosen", PinSource::User))));
        keep(&mut entry, &Keep::This(Some(pin("p:a", PinSource::Auto))));
        assert_eq!(of(&entry), Some(pin("p:chosen", PinSource::User)));
    }

    #[test]
    fn rows_of_before_there_was_a_source_are_told_by_their_count() {
        let mut entry = SessionEntry { auth_profile_override: Some("p:a".into()), ..SessionEntry::default() };
        assert_eq!(of(&entry).map(|pin| pin.source), Some(PinSource::User));
        entry.auth_profile_override_compaction_count = Some(0);
        assert_eq!(of(&entry).map(|pin| pin.source), Some(PinSource::Auto));
    }
}
