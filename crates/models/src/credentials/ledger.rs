//! Ledger of call outcomes for profiles (spec `models.md` §8.5): in effect at once for every
//! selection of this process, and written to `auth-profiles.json` soon after, outside the path of
//! the calls.
//!
//! A note that can't be written, because the file is damaged or its lock is held for too long, stays in force here and is
//! tried again with the next one.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::cooldown::failure_reason;
use super::file::OnDamage;
use super::legacy::Surroundings;
use super::store::AuthStore;
use crate::background::Background;
use crate::clock::Clock;
use crate::settings::CooldownRules;
use crate::stream::FailureKind;

/// Notes of one agent that wait to be written; beyond it the oldest are forgotten.
const MOST_WAITING: usize = 256;
/// Written notes of one agent that stay in force here: a selection may have read the file just before, and the file
/// knows nothing of logins that other programs keep.
const MOST_WRITTEN: usize = 64;
/// Time for which successes wait to be batched, so that a busy gateway writes once for many turns.
const COMPANY: Duration = Duration::from_secs(1);

/// Takes notes. Clones are the same ledger.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    shared: Arc<LedgerState>,
}

#[derive(Debug)]
struct LedgerState {
    agents: Mutex<BTreeMap<PathBuf, Page>>,
    writers: Background,
    /// The end is near: nothing waits for company any more.
    hurry: CancellationToken,
    clock: Clock,
}

/// The notes of one agent.
#[derive(Debug, Default)]
struct Page {
    waiting: VecDeque<Note>,
    written: VecDeque<Note>,
    /// True if a writer is active or about to start.
    has_writer: bool,
    /// Signal to a writer waiting for a batch that a failure must be written.
    urgent: CancellationToken,
}

/// Outcome of one call for its profile.
#[derive(Debug, Clone, PartialEq)]
struct Note {
    profile: String,
    said: ProfileReport,
    /// Unix milliseconds.
    at: i64,
}

#[derive(Debug, Clone, PartialEq)]
enum ProfileReport {
    Answered,
    Failed(FailureKind, CooldownRules),
}

/// A profile, and where what is said of it goes.
#[derive(Debug, Clone)]
pub(crate) struct ProfileAccount {
    pub(crate) agent_dir: PathBuf,
    pub(crate) around: Surroundings,
    pub(crate) profile: String,
    pub(crate) rules: CooldownRules,
}

impl Ledger {
    pub(crate) fn new(clock: Clock) -> Self {
        let shared = LedgerState {
            agents: Mutex::default(),
            writers: Background::default(),
            hurry: CancellationToken::new(),
            clock,
        };
        Self { shared: Arc::new(shared) }
    }

    /// A profile answered.
    pub(crate) fn answered(&self, account: &ProfileAccount) {
        self.note(account, ProfileReport::Answered);
    }

    /// A profile failed. Failures that are the request's fault are not counted against it.
    pub(crate) fn failed(&self, account: &ProfileAccount, kind: FailureKind) {
        if failure_reason(kind).is_some() {
            self.note(account, ProfileReport::Failed(kind, account.rules.clone()));
        }
    }

    /// Brings a store that was read from disk up to date.
    pub(crate) fn apply(&self, agent_dir: &Path, store: &mut AuthStore) {
        let agents = self.shared.agents.lock();
        let Some(page) = agents.get(agent_dir) else { return };
        for note in page.written.iter().chain(&page.waiting) {
            note.apply_once(store);
        }
    }

    /// Writes everything that waits. New notes are written at once from now on.
    pub(crate) async fn settle(&self) {
        self.shared.hurry.cancel();
        self.shared.writers.settle().await;
    }

    fn note(&self, account: &ProfileAccount, said: ProfileReport) {
        let note = Note { profile: account.profile.clone(), said, at: self.shared.clock.now_ms() };
        let mut agents = self.shared.agents.lock();
        let page = agents.entry(account.agent_dir.clone()).or_default();
        let is_urgent = matches!(note.said, ProfileReport::Failed(..));
        if note.said == ProfileReport::Answered {
            // Only the last success counts.
            page.waiting
                .retain(|earlier| earlier.profile != note.profile || earlier.said != ProfileReport::Answered);
        }
        push_bounded(&mut page.waiting, note, MOST_WAITING);
        if is_urgent {
            page.urgent.cancel();
        }
        if !std::mem::replace(&mut page.has_writer, true) {
            page.urgent = CancellationToken::new();
            let urgent = page.urgent.clone();
            if is_urgent {
                urgent.cancel();
            }
            let writer = LedgerWriter { shared: Arc::clone(&self.shared), account: account.clone() };
            self.shared.writers.spawn(writer.write_all(urgent));
        }
    }
}

impl Note {
    /// Applies it unless the store knows already: what was written may still be here.
    fn apply_once(&self, store: &mut AuthStore) {
        let stats = store.usage(&self.profile);
        let later = |at: Option<i64>| at.is_some_and(|at| at >= self.at);
        if later(stats.last_used) || later(stats.last_failure_at) {
            return;
        }
        self.apply(store);
    }

    fn apply(&self, store: &mut AuthStore) {
        match &self.said {
            ProfileReport::Answered => store.record_success(&self.profile, self.at),
            ProfileReport::Failed(kind, rules) => {
                store.record_failure(&self.profile, *kind, rules, self.at);
            }
        }
    }
}

/// Writes one agent's notes, then ends.
struct LedgerWriter {
    shared: Arc<LedgerState>,
    account: ProfileAccount,
}

impl LedgerWriter {
    async fn write_all(self, urgent: CancellationToken) {
        tokio::select! { biased;
            () = self.shared.hurry.cancelled() => {}
            () = urgent.cancelled() => {}
            () = tokio::time::sleep(COMPANY) => {}
        }
        loop {
            let batch: Vec<Note> = self.page(|page| page.waiting.iter().cloned().collect());
            if !self.write(batch.clone()).await {
                self.page(|page| page.has_writer = false);
                return;
            }
            let done = self.page(|page| {
                // Notes that were dropped for room meanwhile were the oldest, which are in the batch.
                page.waiting.retain(|note| !batch.contains(note));
                for note in batch {
                    push_bounded(&mut page.written, note, MOST_WRITTEN);
                }
                page.has_writer = !page.waiting.is_empty();
                !page.has_writer
            });
            if done {
                return;
            }
        }
    }

    /// Writes the notes; returns true if they are on disk.
    async fn write(&self, batch: Vec<Note>) -> bool {
        let account = self.account.clone();
        if !account.agent_dir.is_dir() {
            // The agent was deleted while its last call was under way.
            return true;
        }
        let written = tokio::task::spawn_blocking(move || {
            AuthStore::update(&account.agent_dir, &account.around, OnDamage::Refuse, |store| {
                batch.iter().for_each(|note| note.apply(store));
            })
        });
        match written.await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "how credentials did is not written; it stays in force until a restart");
                false
            }
            Err(_) => false,
        }
    }

    fn page<T>(&self, work: impl FnOnce(&mut Page) -> T) -> T {
        work(self.shared.agents.lock().entry(self.account.agent_dir.clone()).or_default())
    }
}

fn push_bounded(notes: &mut VecDeque<Note>, note: Note, most: usize) {
    notes.push_back(note);
    while notes.len() > most {
        notes.pop_front();
    }
}

#[cfg(test)]
mod tests;
