//! Laws of the port, where nobody knows what the bytes mean.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use openclaw_protocol::SessionId;

use super::{Storage, agent};
use crate::transcript::{OpenMode, TranscriptLog, TranscriptLogs, TranscriptRef};

fn logs(storage: &dyn Storage) -> (Arc<dyn TranscriptLogs>, TranscriptRef) {
    let all = storage.open();
    let named = all.of_new(&agent(), &SessionId::new("s")).unwrap();
    (Arc::clone(all.logs()), named)
}

fn read(log: &dyn TranscriptLog) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(log.version().unwrap().len()).unwrap()];
    let mut read = 0;
    while read < bytes.len() {
        read += log.read_at(&mut bytes[read..], read as u64).unwrap();
    }
    assert_eq!(log.read_at(&mut [0], bytes.len() as u64).unwrap(), 0, "this is the end");
    bytes
}

fn stored(logs: &dyn TranscriptLogs, log: &TranscriptRef) -> io::Result<Vec<u8>> {
    logs.open(log, OpenMode::Read).map(|log| read(&*log))
}

pub(super) async fn a_log_has_the_bytes_that_were_written(storage: &dyn Storage) {
    let (logs, named) = logs(storage);
    assert_eq!(logs.version(&named).unwrap(), None);
    assert_eq!(stored(&*logs, &named).unwrap_err().kind(), ErrorKind::NotFound);
    let mut log = logs.create(&named, b"one").unwrap();
    log.append(b"two").unwrap();
    let mut part = [0; 3];
    assert_eq!((log.read_at(&mut part, 2).unwrap(), &part), (3, b"etw"));
    // Others see it before it is synced, in the logs of another process too.
    let others = self::logs(storage).0;
    assert_eq!(stored(&*others, &named).unwrap(), b"onetwo");
    let synced = log.sync().unwrap();
    assert_eq!((synced.len(), logs.version(&named).unwrap()), (6, Some(synced)));
    log.cut(4).unwrap();
    assert_eq!(stored(&*logs, &named).unwrap(), b"onet");
    log.append(b"!").unwrap();
    assert_eq!(read(&*log), b"onet!");
    assert_ne!(logs.version(&named).unwrap(), Some(synced));
}

pub(super) async fn a_log_is_created_once(storage: &dyn Storage) {
    let (logs, named) = logs(storage);
    drop(logs.create(&named, b"one").unwrap());
    assert!(logs.has_place(&named));
    assert_eq!(logs.create(&named, b"two").unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(stored(&*logs, &named).unwrap(), b"one");
    assert_eq!(logs.names_beside(&named).unwrap(), [named.file_name()]);
}

pub(super) async fn a_replaced_log_stays_with_whoever_has_it_open(storage: &dyn Storage) {
    let (logs, named) = logs(storage);
    let mut old = logs.create(&named, b"old").unwrap();
    let refused = logs.replace(&named, None, &mut |out| {
        out.write_all(b"half")?;
        Err(io::Error::other("no"))
    });
    assert!(refused.is_err());
    assert_eq!(stored(&*logs, &named).unwrap(), b"old", "at once or not at all");
    let kept = named.sibling("kept");
    logs.replace(&named, Some(&kept), &mut |out| out.write_all(b"new")).unwrap();
    old.append(b"er").unwrap();
    assert_eq!(
        (stored(&*logs, &named).unwrap(), stored(&*logs, &kept).unwrap()),
        (b"new".into(), b"older".into())
    );
    let now = logs.version(&named).unwrap().unwrap();
    assert!(!now.is_same_file(&old.version().unwrap()));
    // Where there is none yet, it is made.
    let more = named.sibling("more");
    logs.replace(&more, None, &mut |out| out.write_all(b"more")).unwrap();
    assert_eq!(stored(&*logs, &more).unwrap(), b"more");
}

pub(super) async fn a_log_may_take_another_name(storage: &dyn Storage) {
    let (logs, named) = logs(storage);
    let other = named.sibling("other");
    assert_eq!(logs.rename(&named, &other).unwrap_err().kind(), ErrorKind::NotFound);
    drop(logs.create(&named, b"one").unwrap());
    let version = logs.version(&named).unwrap();
    logs.rename(&named, &other).unwrap();
    assert_eq!((logs.version(&named).unwrap(), logs.version(&other).unwrap()), (None, version));
    assert_eq!(logs.names_beside(&named).unwrap(), ["other"]);
}

pub(super) async fn what_is_written_goes_on_from_what_is_there(storage: &dyn Storage) {
    let (logs, named) = logs(storage);
    let mut ours = logs.create(&named, b"a").unwrap();
    let mut theirs = logs.open(&named, OpenMode::Append).unwrap();
    theirs.append(b"b").unwrap();
    ours.append(b"c").unwrap();
    assert_eq!(read(&*theirs), b"abc");
    assert!(ours.version().unwrap().is_same_file(&theirs.version().unwrap()));
}
