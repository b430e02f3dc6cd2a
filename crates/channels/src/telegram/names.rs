//! Names in the lists of who is heard, who is an owner, whose tools are which in a group and who may have commands elevated, looked up when the account is started (decision 21). From then on people are compared by their ids
//! alone: a name that is given up and taken by somebody else lets nobody in.
//!
//! Telegram tells bots the ids of public groups and channels, and of few people. A name that it does not know matches nobody, which the log
//! and `channels.status` say.

use std::collections::BTreeMap;
use std::time::Duration;

use openclaw_config::Config;
use parking_lot::Mutex;
use serde_json::json;

use super::account::Bot;
use super::failure::{ApiError, Refusal};
use super::target;
use super::wire::Wire as _;
use crate::AccountIo;
use crate::access::{AccessSettings, Entry, named_elsewhere};

/// Names of one account that are looked up.
const MOST: usize = 100;
/// Time that receiving waits for the names: they should be known before the first message, but a
/// network that is down must not delay receiving.
const HEAD_START: Duration = Duration::from_secs(5);
/// Between two tries where the network, or Telegram, is at fault.
const PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The names of an account, as they are compared, such as `@ada`.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<BTreeMap<String, Name>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    /// The name was not looked up yet, or the platform did not answer.
    Asked,
    /// The id that the name had at the start.
    Found(String),
    /// Telegram does not know it, or does not tell.
    Unknown,
}

impl Names {
    /// Collects the names in an account's lists, and in other lists that may mean people of its
    /// platform. If the section can't be read nobody is heard, by whatever name.
    pub(super) fn of(config: &Config, account: &str) -> Self {
        let mut access = AccessSettings::of(config, super::ID, account).unwrap_or_default();
        let mut elsewhere = named_elsewhere(config, super::ID);
        elsewhere.extend(access.senders_with_tools().map(str::to_owned));
        let entries = access.lists_mut().flatten().map(|Entry(entry)| entry.as_str());
        let entries = entries.chain(elsewhere.iter().map(String::as_str));
        let names = entries.filter_map(target::allow_name).take(MOST);
        Self(Mutex::new(names.map(|name| (name, Name::Asked)).collect()))
    }

    /// The id behind an entry of a list that is a name.
    pub(super) fn id_of(&self, entry: &str) -> Option<String> {
        match self.0.lock().get(&target::allow_name(entry)?)? {
            Name::Found(id) => Some(id.clone()),
            Name::Asked | Name::Unknown => None,
        }
    }

    /// The names that mean somebody.
    pub(super) fn of_id(&self, id: &str) -> Vec<String> {
        let names = self.0.lock();
        let own = names.iter().filter(|(_, name)| matches!(name, Name::Found(found) if found == id));
        own.map(|(name, _)| name.clone()).collect()
    }

    fn in_state(&self, state: &Name) -> Vec<String> {
        let names = self.0.lock();
        names.iter().filter(|(_, own)| *own == state).map(|(name, _)| name.clone()).collect()
    }

    fn set(&self, name: String, state: Name) {
        self.0.lock().insert(name, state);
    }
}

/// Does `work`, with the names looked up before it as far as that is done soon, and beside it otherwise.
pub(super) async fn beside<T>(bot: &Bot, io: &AccountIo, work: impl Future<Output = T>) -> T {
    let looking = look_up(bot, io);
    tokio::pin!(looking, work);
    let is_done = tokio::select! { biased;
        // Work that is to stop ends at once.
        () = io.stop.cancelled() => return work.await,
        done = tokio::time::timeout(HEAD_START, &mut looking) => done.is_ok(),
    };
    if !is_done {
        tokio::select! { biased;
            done = &mut work => return done,
            () = looking => {}
        }
    }
    work.await
}

/// Looks up what is not known yet, until Telegram has answered for each.
async fn look_up(bot: &Bot, io: &AccountIo) {
    let mut pause = PAUSE;
    loop {
        let asked = bot.names.in_state(&Name::Asked);
        if asked.is_empty() {
            return;
        }
        for name in asked {
            match ask(bot, &name).await {
                Ok(state) => {
                    match &state {
                        Name::Found(id) => {
                            tracing::info!(
                                account = bot.id,
                                name,
                                id,
                                "a name in an allowlist was looked up"
                            );
                        }
                        Name::Asked | Name::Unknown => tracing::warn!(
                            account = bot.id,
                            name,
                            "Telegram does not tell who this name of an allowlist is: it matches nobody; write the numeric id"
                        ),
                    }
                    bot.names.set(name, state);
                }
                Err(error) => {
                    tracing::warn!(account = bot.id, name, %error, "a name in an allowlist is looked up again later");
                    break;
                }
            }
        }
        let unknown = bot.names.in_state(&Name::Unknown);
        io.status.update(|status| status.unknown_names = unknown);
        if bot.names.in_state(&Name::Asked).is_empty() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// An error where it is worth asking again.
async fn ask(bot: &Bot, name: &str) -> Result<Name, ApiError> {
    match bot.client.call("getChat", &json!({"chat_id": name})).await {
        Ok(chat) => Ok(chat.int("id").map_or(Name::Unknown, |id| Name::Found(id.to_string()))),
        Err(error) => match error.refusal() {
            None
            | Some(
                Refusal::Slower(_) | Refusal::Trouble | Refusal::Gateway | Refusal::Token | Refusal::Conflict,
            ) => Err(error),
            Some(_) => Ok(Name::Unknown),
        },
    }
}
