//! Looks at the files of skills beside the turns, and reads them again when one has changed (spec `agent-runtime.md` §6.5).
//!
//! They are looked at now and then, as the config file is: a look costs a few microseconds a file, and it sees edits on every
//! kind of file system and behind links. How often follows from what it costs, so that many skills take no more of the
//! processor than few.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_config::Config;
use openclaw_config::clock::now_ms;
use tokio::time::sleep;

use super::book::SkillBook;
use super::library::Library;
use super::source::Root;

/// Between two looks at least.
const LOOK: Duration = Duration::from_millis(500);
/// Looks take at most this part of the time.
const SHARE: u32 = 100;
/// Up to so many files are looked at without going to another thread, which would take longer.
const FEW: usize = 32;
/// How often the end of an edit is waited for.
const MOST_WAITS: usize = 40;

/// Works until it is dropped. `config` gives the settings in force.
pub async fn follow(book: Arc<SkillBook>, config: impl Fn() -> Arc<Config> + Send) {
    book.watch();
    let mut pause = LOOK;
    loop {
        sleep(pause).await;
        let load = config().skills.load.clone();
        if !load.is_watched() {
            continue;
        }
        let begun = Instant::now();
        let outdated = outdated(&book).await;
        pause = LOOK.max(begun.elapsed() * SHARE);
        for (workspace, roots, library) in outdated {
            settled(&library, load.debounce()).await;
            let read = {
                let roots = roots.clone();
                tokio::task::spawn_blocking(move || Library::read(&roots)).await
            };
            match read {
                Ok(library) => book.put(&workspace, &roots, library),
                Err(error) => tracing::error!(%error, "the skills could not be read again"),
            }
        }
    }
}

type Kept = (PathBuf, Vec<Root>, Arc<Library>);

/// What has to be read again.
async fn outdated(book: &SkillBook) -> Vec<Kept> {
    let kept = book.libraries();
    let files: usize = kept.iter().map(|(_, _, library)| library.files()).sum();
    let look = move || {
        let now = now_ms();
        kept.into_iter().filter(|(_, _, library)| library.is_outdated(now)).collect()
    };
    if files <= FEW { look() } else { tokio::task::spawn_blocking(look).await.unwrap_or_default() }
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
