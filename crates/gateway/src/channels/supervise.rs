//! The life of one account: started, started again when it is lost, left alone when only a person can help.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use openclaw_channels::platforms::AtWork;
use openclaw_channels::{Account, AccountIo, Channel, Disconnect, Exit, InboundSink, StatusReport, Unusable};
use openclaw_config::Config;
use openclaw_sessions::ids;
use openclaw_sessions::time::now_ms;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::AccountParts;
use super::guesses::SharedThrottle;

/// The pause before a lost account is started again, which doubles each time, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// An account that worked so long begins with the first pause again.
const HEALTHY: Duration = Duration::from_secs(10 * 60);
/// Pause before an account whose credentials were refused is tried again.
const REFUSED_PAUSE: Duration = Duration::from_secs(10 * 60);
/// Share by which a pause varies.
const JITTER: f64 = 0.2;

/// Context that an account needs for its life.
pub(super) struct AccountContext {
    pub(super) parts: Arc<AccountParts>,
    pub(super) config: Arc<Config>,
    pub(super) channel: Arc<dyn Channel>,
    pub(super) id: String,
    pub(super) sink: Arc<dyn InboundSink>,
    pub(super) stop: CancellationToken,
}

impl AccountContext {
    /// Runs the account until it is stopped.
    pub(super) async fn run(self) {
        let name = self.channel.info().id;
        let status = StatusReport::default();
        let mut pause = FIRST_PAUSE;
        while !self.stop.is_cancelled() {
            let account = match self.channel.account(&self.config, &self.id) {
                Ok(account) => account,
                Err(why @ (Unusable::Disabled | Unusable::Unknown(_) | Unusable::NotConfigured { .. })) => {
                    tracing::warn!(channel = name, account = %self.id, "channel.state can't be started: {why}");
                    break;
                }
            };
            let at_work = AtWork { account: Arc::clone(&account), status: status.clone() };
            self.parts.platforms.begin(name, &self.id, at_work);
            self.parts.dispatch.outbox().register(name, &self.id, Arc::clone(&account));
            let begun = Instant::now();
            status.update(|status| {
                status.running = true;
                status.is_refused = false;
                status.last_start_at = Some(now_ms());
            });
            self.parts.changes.note();
            tracing::info!(channel = name, account = %self.id, "channel.state started");
            let exit = self.work_and_offer(account.as_ref(), &status).await;
            status.update(|status| {
                status.running = false;
                status.connected = false;
                status.last_stop_at = Some(now_ms());
            });
            if begun.elapsed() >= HEALTHY {
                pause = FIRST_PAUSE;
            }
            let is_refused = matches!(exit, Exit::Refused(_));
            let (why, wait) = match exit {
                Exit::Stopped => break,
                Exit::Lost(why) => {
                    let wait = varied(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    (why, Some(wait))
                }
                Exit::Refused(why) => (why, Some(REFUSED_PAUSE)),
                Exit::Misconfigured(why) => (why, None),
            };
            tracing::warn!(channel = name, account = %self.id, again_in = wait.map(tracing::field::debug), "channel.state lost: {why}");
            status.update(|status| {
                status.is_refused = is_refused;
                status.last_disconnect =
                    Some(Disconnect { at: now_ms(), error: why.clone(), logged_out: is_refused });
                status.last_error = Some(why);
                status.reconnect_attempts += 1;
            });
            self.parts.changes.note();
            tokio::select! { biased;
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
            status.update(|status| status.restart_count += u32::from(!self.stop.is_cancelled()));
        }
        self.parts.dispatch.outbox().unregister(name, &self.id);
        self.parts.platforms.end(name, &self.id);
        self.parts.changes.note();
        tracing::info!(channel = name, account = %self.id, "channel.state stopped");
    }

    /// Works for the account and offers its command menu beside that. The work does not wait for
    /// the menu, and the menu ends with the work.
    async fn work_and_offer(&self, account: &dyn Account, status: &StatusReport) -> Exit {
        let beside = async { tokio::join!(self.offer_commands(account), self.watch(status)) };
        tokio::select! { biased;
            exit = self.work(account, status) => exit,
            // Watching has no end.
            _ = beside => Exit::Stopped,
        }
    }

    /// Resumes sending as soon as the platform can be reached again.
    async fn watch(&self, status: &StatusReport) {
        let mut watched = status.watch();
        let mut was_connected = true;
        loop {
            let is_connected = watched.borrow_and_update().connected;
            if is_connected != was_connected {
                self.parts.changes.note();
            }
            let (outbox, name) = (self.parts.dispatch.outbox(), self.channel.info().id);
            match (was_connected, is_connected) {
                (false, true) => outbox.hurry(name, &self.id),
                (true, false) => outbox.lost(name, &self.id),
                (true, true) | (false, false) => {}
            }
            was_connected = is_connected;
            if watched.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// A panic ends this account's work and nothing else.
    async fn work(&self, account: &dyn Account, status: &StatusReport) -> Exit {
        let io = AccountIo {
            inbox: Arc::clone(&self.sink),
            status: status.clone(),
            state_dir: Arc::clone(&self.parts.state_dir),
            stop: self.stop.clone(),
            guesses: Arc::new(SharedThrottle(Arc::clone(&self.parts.entrance))),
        };
        let working = AssertUnwindSafe(account.run(io)).catch_unwind();
        working
            .await
            .unwrap_or_else(|_| Exit::Lost("it ended unexpectedly; the gateway's log says more".to_owned()))
    }

    /// Offers the command menu until the platform takes it. A menu that can't be offered keeps
    /// nobody from writing.
    async fn offer_commands(&self, account: &dyn Account) {
        let mut pause = FIRST_PAUSE;
        loop {
            let commands = self.parts.dispatch.menu().await;
            let Err(error) = account.offer_commands(&commands).await else { return };
            tracing::warn!(channel = self.channel.info().id, account = %self.id, %error, again_in = ?pause, "the menu of commands was not offered");
            tokio::time::sleep(varied(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn varied(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + JITTER * (2.0 * ids::draw_share() - 1.0))
}
