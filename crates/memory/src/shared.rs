//! State that the worker and the callers share: settings, requests that wait, and what was done last.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::db::StoreError;
use crate::files::Roots;
use crate::search::Searcher;
use crate::sessions::TranscriptSource;
use crate::settings::MemorySettings;
use crate::sync::{SyncReport, SyncRequest, SyncUntil};
use openclaw_embedding::Embedder;

/// State that the worker and the callers share.
pub(crate) struct Shared {
    pub(crate) settings: MemorySettings,
    pub(crate) roots: Roots,
    pub(crate) searcher: Searcher,
    pub(crate) transcripts: Option<Arc<dyn TranscriptSource>>,
    pub(crate) embedder: Mutex<Option<Arc<dyn Embedder>>>,
    pub(crate) wanted: Mutex<WantedWork>,
    pub(crate) wake: Notify,
    pub(crate) progress: Mutex<Progress>,
    /// True after the first look at the files in this process.
    /// Number of looks at the files that have ended.
    pub(crate) passes: watch::Sender<u64>,
    pub(crate) stopping: AtomicBool,
    pub(crate) stop: CancellationToken,
}

/// Requests to the worker that are still to be taken.
#[derive(Default)]
pub(crate) struct WantedWork {
    pub(crate) pass: bool,
    pub(crate) force: bool,
    /// Another embedder is used from now on.
    pub(crate) embedder_changed: bool,
    /// The file is damaged: move it aside first.
    pub(crate) damaged: bool,
    /// Times of the first and the last change that the watch told of.
    pub(crate) changed: Option<(Instant, Instant)>,
    pub(crate) transcripts: HashSet<String>,
    pub(crate) transcripts_since: Option<Instant>,
    pub(crate) waiting: Vec<(SyncUntil, oneshot::Sender<SyncReport>)>,
    pub(crate) forgotten: Vec<ForgetWork>,
    /// Callers who want memory to be given back.
    pub(crate) releasing: Vec<oneshot::Sender<()>>,
    /// Dimensions of a query's vector, if those of the index are others.
    pub(crate) doubted: Option<usize>,
    /// True after the worker has ended.
    pub(crate) is_closed: bool,
}

/// State that others look at.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) report: SyncReport,
    /// Time of the last look at the files.
    pub(crate) last_pass: Option<Instant>,
    pub(crate) last_search: Option<Instant>,
    /// True if every change is told of by the watch.
    pub(crate) is_watched: bool,
    pub(crate) is_running: bool,
}

impl Shared {
    pub(crate) fn new(
        settings: MemorySettings,
        embedder: Option<Arc<dyn Embedder>>,
        transcripts: Option<Arc<dyn TranscriptSource>>,
    ) -> Self {
        Self {
            roots: Roots::new(&settings.workspace, &settings.extra_paths),
            searcher: Searcher::new(&settings.store),
            settings,
            transcripts,
            embedder: Mutex::new(embedder),
            wanted: Mutex::default(),
            wake: Notify::new(),
            progress: Mutex::default(),
            passes: watch::Sender::new(0),
            stopping: AtomicBool::new(false),
            stop: CancellationToken::new(),
        }
    }

    /// Does nothing after the worker has ended; whoever waits is told.
    fn want(&self, want: impl FnOnce(&mut WantedWork)) {
        let mut wanted = self.wanted.lock();
        if !wanted.is_closed {
            want(&mut wanted);
        }
        drop(wanted);
        self.wake.notify_one();
    }

    /// Asks for a look at the files, without waiting.
    pub(crate) fn request_pass(&self) {
        self.want(|wanted| wanted.pass = true);
    }

    /// Asks for a sync; the receiver is told what it did.
    pub(crate) fn request_sync(&self, request: SyncRequest) -> oneshot::Receiver<SyncReport> {
        let (sender, receiver) = oneshot::channel();
        self.want(|wanted| {
            wanted.pass = true;
            wanted.force |= request.force;
            wanted.waiting.push((request.until, sender));
        });
        receiver
    }

    /// Tells that a transcript has grown.
    pub(crate) fn transcript_changed(&self, name: &str) {
        self.want(|wanted| {
            wanted.transcripts.insert(name.to_owned());
            wanted.transcripts_since.get_or_insert_with(Instant::now);
        });
    }

    /// Tells that the vector of a query could not be compared with those of the index.
    pub(crate) fn vectors_doubted(&self, dimensions: usize) {
        self.want(|wanted| wanted.doubted = Some(dimensions));
    }

    /// Tells that the index file is damaged.
    pub(crate) fn damaged(&self) {
        self.want(|wanted| (wanted.damaged, wanted.pass) = (true, true));
    }

    /// Asks to remove what the index remembers of files that were changed to forget something.
    pub(crate) fn request_forget(&self, paths: Vec<String>) -> oneshot::Receiver<Result<(), StoreError>> {
        let (sender, receiver) = oneshot::channel();
        self.want(|wanted| wanted.forgotten.push(ForgetWork { paths, answer: sender }));
        receiver
    }

    /// Asks to give back memory and open files.
    pub(crate) fn request_release(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.want(|wanted| wanted.releasing.push(sender));
        receiver
    }

    /// Tells that another embedder is used now.
    pub(crate) fn embedder_changed(&self) {
        self.want(|wanted| (wanted.pass, wanted.embedder_changed) = (true, true));
    }

    /// Ends the worker after the transaction that it is in.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.stop.cancel();
    }

    /// Tells that the watch saw a change.
    pub(crate) fn changed(&self) {
        self.want(|wanted| {
            let now = Instant::now();
            let first = wanted.changed.map_or(now, |(first, _)| first);
            wanted.changed = Some((first, now));
        });
    }
}

/// Files whose forgotten texts are to be removed from the index.
pub(crate) struct ForgetWork {
    pub(crate) paths: Vec<String>,
    pub(crate) answer: oneshot::Sender<Result<(), StoreError>>,
}
