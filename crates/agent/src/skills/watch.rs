//! Reads skills again when one of their files has changed, beside the turns (spec `agent-runtime.md` §6.5).
//!
//! The files are looked at when there is [word](crate::file_watch) of an edit, which may come for nothing, and once more when one was read
//! right after it had been written, since the clocks of file systems are coarse.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::Config;
use openclaw_config::clock::now_ms;
use tokio::sync::watch;
use tokio::time::sleep;

use super::book::SkillBook;
use super::library::Library;
use super::source::Root;
use crate::file_watch::FileWatch;

/// Number of times the watcher waits for the end of an edit.
const MOST_WAITS: usize = 40;

/// Works until it is dropped, or nobody can change the settings any more. `config` takes the settings in force out of what holds them.
pub async fn follow<S>(
    book: Arc<SkillBook>,
    mut settings: watch::Receiver<S>,
    config: impl Fn(&S) -> Arc<Config> + Send,
) {
    book.watch();
    let mut files = FileWatch::new();
    loop {
        let load = config(&settings.borrow_and_update()).skills.load.clone();
        let kept = if load.is_watched() { book.libraries() } else { Vec::new() };
        let looked = tokio::task::spawn_blocking(move || look(files, kept)).await;
        let Ok(WatchResult { files: watch, outdated, again }) = looked else { return };
        files = watch;
        if !outdated.is_empty() {
            for one in outdated {
                read_again(&book, one, load.debounce()).await;
            }
            continue;
        }
        tokio::select! {
            changed = settings.changed() => if changed.is_err() { return },
            () = book.shelved() => {}
            () = files.changed() => {}
            () = sleep(again.unwrap_or_default()), if again.is_some() => {}
        }
    }
}

type WatchedLibrary = (PathBuf, Vec<Root>, Arc<Library>);

/// The result of a look at the files.
struct WatchResult {
    files: FileWatch,
    /// The libraries that have to be read again.
    outdated: Vec<WatchedLibrary>,
    /// The time until the next look, whatever happens.
    again: Option<Duration>,
}

/// Watches the files of what is kept, then looks at them. Blocking.
fn look(mut files: FileWatch, kept: Vec<WatchedLibrary>) -> WatchResult {
    let places: Vec<PathBuf> = kept.iter().flat_map(|(_, _, library)| library.places()).collect();
    files.set(&places);
    let now = now_ms();
    let again = kept.iter().filter_map(|(_, _, library)| library.is_unsure_for(now)).min();
    let outdated = kept.into_iter().filter(|(_, _, library)| library.is_outdated(now)).collect();
    WatchResult { files, outdated, again }
}

async fn read_again(book: &SkillBook, (workspace, roots, library): WatchedLibrary, debounce: Duration) {
    settled(&library, debounce).await;
    let read = {
        let roots = roots.clone();
        tokio::task::spawn_blocking(move || Library::read(&roots)).await
    };
    match read {
        Ok(library) => book.put(&workspace, &roots, library),
        Err(error) => tracing::error!(%error, "the skills could not be read again"),
    }
}

/// Waits until nobody writes any more.
async fn settled(library: &Arc<Library>, debounce: Duration) {
    let look = || {
        let library = Arc::clone(library);
        async { tokio::task::spawn_blocking(move || library.look()).await.ok() }
    };
    let mut seen = look().await;
    for _ in 0..MOST_WAITS {
        sleep(debounce).await;
        let again = look().await;
        if again == seen {
            return;
        }
        seen = again;
    }
}
