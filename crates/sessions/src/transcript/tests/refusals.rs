//! Logs that refuse: a write that ends halfway, a cut or a sync that fails.

use std::ffi::OsString;
use std::io;

use openclaw_protocol::{AgentId, SessionId};
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;

/// Result of the next call to a log; all is well when none is left.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Well,
    /// A write leaves so many hundredths of its bytes, another call does nothing.
    Fails(usize),
}

type Outcomes = Arc<Mutex<Vec<Outcome>>>;

/// Logs in memory, of which some calls fail.
#[derive(Debug, Clone)]
struct RefusingLogs {
    logs: MemoryLogs,
    outcomes: Outcomes,
}

#[derive(Debug)]
struct RefusingLog {
    log: Box<dyn TranscriptLog>,
    outcomes: Outcomes,
}

fn refused() -> io::Error {
    nix::errno::Errno::ENOSPC.into()
}

impl RefusingLogs {
    fn wrap(&self, log: Box<dyn TranscriptLog>) -> Box<dyn TranscriptLog> {
        Box::new(RefusingLog { log, outcomes: Arc::clone(&self.outcomes) })
    }
}

impl TranscriptLogs for RefusingLogs {
    fn version(&self, log: &TranscriptRef) -> io::Result<Option<FileVersion>> {
        self.logs.version(log)
    }

    fn has_place(&self, log: &TranscriptRef) -> bool {
        self.logs.has_place(log)
    }

    fn names_beside(&self, log: &TranscriptRef) -> io::Result<Vec<OsString>> {
        self.logs.names_beside(log)
    }

    fn open(&self, log: &TranscriptRef, mode: OpenMode) -> io::Result<Box<dyn TranscriptLog>> {
        Ok(self.wrap(self.logs.open(log, mode)?))
    }

    fn create(&self, log: &TranscriptRef, beginning: &[u8]) -> io::Result<Box<dyn TranscriptLog>> {
        Ok(self.wrap(self.logs.create(log, beginning)?))
    }

    fn replace(
        &self,
        log: &TranscriptRef,
        kept: Option<&TranscriptRef>,
        write: &mut WriteLog<'_>,
    ) -> io::Result<()> {
        self.logs.replace(log, kept, write)
    }

    fn rename(&self, from: &TranscriptRef, to: &TranscriptRef) -> io::Result<()> {
        self.logs.rename(from, to)
    }

    fn try_lock(&self, log: &TranscriptRef) -> io::Result<Result<HeldLock, Option<u32>>> {
        self.logs.try_lock(log)
    }

    fn is_locked(&self, log: &TranscriptRef) -> io::Result<bool> {
        self.logs.is_locked(log)
    }

    fn for_many(&self) -> Arc<dyn TranscriptLogs> {
        Arc::new(self.clone())
    }
}

impl RefusingLog {
    fn next(&self) -> Outcome {
        self.outcomes.lock().pop().unwrap_or(Outcome::Well)
    }
}

impl TranscriptLog for RefusingLog {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.log.read_at(bytes, offset)
    }

    fn version(&self) -> io::Result<FileVersion> {
        self.log.version()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.next() {
            Outcome::Well => self.log.append(bytes),
            Outcome::Fails(hundredths) => {
                self.log.append(&bytes[..bytes.len() * hundredths / 100])?;
                Err(refused())
            }
        }
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        match self.next() {
            Outcome::Well => self.log.cut(len),
            Outcome::Fails(_) => Err(refused()),
        }
    }

    fn sync(&mut self) -> io::Result<FileVersion> {
        match self.next() {
            Outcome::Well => self.log.sync(),
            Outcome::Fails(_) => Err(refused()),
        }
    }
}

fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
    let one = prop_oneof![3 => Just(Outcome::Well), 1 => (0..=95_usize).prop_map(Outcome::Fails)];
    prop::collection::vec(one, 0..40)
}

proptest! {
    /// Whatever refuses, the transcript has the entries that it took, in their order, and nothing else: for whoever has it
    /// open, and for whoever opens it then.
    #[test]
    fn an_entry_is_there_whole_or_not_at_all(outcomes in outcomes(), count in 1..20_usize, reopens in any::<u32>()) {
        let refusing = RefusingLogs { logs: MemoryLogs::default(), outcomes: Arc::default() };
        let named = refusing.logs.transcripts().of_new(&AgentId::default(), &SessionId::new("s")).unwrap();
        let logs: Arc<dyn TranscriptLogs> = Arc::new(refusing.clone());
        let mut open = OpenTranscript::create(&logs, &named, &new()).unwrap();
        *refusing.outcomes.lock() = outcomes;
        let mut taken = Vec::new();
        for n in 0..count {
            let said = open.refresh().and_then(|()| open.append(user(&n.to_string()).into(), None));
            taken.extend(said.ok().map(|_| n.to_string()));
            let is_durable = open.sync().is_ok();
            prop_assert!(is_durable || !open.is_untouched());
            // Another process, or this one after its end.
            if reopens >> n & 1 == 1 && let Ok(again) = OpenTranscript::open(&logs, &named) {
                open = again;
            }
        }
        refusing.outcomes.lock().clear();
        prop_assert_eq!(&texts(&open.context().unwrap()), &taken);
        prop_assert_eq!(&texts(&OpenTranscript::open(&logs, &named).unwrap().context().unwrap()), &taken);
    }
}
