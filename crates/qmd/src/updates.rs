//! Keeping the index of `qmd` in step: its collections, updates and their schedule.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use openclaw_config::private_file;
use openclaw_config::settings::MemoryQmdSearch;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::UpdateClock;
use crate::command_line::CommandLine;
use crate::engine::{QmdEngine, UpdateProgress};
use crate::error::QmdError;
use crate::export::export;
use crate::hits::listed_names;

/// Wishes for an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateWish {
    /// One that runs is joined, and a young one is enough.
    IfDue,
    /// One more runs, behind those that are wished for already; vectors are made too.
    Forced,
}

/// Updates at the start and once in a while.
pub(crate) async fn run_schedule(engine: Arc<QmdEngine>) {
    let update = &engine.settings.update;
    let begun = if update.on_boot() {
        engine.update(UpdateWish::Forced).await
    } else {
        engine.make_collections().await.map(|_| ())
    };
    let mut last = report(begun, None);
    engine.progress.send_modify(|progress| progress.is_booted = true);
    let Some(interval) = update.interval() else { return };
    loop {
        tokio::time::sleep(interval).await;
        last = report(engine.update(UpdateWish::IfDue).await, last.as_ref());
    }
}

/// Logs a failure, unless it is the one before, and returns it.
fn report(done: Result<(), QmdError>, last: Option<&QmdError>) -> Option<QmdError> {
    let error = done.err()?;
    if last != Some(&error) {
        tracing::warn!(%error, "the index of qmd was not updated");
    }
    Some(error)
}

impl QmdEngine {
    /// Makes the collections that `qmd` does not have yet and whose directory is there. Returns the names of those that it
    /// has then.
    pub(crate) async fn make_collections(&self) -> Result<HashSet<String>, QmdError> {
        let mut known = self.known.lock().await;
        let update = &self.settings.update;
        if known.is_none() {
            self.make_home();
            let listed = match self.run(CommandLine::list(update)).await {
                Ok(printed) => listed_names(&printed),
                Err(error) if error.is_hopeless() => return Err(error),
                // Older versions can't list as JSON.
                Err(_) => Vec::new(),
            };
            *known = Some(listed.into_iter().collect());
        }
        let names = known.get_or_insert_default();
        let mut refusal = None;
        for collection in &self.collections.list {
            if names.contains(&collection.name) || !collection.root.is_dir() {
                continue;
            }
            match self.run(CommandLine::add(collection, update)).await {
                Ok(_) => {}
                Err(error) if error.is_hopeless() => return Err(error),
                Err(error) if error.says_exists() => {}
                Err(error) => {
                    tracing::warn!(%error, collection = %collection.name, "qmd has not taken a collection");
                    refusal = Some(error);
                    continue;
                }
            }
            names.insert(collection.name.clone());
        }
        let has_some = self.collections.list.iter().any(|collection| names.contains(&collection.name));
        refusal.filter(|_| !has_some).map_or_else(|| Ok(names.clone()), Err)
    }

    /// Makes the directories of `qmd`, and leads it to the models that its user has already.
    fn make_home(&self) {
        let cache = self.settings.cache().join("qmd");
        let exports = self.settings.exports.iter().map(|exports| exports.dir.clone());
        for dir in [self.settings.home.join("xdg-config"), cache.clone()].into_iter().chain(exports) {
            if let Err(error) = private_file::make_dir(&dir) {
                tracing::warn!(%error, dir = %dir.display(), "a directory of qmd can't be made");
            }
        }
        let models = cache.join("models");
        let is_there = std::fs::symlink_metadata(&models).is_ok();
        if let Some(shared) = self.settings.models.as_deref().filter(|dir| !is_there && dir.is_dir())
            && let Err(error) = link(shared, &models)
        {
            tracing::debug!(%error, "the models of qmd are not shared");
        }
    }

    /// Brings the index in step: joins an update that runs, or waits for its turn.
    pub(crate) async fn update(&self, wish: UpdateWish) -> Result<(), QmdError> {
        if wish == UpdateWish::IfDue && self.progress.borrow().active > 0 {
            self.idle().await;
            return self.progress.borrow().error.clone().map_or(Ok(()), Err);
        }
        let _active = ActiveUpdate::of(&self.progress);
        let mut clock = self.clock.lock().await;
        let update = &self.settings.update;
        if wish == UpdateWish::IfDue && clock.is_debounced(Instant::now(), update.debounce()) {
            return Ok(());
        }
        let done = self.update_now(&mut clock, wish).await;
        self.progress.send_modify(|progress| {
            progress.error = done.clone().err();
            if done.is_ok() {
                progress.updated_at = Some(openclaw_config::clock::now_ms());
            }
        });
        done
    }

    async fn update_now(&self, clock: &mut UpdateClock, wish: UpdateWish) -> Result<(), QmdError> {
        let update = &self.settings.update;
        self.make_collections().await?;
        self.export().await;
        self.run(CommandLine::update(update)).await?;
        clock.updated(Instant::now());
        let interval = update.embed_interval();
        let is_due = wish == UpdateWish::Forced || clock.is_embed_due(Instant::now(), interval);
        // Words need no vectors.
        if self.settings.search != MemoryQmdSearch::Search && is_due {
            match self.run(CommandLine::embed(update)).await {
                Ok(_) => clock.embedded(Instant::now()),
                Err(error) => {
                    tracing::warn!(%error, "qmd has made no vectors");
                    clock.embed_failed(Instant::now(), interval);
                }
            }
        }
        Ok(())
    }

    async fn export(&self) {
        let (Some(exports), Some(transcripts)) = (self.settings.exports.clone(), self.transcripts.clone())
        else {
            return;
        };
        let work = tokio::task::spawn_blocking(move || export(&exports, transcripts.as_ref()));
        if let Ok(Err(error)) = work.await {
            tracing::warn!(%error, "transcripts could not be exported for qmd");
        }
    }

    /// Waits until no update runs.
    pub(crate) async fn idle(&self) {
        // The sender lives as long as this.
        let _ = self.progress.subscribe().wait_for(|progress| progress.active == 0).await;
    }
}

#[cfg(unix)]
fn link(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// An update that runs or waits for its turn.
struct ActiveUpdate<'a>(&'a watch::Sender<UpdateProgress>);

impl<'a> ActiveUpdate<'a> {
    fn of(progress: &'a watch::Sender<UpdateProgress>) -> Self {
        progress.send_modify(|progress| progress.active += 1);
        Self(progress)
    }
}

impl Drop for ActiveUpdate<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|progress| progress.active = progress.active.saturating_sub(1));
    }
}
