//! Status of an account, as `channels.status` shows it.

use tokio::sync::watch;

/// Status of an account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountStatus {
    /// True if the account is started.
    pub running: bool,
    /// The platform answers. A transport that has fallen silent is not connected.
    pub connected: bool,
    /// Method of receiving, such as `polling` or `webhook`.
    pub mode: Option<&'static str>,
    /// Identity of the account on its platform, as [`Probe::details`](crate::Probe::details) shows
    /// it; empty until the platform has told it.
    pub identity: serde_json::Map<String, serde_json::Value>,
    /// Error for people while the account does not work; absent when it works again.
    pub last_error: Option<String>,
    /// Tries to connect since it last worked.
    pub reconnect_attempts: u32,
    /// The platform refuses the credentials.
    pub is_refused: bool,
    /// Names in its allowlists that nobody is known by: they match nobody.
    pub unknown_names: Vec<String>,
    /// Lead of this machine's clock over the platform's in milliseconds; negative if it is behind.
    /// 0: it is right, as far as is known.
    pub clock_ahead_ms: i64,
    /// Number of automatic restarts.
    pub restart_count: u32,
    /// Last loss of the connection.
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

/// Loss of an account's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disconnect {
    /// Unix milliseconds.
    pub at: i64,
    /// Reason for people.
    pub error: String,
    /// True if the platform rejected the credentials.
    pub logged_out: bool,
}

/// Advice for a clock that is wrong.
pub const SET_THE_CLOCK: &str = "Set this machine's clock, best by NTP: timedatectl set-ntp true";

/// Returns the message that this machine's clock is wrong, and by how much.
pub fn clock_is_wrong(ahead_ms: i64, platform: &str) -> String {
    let minutes = (ahead_ms.unsigned_abs() + 30_000) / 60_000;
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    let direction = if ahead_ms < 0 { "behind" } else { "ahead of" };
    format!("This machine's clock is {minutes} {unit} {direction} {platform}'s")
}

/// Handle through which an account reports its status. Clones report to the same place.
#[derive(Debug, Clone)]
pub struct StatusReport(watch::Sender<AccountStatus>);

impl Default for StatusReport {
    fn default() -> Self {
        Self(watch::Sender::new(AccountStatus::default()))
    }
}

impl StatusReport {
    /// Changes it. Watchers are notified only if it differs.
    pub fn update(&self, change: impl FnOnce(&mut AccountStatus)) {
        self.0.send_if_modified(|status| {
            let before = status.clone();
            change(status);
            *status != before
        });
    }

    /// Returns the current status.
    pub fn now(&self) -> AccountStatus {
        self.0.borrow().clone()
    }

    /// Watches it.
    pub fn watch(&self) -> watch::Receiver<AccountStatus> {
        self.0.subscribe()
    }
}
