//! Linux's word of changes (`inotify`).

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use nix::sys::statfs::{self, FsType, statfs};
use tokio::io::unix::AsyncFd;

use super::Interest;

/// The changes asked for. `IN_MODIFY` is not among them: a file that is open for long, such as a database, would tell of each write.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_CLOSE_WRITE
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_CREATE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVE)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF);

/// File systems whose files others change without our kernel.
const OF_OTHERS: [FsType; 9] = [
    statfs::NFS_SUPER_MAGIC,
    statfs::SMB_SUPER_MAGIC,
    statfs::FUSE_SUPER_MAGIC,
    statfs::AFS_SUPER_MAGIC,
    statfs::CODA_SUPER_MAGIC,
    statfs::OCFS2_SUPER_MAGIC,
    // Newer versions of SMB, and 9P.
    FsType(0xFF53_4D42),
    FsType(0xFE53_4D42),
    FsType(0x0102_1997),
];

/// The watches that the kernel was asked for.
#[derive(Debug)]
pub(super) struct Kernel {
    events: AsyncFd<Events>,
    watched: HashMap<WatchDescriptor, Interest>,
    /// True if something was gone when a watch was to be set.
    has_missed: bool,
}

#[derive(Debug)]
struct Events(Inotify);

impl AsRawFd for Events {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Kernel {
    /// `None` where the system gives no more of them.
    #[expect(
        deprecated,
        reason = "what takes its place is unsafe; `Events` owns its descriptor and names no other"
    )]
    pub(super) fn new() -> Option<Self> {
        let asked = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).map_err(io::Error::from);
        match asked.and_then(|inotify| AsyncFd::new(Events(inotify))) {
            Ok(events) => Some(Self { events, watched: HashMap::new(), has_missed: false }),
            Err(error) => {
                tracing::warn!(%error, "the system does not tell of edits; files are looked at now and then");
                None
            }
        }
    }

    /// Watches these and nothing else. Returns false if not all changes will be told of.
    pub(super) fn set(&mut self, wanted: HashMap<PathBuf, Interest>) -> bool {
        let inotify = &self.events.get_ref().0;
        let mut now: HashMap<WatchDescriptor, Interest> = HashMap::new();
        let mut hears_all = true;
        for (path, interest) in wanted {
            match inotify.add_watch(&path, CHANGES) {
                Ok(watch) => {
                    // Two paths may lead to one directory.
                    let both = now.remove(&watch).map_or(interest.clone(), |other| other.and(interest));
                    now.insert(watch, both);
                    hears_all &= !is_of_others(&path);
                }
                Err(Errno::ENOENT | Errno::ENOTDIR) => self.has_missed = true,
                Err(error) => {
                    tracing::debug!(path = %path.display(), %error, "the system does not tell of edits here");
                    hears_all = false;
                }
            }
        }
        for watch in self.watched.keys().filter(|watch| !now.contains_key(watch)) {
            // The watch of something that is gone has ended by itself.
            let _ = inotify.rm_watch(*watch);
        }
        self.watched = now;
        hears_all
    }

    /// Waits until something of interest has happened.
    ///
    /// # Errors
    /// When the system tells nothing any more.
    pub(super) async fn changed(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_missed) {
            return Ok(());
        }
        loop {
            let mut ready = self.events.readable().await?;
            match ready.get_inner().0.read_events() {
                Ok(events) if events.iter().any(|event| matters(&self.watched, event)) => return Ok(()),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// True if an event is about what is watched, or if events were lost.
fn matters(watched: &HashMap<WatchDescriptor, Interest>, event: &InotifyEvent) -> bool {
    match (watched.get(&event.wd), &event.name) {
        _ if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) => true,
        // The word that a watch has ended, which something else has said already; or one that was taken back.
        _ if event.mask.contains(AddWatchFlags::IN_IGNORED) => false,
        (Some(Interest::Names(names)), Some(name)) => names.contains(name),
        (Some(Interest::All | Interest::Names(_)), _) => true,
        (None, _) => false,
    }
}

impl Interest {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Names(mut names), Self::Names(others)) => {
                names.extend(others);
                Self::Names(names)
            }
            (Self::All, _) | (_, Self::All) => Self::All,
        }
    }
}

fn is_of_others(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| OF_OTHERS.contains(&found.filesystem_type()))
}
