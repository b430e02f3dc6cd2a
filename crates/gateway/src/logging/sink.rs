//! The thread that writes the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use serde_json::Map;
use tracing::Level;

use super::capture::needed;
use super::file::RollingFile;
use super::record::LogRecord;
use super::{LogPlan, console};

/// Records that may wait. When the disk doesn't keep up, further ones are lost and counted: the gateway does not wait
/// for its log.
const QUEUE: usize = 8_192;
/// Time for which repetitions of a line are held back before their number is logged.
const REPEAT_PAUSE: Duration = Duration::from_secs(1);

/// The way to the writing thread.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    records: SyncSender<SinkMessage>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum SinkMessage {
    Record(Box<LogRecord>),
    Stop,
}

impl Sender {
    pub(super) fn send(&self, record: LogRecord) {
        if self.records.try_send(SinkMessage::Record(Box::new(record))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes what is left and ends the thread when dropped.
#[derive(Debug)]
pub struct LogGuard {
    sender: Sender,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        // Errors mean that the thread has ended already.
        let _ = self.sender.records.send(SinkMessage::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the thread.
pub(super) fn start(plan: LogPlan) -> (Sender, LogGuard) {
    let (records, queue) = sync_channel(QUEUE);
    let sender = Sender { records, lost: Arc::default() };
    let lost = Arc::clone(&sender.lost);
    let work = move || LogWriter::new(plan, lost).run(&queue);
    // Without the thread nothing is logged; the gateway works all the same.
    let thread = std::thread::Builder::new().name("log".to_owned()).spawn(work).ok();
    (sender.clone(), LogGuard { sender, thread })
}

struct LogWriter {
    plan: LogPlan,
    file: Option<RollingFile>,
    hostname: String,
    lost: Arc<AtomicU64>,
    last: Option<LogRecord>,
    repeated: u64,
}

impl LogWriter {
    fn new(plan: LogPlan, lost: Arc<AtomicU64>) -> Self {
        let file = plan.file.clone().map(RollingFile::new);
        let hostname =
            nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { plan, file, hostname, lost, last: None, repeated: 0 }
    }

    fn run(mut self, queue: &Receiver<SinkMessage>) {
        loop {
            match queue.recv_timeout(REPEAT_PAUSE) {
                Ok(SinkMessage::Record(record)) => self.take(record.masked(&self.plan.redactor)),
                Err(RecvTimeoutError::Timeout) => self.tell_repeated(),
                Ok(SinkMessage::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.tell_repeated();
                    return;
                }
            }
            self.tell_lost();
        }
    }

    /// Writes a record, or counts it when it says what the one before said.
    fn take(&mut self, record: LogRecord) {
        if self.last.as_ref().is_some_and(|last| record.repeats(last)) {
            self.repeated += 1;
            return;
        }
        self.tell_repeated();
        self.write(&record);
        self.last = Some(record);
    }

    fn tell_repeated(&mut self) {
        let count = std::mem::take(&mut self.repeated);
        if let Some(last) = self.last.as_ref().filter(|_| count > 0) {
            let mut record = last.clone();
            record.at = SystemTime::now();
            record.message = format!("{} (repeated {count}×)", record.message);
            self.write(&record);
        }
    }

    fn tell_lost(&mut self) {
        let count = self.lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            self.write(&LogRecord {
                at: SystemTime::now(),
                level: Level::WARN,
                subsystem: "gateway/log".to_owned(),
                message: format!("{count} log lines were lost: the log could not keep up"),
                fields: Map::new(),
            });
        }
    }

    fn write(&mut self, record: &LogRecord) {
        let needed = needed(record.level);
        if needed <= self.plan.console_level {
            let line = console::line(record, self.plan.console_style, self.plan.colour, &self.hostname);
            console::print(record, &line);
        }
        if needed > self.plan.file_level {
            return;
        }
        let line = record.json_line(&self.hostname);
        let Some(file) = self.file.as_mut() else { return };
        if let Err(error) = file.write(&line, jiff::Zoned::now().date()) {
            // Told once: without its file the log goes on on the console.
            self.file = None;
            let mut record = record.clone();
            record.level = Level::ERROR;
            record.message = format!("the log file cannot be written, logging to the console only: {error}");
            record.fields.clear();
            console::print(
                &record,
                &console::line(&record, self.plan.console_style, self.plan.colour, &self.hostname),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logging::{LogFile, Redactor};
    use openclaw_config::settings::{ConsoleStyle, LogLevel};
    use serde_json::Value;

    fn record(level: Level, message: &str) -> LogRecord {
        LogRecord {
            at: SystemTime::now(),
            level,
            subsystem: "gateway".to_owned(),
            message: message.to_owned(),
            fields: Map::new(),
        }
    }

    fn written(file_level: LogLevel, records: &[(Level, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway.log");
        let plan = LogPlan {
            file: Some(LogFile::Fixed(path.clone())),
            file_level,
            console_level: LogLevel::Silent,
            console_style: ConsoleStyle::Compact,
            colour: false,
            redactor: Arc::new(Redactor::new(&[])),
        };
        let (sender, guard) = start(plan);
        for (level, message) in records {
            sender.send(record(*level, message));
        }
        drop(guard);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let message =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["1"].as_str().unwrap().to_owned();
        text.lines().map(message).collect()
    }

    /// The reference inverts the filter (spec `operations.md` §4.1).
    #[test]
    fn a_level_lets_through_what_is_as_grave_or_graver() {
        let all =
            [(Level::DEBUG, "debug"), (Level::INFO, "info"), (Level::WARN, "warn"), (Level::ERROR, "error")];
        assert_eq!(written(LogLevel::Warn, &all), ["warn", "error"]);
        assert_eq!(written(LogLevel::Debug, &all), ["debug", "info", "warn", "error"]);
    }

    #[test]
    fn repetitions_are_counted_and_secrets_masked() {
        let lines = [
            (Level::INFO, "same"),
            (Level::INFO, "same"),
            (Level::INFO, "same"),
            (Level::INFO, "TOKEN=hush"),
        ];
        assert_eq!(written(LogLevel::Info, &lines), ["same", "same (repeated 2×)", "TOKEN=***"]);
    }
}
