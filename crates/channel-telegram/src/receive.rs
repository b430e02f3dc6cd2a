//! Brings what Telegram has, by long polling or by webhook, to the inbox.

use std::time::Duration;

use openclaw_channels::{AccountIo, Exit, Inbound};
use openclaw_config::clock::now_ms;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::bot::Bot;
use crate::client::Client;
use crate::entities::Me;
use crate::failure::{ApiRefusal, BotApiError};
use crate::offset::{OffsetFile, Taken};
use crate::params::set;
use crate::poller_slot::{self, PollerSlot};
use crate::polling::{AfterFailure, Polling, UpdatesRequest};
use crate::pressed::{self, ReceivedUpTo};
use crate::reception::{Answers, failed, give, works};
use crate::update::{Callback, UpdateTimes};
use crate::{name_lookup, stickers, update, webhook};

/// Time in seconds for which Telegram holds a poll when there is nothing.
const HOLD: u64 = 30;
/// A poll that is over by then is dead. No completed poll for this long plus a pause is what OpenClaw's watchdog of two minutes looks
/// for; sends do not count.
const POLL: Duration = Duration::from_secs(45);

/// Receives until it is stopped, or of no use.
pub(super) async fn run(bot: &Bot, io: AccountIo) -> Exit {
    let mode = if bot.settings.webhook_url.is_some() { "webhook" } else { "polling" };
    io.status.update(|status| {
        status.running = true;
        status.mode = Some(mode);
        status.last_start_at = Some(now_ms());
    });
    let exit = tokio::select! { biased;
        () = io.stop.cancelled() => Exit::Stopped,
        ready = ready(bot, &io) => match ready {
            Ok((me, slot)) if mode == "webhook" => {
                name_lookup::beside(bot, &io, webhook::listen(bot, me, &io, slot)).await
            }
            Ok((me, slot)) => name_lookup::beside(bot, &io, poll(bot, &me, &io, slot)).await,
            Err(exit) => exit,
        },
    };
    io.status.update(|status| {
        status.running = false;
        status.connected = false;
        status.last_stop_at = Some(now_ms());
        if let Exit::Lost(why) | Exit::Refused(why) | Exit::Misconfigured(why) = &exit {
            status.last_error = Some(why.clone());
        }
    });
    exit
}

/// Waits until nobody else in this process receives for the bot, and asks who we are.
async fn ready(bot: &Bot, io: &AccountIo) -> Result<(Me, PollerSlot), Exit> {
    let slot = match poller_slot::try_enter(bot.client.token()) {
        Some(slot) => slot,
        None => {
            let text = "another account has the same bot token; only one of them can receive";
            io.status.update(|status| status.last_error = Some(text.to_owned()));
            poller_slot::enter(bot.client.token()).await
        }
    };
    let mut polling = Polling::new(None);
    loop {
        match bot.me().await {
            Ok(me) => {
                let identity = [("bot".to_owned(), me.shown())].into_iter().collect();
                io.status.update(|status| status.identity = identity);
                return Ok((me, slot));
            }
            Err(error) => match failed(&mut polling, &error, io) {
                AfterFailure::Pause(wait) => tokio::time::sleep(wait).await,
                // The answer to `getMe` has no updates in it.
                AfterFailure::PassOver(_) => {}
                AfterFailure::End(exit) => return Err(exit),
            },
        }
    }
}

async fn poll(bot: &Bot, me: &Me, io: &AccountIo, _slot: PollerSlot) -> Exit {
    let offset = Offset::new(OffsetFile::new(&io.state_dir, &bot.id, me.id, bot.client.root()), &bot.id);
    let taken = offset.read().await;
    let mut polling = Polling::new(taken);
    let mut heard = ReceivedUpTo::until(taken.map(|taken| taken.at));
    let mut client = bot.client.with_new_connections();
    let mut answers = Answers::new(bot.client.clone());
    let mut has_webhook = true;
    // Telegram has just answered `getMe`; a quiet bot's first poll ends only after half a minute.
    works(io, &bot.client);
    let mut hold = HOLD;
    loop {
        let ask = polling.ask(now_ms());
        let got = tokio::select! { biased;
            () = io.stop.cancelled() => return offset.written(Exit::Stopped).await,
            got = get_updates(&client, ask, hold, &mut has_webhook) => got,
        };
        let next = match got {
            Ok(updates) => {
                works(io, &client);
                hold = HOLD;
                // Not interrupted: what the inbox took is to be remembered.
                let progress = (&mut polling, &offset, &mut heard);
                let pause = hand_over(bot, me, io, progress, &mut answers, &updates).await;
                let is_all = updates.as_array().is_some_and(|list| list.len() < ask.limit as usize);
                if is_all && pause.is_none() {
                    heard.all(now_ms());
                }
                pause.map(AfterFailure::Pause)
            }
            Err(error) => {
                client = bot.client.with_new_connections();
                // The return of Telegram should be noticed at once: unsent messages wait for that.
                // Another poller is only known by a poll that is held.
                hold = if error.refusal() == Some(ApiRefusal::Conflict) { HOLD } else { 0 };
                Some(failed(&mut polling, &error, io))
            }
        };
        match next {
            None => {}
            Some(AfterFailure::PassOver(update)) => {
                pass_over(bot, me, io, (&mut polling, &offset), update).await
            }
            Some(AfterFailure::End(exit)) => return offset.written(exit).await,
            Some(AfterFailure::Pause(wait)) => tokio::select! { biased;
                () = io.stop.cancelled() => return offset.written(Exit::Stopped).await,
                () = tokio::time::sleep(wait) => {}
            },
        }
    }
}

/// Asks for updates. A webhook that is set would keep them from us: the first time it is taken away, and what waits stays.
async fn get_updates(
    client: &Client,
    ask: UpdatesRequest,
    hold: u64,
    has_webhook: &mut bool,
) -> Result<Value, BotApiError> {
    if *has_webhook {
        client.call("deleteWebhook", &json!({"drop_pending_updates": false})).await?;
        *has_webhook = false;
    }
    let mut params = json!({"timeout": hold, "limit": ask.limit, "allowed_updates": update::KINDS});
    if let Some(offset) = ask.offset {
        set(&mut params, "offset", offset);
    }
    client.call_within("getUpdates", &params, POLL).await
}

/// Gives an answer's updates to the inbox, all or none. A pause where they were not taken.
async fn hand_over(
    bot: &Bot,
    me: &Me,
    io: &AccountIo,
    (polling, offset, heard): (&mut Polling, &Offset, &mut ReceivedUpTo),
    answers: &mut Answers,
    updates: &Value,
) -> Option<Duration> {
    let list = updates.as_array().map(Vec::as_slice).unwrap_or_default();
    let ids: Vec<i64> = list.iter().filter_map(update::id).collect();
    if ids.is_empty() && (!list.is_empty() || !updates.is_array()) {
        // The same updates would be delivered again at once, for ever.
        tracing::warn!(account = bot.id, "an answer of Telegram has no update that can be read");
        let why = "Telegram's answers have no update with a number that it gives; they are passed over";
        io.status.update(|status| status.last_error = Some(why.to_owned()));
        return Some(polling.not_taken(rand::random()));
    }
    let now = now_ms();
    let times = UpdateTimes { now, ahead: bot.client.clock().ahead() };
    let said: Vec<(i64, Option<i64>)> = list
        .iter()
        .filter_map(|update| Some((update::id(update)?, update::said_at(update, times))))
        .collect();
    if let Some(before) = polling.begin_anew(&said) {
        tracing::warn!(
            account = bot.id,
            before,
            "Telegram numbers its updates anew; what it brings counts as new"
        );
    }
    // An update without a number is recorded as unreadable.
    let is_new = |update: &&Value| update::id(update).is_none_or(|id| polling.is_new(id));
    let mut read: Vec<update::Update> =
        list.iter().filter(is_new).map(|each| update::read(each, &bot.id, me, times)).collect();
    let heard_now = pressed::date(&bot.client, &mut read, *heard, now).await;
    let callbacks: Vec<Callback> = read.iter().filter_map(|update| update.callback.clone()).collect();
    let mut events: Vec<Inbound> = read.into_iter().flat_map(|update| update.events).collect();
    bot.follow(&events);
    stickers::describe(&bot.state_dir, list, &mut events).await;
    if let Err(why) = give(io, events).await {
        tracing::warn!(account = bot.id, %why, "the inbox did not take Telegram's updates; they are asked for again");
        return Some(polling.not_taken(rand::random()));
    }
    *heard = heard_now;
    callbacks.into_iter().for_each(|callback| answers.add(callback));
    if polling.knows_all(&ids) {
        return Some(passed_over(bot, io, polling, &offset.file));
    }
    if let Some(taken) = polling.took(polling.end_of(&ids), now_ms()) {
        offset.took(taken);
        // Accepted updates are worked on first; the next poll can wait as long as the disk needs.
        tokio::task::yield_now().await;
    }
    None
}

/// Handles an answer without any new update: warns the owner and returns the pause before the next
/// poll.
fn passed_over(bot: &Bot, io: &AccountIo, polling: &mut Polling, file: &OffsetFile) -> Duration {
    let (last, file) = (polling.last().unwrap_or_default(), file.path().display());
    let (is_first, pause) = polling.passed_over(rand::random());
    let why = format!(
        "Telegram brings only updates with numbers up to {last}, which was taken before: they are passed over until one is two minutes younger \
         than that one. If messages stay away: openclaw channels stop --channel telegram --account {0}, delete {file}, openclaw channels start \
         --channel telegram --account {0}",
        bot.id
    );
    if is_first {
        tracing::warn!(account = bot.id, "{why}");
    }
    io.status.update(|status| status.last_error = Some(why));
    pause
}

/// An update that can't be read is not asked for for ever.
async fn pass_over(
    bot: &Bot,
    me: &Me,
    io: &AccountIo,
    (polling, offset): (&mut Polling, &Offset),
    number: i64,
) {
    let why = "it is no JSON, or too long";
    let event = update::numbered_unreadable(number, &bot.id, me, why, now_ms());
    if give(io, vec![event]).await.is_err() {
        // The update is requested once more.
        return;
    }
    io.status.update(|status| {
        status.last_error = Some(format!("Telegram's update {number} can't be read and was passed over"));
    });
    if let Some(taken) = polling.took(Some(number), now_ms()) {
        offset.took(taken);
    }
}

/// Delay before the offset is written, so that writing does not compete with handling the updates.
/// Updates that come meanwhile are written with it.
const WRITTEN_AFTER: Duration = Duration::from_millis(100);

/// Offset on disk. The inbox knows what came since it was written: after a crash that is brought
/// again and dropped.
struct Offset {
    file: OffsetFile,
    newest: watch::Sender<Option<Taken>>,
    writing: JoinHandle<()>,
}

impl Offset {
    fn new(file: OffsetFile, account: &str) -> Self {
        let (newest, taken) = watch::channel(None);
        let writing = tokio::spawn(write_down(file.clone(), account.to_owned(), taken));
        Self { file, newest, writing }
    }

    async fn read(&self) -> Option<Taken> {
        let file = self.file.clone();
        // Not read, it is asked for from the beginning, and the inbox knows what it had.
        tokio::task::spawn_blocking(move || file.read()).await.ok().flatten()
    }

    fn took(&self, taken: Taken) {
        self.newest.send_replace(Some(taken));
    }

    /// Ends when everything is written.
    async fn written(self, exit: Exit) -> Exit {
        drop(self.newest);
        let _ = self.writing.await;
        exit
    }
}

/// Writes what is taken, one after the other, until nobody takes any more.
async fn write_down(file: OffsetFile, account: String, mut taken: watch::Receiver<Option<Taken>>) {
    while taken.changed().await.is_ok() {
        let more = async { while taken.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(WRITTEN_AFTER, more).await;
        let Some(newest) = *taken.borrow_and_update() else { continue };
        let file = file.clone();
        let write = tokio::task::spawn_blocking(move || file.write(newest)).await;
        // An offset whose writer panicked is written with the next.
        if let Ok(Err(error)) = write {
            tracing::warn!(account, %error, "how far Telegram was read could not be written down");
        }
    }
}
