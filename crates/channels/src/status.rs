//! How an account stands, as `channels.status` shows it.

use tokio::sync::watch;

/// How an account stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountStatus {
    /// It is started.
    pub running: bool,
    /// The platform answers. A transport that has fallen silent is not connected.
    pub connected: bool,
    /// How it receives, such as `polling` or `webhook`.
    pub mode: Option<&'static str>,
    /// Why it does not work, for people; gone when it works again.
    pub last_error: Option<String>,
    /// Tries to connect since it last worked.
    pub reconnect_attempts: u32,
    /// The platform refuses the credentials.
    pub is_refused: bool,
    /// Names in its allowlists that nobody is known by: they match nobody.
    pub unknown_names: Vec<String>,
    /// By how many milliseconds this machine's clock is ahead of the platform's; less than 0 where it is behind. 0: it is right, as far as
    /// is known.
    pub clock_ahead_ms: i64,
    /// How often it was started again by itself.
    pub restart_count: u32,
    /// How it was lost last.
    pub last_disconnect: Option<Disconnect>,
    /// Unix milliseconds.
    pub last_start_at: Option<i64>,
    /// Unix milliseconds.
    pub last_stop_at: Option<i64>,
    /// Unix milliseconds.
    pub last_connected_at: Option<i64>,
    /// Unix milliseconds at which the platform last brought something, or said that there is nothing.
    pub last_event_at: Option<i64>,
    /// Unix milliseconds.
    pub last_inbound_at: Option<i64>,
}

/// How an account was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disconnect {
    /// Unix milliseconds.
    pub at: i64,
    /// Why, for people.
    pub error: String,
    /// Whether the platform refuses the credentials.
    pub logged_out: bool,
}

/// What to do where a clock is wrong.
pub const SET_THE_CLOCK: &str = "Set this machine's clock, best by NTP: timedatectl set-ntp true";

/// That this machine's clock is wrong, and by how much.
pub fn clock_is_wrong(ahead_ms: i64, platform: &str) -> String {
    let minutes = (ahead_ms.unsigned_abs() + 30_000) / 60_000;
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    let direction = if ahead_ms < 0 { "behind" } else { "ahead of" };
    format!("This machine's clock is {minutes} {unit} {direction} {platform}'s")
}

/// Where an account says how it stands. Clones are the same place.
#[derive(Debug, Clone)]
pub struct StatusReport(watch::Sender<AccountStatus>);

impl Default for StatusReport {
    fn default() -> Self {
        Self(watch::Sender::new(AccountStatus::default()))
    }
}

impl StatusReport {
    /// Changes it. Whoever watches hears of it only if it is another.
    pub fn update(&self, change: impl FnOnce(&mut AccountStatus)) {
        self.0.send_if_modified(|status| {
            let before = status.clone();
            change(status);
            *status != before
        });
    }

    /// As it is now.
    pub fn now(&self) -> AccountStatus {
        self.0.borrow().clone()
    }

    /// Watches it.
    pub fn watch(&self) -> watch::Receiver<AccountStatus> {
        self.0.subscribe()
    }
}
