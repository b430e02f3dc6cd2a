//! The task that keeps an index in step with the files: one for each index, so that no two syncs run at once.
//!
//! It does small pieces of work and looks for what is more urgent between them: texts come before vectors, so that a
//! changed file is found at once although thousands of chunks wait for an embedder.

mod connection;
mod embedding;
mod forgetting;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::db::{self, StoreError};
use crate::embed_pass;
use crate::sessions::{Growth, Thresholds};
use crate::shared::{ForgetWork, Shared, WantedWork};
use crate::sync::{SyncReport, SyncUntil};
use crate::text_pass::{self, PassOutcome, PassRequest, SessionScope};
use crate::watch::DirectoryWatch;

use connection::OpenIndex;
use embedding::Flight;

/// Time after which memory is given back when nobody searches.
const IDLE: Duration = Duration::from_secs(600);

/// Longest time that further changes put off a sync.
const LONGEST_DEBOUNCE: Duration = Duration::from_secs(10);

/// Time in which appends to transcripts are gathered.
const TRANSCRIPT_DEBOUNCE: Duration = Duration::from_secs(5);

/// Pause after the index file could not be written.
const STORE_PAUSE: Duration = Duration::from_secs(30);

/// The task. [`Worker::run`] ends when [`Shared::stop`] is called.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    connection: Option<OpenIndex>,
    watch: Option<DirectoryWatch>,
    has_tried_watch: bool,
    growth: Arc<Mutex<Growth>>,
    /// Callers who wait for vectors.
    waiting: Vec<oneshot::Sender<SyncReport>>,
    /// Texts that are at the embedder.
    flight: Option<Flight>,
    /// True if chunks may wait for vectors.
    may_embed: bool,
    has_embedded: bool,
    paused_until: Option<Instant>,
    attempts: u32,
    /// True after a forced sync, until everything is embedded.
    is_forced: bool,
    /// Time at which the model was last found to have other dimensions.
    dimensions_changed: Option<Instant>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            connection: None,
            watch: None,
            has_tried_watch: false,
            growth: Arc::default(),
            waiting: Vec::new(),
            flight: None,
            may_embed: false,
            has_embedded: false,
            paused_until: None,
            attempts: 0,
            is_forced: false,
            dimensions_changed: None,
        }
    }

    /// Works until it is stopped.
    pub(crate) async fn run(mut self) {
        let stop = self.shared.stop.clone();
        let mut last_pass = Instant::now();
        while !stop.is_cancelled() {
            let now = Instant::now();
            self.heed_embedder();
            if let Some(ForgetWork { paths, answer }) = self.take_forgotten() {
                let forgotten = self.forget(paths).await;
                // The caller may have gone.
                let _ = answer.send(forgotten);
                continue;
            }
            let grown = self.grown_transcripts(now).await;
            if let Some(work) = self.take_pass(now, last_pass, grown) {
                last_pass = Instant::now();
                self.pass(work).await;
                continue;
            }
            if self.flight.is_none() {
                if self.may_embed && self.paused_until.is_none_or(|until| until <= now) {
                    self.embed().await;
                    continue;
                }
                if let Some(dimensions) = self.take_doubted() {
                    self.probe(dimensions).await;
                    continue;
                }
            }
            self.release_if_idle(now).await;
            let due = self.next_due(now, last_pass);
            let answers = tokio::select! { biased;
                () = stop.cancelled() => break,
                () = self.shared.wake.notified() => continue,
                answers = Flight::landed(&mut self.flight) => answers,
                () = sleep_until(due) => continue,
            };
            self.land(answers).await;
        }
        *self.shared.wanted.lock() = WantedWork { is_closed: true, ..WantedWork::default() };
        self.release().await;
    }

    /// Begins anew with another embedder: failures and pauses were those of the one before.
    fn heed_embedder(&mut self) {
        if std::mem::take(&mut self.shared.wanted.lock().embedder_changed) {
            (self.flight, self.paused_until, self.attempts) = (None, None, 0);
            self.shared.progress.lock().report.embed_error = None;
        }
    }

    fn take_forgotten(&self) -> Option<ForgetWork> {
        self.shared.wanted.lock().forgotten.pop()
    }

    fn take_doubted(&self) -> Option<usize> {
        self.shared.wanted.lock().doubted.take()
    }

    /// Returns the transcripts that have grown enough, when it is time to look.
    async fn grown_transcripts(&mut self, now: Instant) -> HashSet<String> {
        let names: Vec<String> = {
            let mut wanted = self.shared.wanted.lock();
            if wanted.transcripts_since.is_none_or(|since| now < since + TRANSCRIPT_DEBOUNCE) {
                return HashSet::new();
            }
            wanted.transcripts_since = None;
            wanted.transcripts.drain().collect()
        };
        let Some(transcripts) = self.shared.transcripts.clone().filter(|_| self.shared.settings.sessions)
        else {
            return HashSet::new();
        };
        let growth = Arc::clone(&self.growth);
        let sync = &self.shared.settings.sync;
        let thresholds = Thresholds { bytes: sync.session_bytes, messages: sync.session_messages };
        let grown = tokio::task::spawn_blocking(move || {
            let sizes = transcripts.list().unwrap_or_default();
            let mut growth = growth.lock();
            let is_due = |name: &String| {
                let Some(file) = sizes.iter().find(|file| file.name == *name) else { return false };
                let lines = |from: u64| {
                    let text = transcripts.read(name).unwrap_or_default();
                    let rest = text
                        .as_bytes()
                        .get(usize::try_from(from).unwrap_or(usize::MAX)..)
                        .unwrap_or_default();
                    rest.iter().filter(|byte| **byte == b'\n').count() as u64
                };
                growth.grew(name, file.size, thresholds, lines)
            };
            names.into_iter().filter(is_due).collect()
        });
        grown.await.unwrap_or_default()
    }

    /// Returns what the next look at the files is to do, if one is due.
    fn take_pass(&mut self, now: Instant, last_pass: Instant, grown: HashSet<String>) -> Option<PassWork> {
        let sync = &self.shared.settings.sync;
        let mut wanted = self.shared.wanted.lock();
        let is_changed =
            wanted.changed.is_some_and(|changed| change_due(changed, sync.watch_debounce) <= now);
        let is_interval = sync.interval.is_some_and(|interval| now >= last_pass + interval);
        if !wanted.pass && !is_changed && !is_interval && grown.is_empty() {
            return None;
        }
        // Changes that come from here on lead to another pass.
        if wanted.pass || is_changed {
            wanted.changed = None;
        }
        let is_first = *self.shared.passes.borrow() == 0;
        let is_asked = !wanted.waiting.is_empty();
        let sessions =
            if is_first || is_asked || wanted.force { SessionScope::All } else { SessionScope::Only(grown) };
        let force = std::mem::take(&mut wanted.force);
        wanted.pass = false;
        Some(PassWork {
            force,
            sessions,
            is_damaged: std::mem::take(&mut wanted.damaged),
            waiting: std::mem::take(&mut wanted.waiting),
        })
    }

    /// Looks at the files and answers those who wait for it.
    async fn pass(&mut self, work: PassWork) {
        let PassWork { force, sessions, is_damaged, waiting } = work;
        self.start_watch();
        self.shared.progress.lock().is_running = true;
        if force {
            (self.paused_until, self.attempts, self.is_forced) = (None, 0, true);
        }
        let shared = Arc::clone(&self.shared);
        if is_damaged {
            self.discard_damaged().await;
        }
        let outcome = self
            .with_index(move |connection| {
                let version = db::data_version(connection)?;
                let embedder = shared.embedder.lock().clone();
                if force {
                    embed_pass::forget_failures(connection)?;
                }
                let request = PassRequest {
                    settings: &shared.settings,
                    roots: &shared.roots,
                    embedder: embedder.as_ref().map(|embedder| embedder.identity()),
                    transcripts: shared.transcripts.as_deref(),
                    sessions: sessions.clone(),
                    force,
                    stop: &shared.stopping,
                    is_untouched: connection.version.replace(None) == Some(version),
                };
                let outcome = text_pass::run(connection, &request)?;
                connection.version.set(Some(version));
                Ok((outcome, embed_pass::pending(connection)?))
            })
            .await;
        self.record(outcome);
        self.shared.passes.send_modify(|passes| *passes += 1);
        self.may_embed = true;
        for (until, sender) in waiting {
            match until {
                SyncUntil::Embedded => self.waiting.push(sender),
                // The caller may have gone.
                SyncUntil::Searchable => drop(sender.send(self.report())),
            }
        }
    }

    fn record(&mut self, outcome: Result<(PassOutcome, usize), StoreError>) {
        let mut progress = self.shared.progress.lock();
        (progress.last_pass, progress.is_running) = (Some(Instant::now()), false);
        match outcome {
            Ok((outcome, pending)) => {
                for (name, size) in &outcome.transcripts {
                    self.growth.lock().indexed(name, *size);
                }
                let embed_error = progress.report.embed_error.take().filter(|_| pending > 0);
                progress.report = SyncReport {
                    indexed: outcome.indexed,
                    removed: outcome.removed,
                    unchanged: outcome.unchanged,
                    reindexed: outcome.reindexed,
                    issues: outcome.issues,
                    pending,
                    embed_error,
                    needs_force: outcome.needs_force,
                    error: None,
                };
                let directories = outcome.directories;
                drop(progress);
                self.set_watch(directories);
            }
            Err(error) => {
                drop(progress);
                self.store_failed(&error);
            }
        }
    }

    /// Records that the index could not be written. Files are looked at again after a while.
    fn store_failed(&self, error: &StoreError) {
        let text = error.to_string();
        let is_new = self.shared.progress.lock().report.error.replace(text.clone()) != Some(text.clone());
        if is_new {
            tracing::warn!(error = text, "memory sync failed");
        }
        let again = Instant::now() + STORE_PAUSE;
        self.shared.wanted.lock().changed.get_or_insert((again, again));
    }

    fn report(&self) -> SyncReport {
        self.shared.progress.lock().report.clone()
    }

    fn start_watch(&mut self) {
        let settings = &self.shared.settings;
        if self.has_tried_watch || !settings.sync.watch || !settings.memory_files {
            return;
        }
        self.has_tried_watch = true;
        let shared = Arc::downgrade(&self.shared);
        self.watch = DirectoryWatch::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.changed();
            }
        });
        // Changes during the first look at the files are told of already.
        let roots: Vec<PathBuf> = self
            .shared
            .roots
            .watched()
            .map(PathBuf::from)
            .chain([self.shared.settings.workspace.join("memory")])
            .collect();
        self.set_watch(roots);
    }

    fn set_watch(&mut self, directories: Vec<PathBuf>) {
        let Some(watch) = &mut self.watch else { return };
        let roots = self.shared.roots.watched().filter_map(|root| {
            if root.is_dir() {
                Some(root.to_owned())
            } else {
                root.parent().filter(|parent| parent.is_dir()).map(PathBuf::from)
            }
        });
        watch.set(roots.chain(directories).collect::<Vec<_>>());
        self.shared.progress.lock().is_watched = watch.is_reliable();
    }

    /// Gives back memory and open files if nobody has searched for long, or somebody asks for it.
    async fn release_if_idle(&mut self, now: Instant) {
        let asked = std::mem::take(&mut self.shared.wanted.lock().releasing);
        let is_idle = {
            let mut progress = self.shared.progress.lock();
            progress.last_search.take_if(|time| now >= *time + IDLE).is_some()
        };
        if !is_idle && asked.is_empty() {
            return;
        }
        self.release().await;
        for sender in asked {
            let _ = sender.send(());
        }
    }

    /// Returns when something is to be done without anybody asking.
    fn next_due(&self, now: Instant, last_pass: Instant) -> Option<Instant> {
        let sync = &self.shared.settings.sync;
        let wanted = self.shared.wanted.lock();
        let idle = self.shared.progress.lock().last_search.map(|time| time + IDLE);
        let times = [
            wanted.changed.map(|changed| change_due(changed, sync.watch_debounce)),
            wanted.transcripts_since.map(|since| since + TRANSCRIPT_DEBOUNCE),
            sync.interval.map(|interval| last_pass + interval),
            self.paused_until.filter(|_| self.may_embed && self.flight.is_none()),
            idle,
        ];
        times.into_iter().flatten().min().map(|due| due.max(now))
    }
}

/// Options of the next look at the files.
struct PassWork {
    force: bool,
    sessions: SessionScope,
    is_damaged: bool,
    waiting: Vec<(SyncUntil, oneshot::Sender<SyncReport>)>,
}

fn change_due((first, last): (Instant, Instant), debounce: Duration) -> Instant {
    (last + debounce).min(first + LONGEST_DEBOUNCE.max(debounce))
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
