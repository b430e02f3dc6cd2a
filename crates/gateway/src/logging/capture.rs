//! The `tracing` layer: takes an event's values and hands them to the writing thread.

use std::fmt;
use std::time::SystemTime;

use openclaw_config::settings::LogLevel;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::record::{LogRecord, subsystem};
use super::sink::Sender;

/// Longest value of a field, and longest message, in characters.
const MAX_CHARS: usize = 8_000;

pub(super) struct Capture {
    sender: Sender,
    most: LogLevel,
}

impl Capture {
    pub(super) fn new(sender: Sender, most: LogLevel) -> Self {
        Self { sender, most }
    }
}

/// The level of the config that an event needs.
pub(super) fn needed(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

impl<S: Subscriber> Layer<S> for Capture {
    /// Libraries are heard when something is wrong, we ourselves as configured.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let level = *metadata.level();
        let is_ours = metadata.target().starts_with("openclaw");
        needed(level) <= self.most && (is_ours || level <= Level::WARN)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut values = Values::default();
        event.record(&mut values);
        self.sender.send(LogRecord {
            at: SystemTime::now(),
            level: *metadata.level(),
            subsystem: subsystem(metadata.target()),
            message: values.message,
            fields: values.fields,
        });
    }
}

#[derive(Default)]
struct Values {
    message: String,
    fields: Map<String, Value>,
}

impl Values {
    fn put(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }

    fn put_text(&mut self, field: &Field, text: &str) {
        let text: String = text.chars().take(MAX_CHARS).collect();
        if field.name() == "message" {
            self.message = text;
        } else {
            self.put(field, text.into());
        }
    }
}

impl Visit for Values {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}
