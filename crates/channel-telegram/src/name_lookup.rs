//! Looks up the ids behind the names in lists of people.
//!
//! Telegram tells bots the ids of public groups and channels, and of few people. A name that it does
//! not know matches nobody, which the log and `channels.status` say.

use std::time::Duration;

use openclaw_channels::AccountIo;
use serde_json::json;

use crate::bot::Bot;
use crate::failure::{ApiRefusal, BotApiError};
use crate::names::NameLookup;
use crate::wire::Wire as _;

/// Time that receiving waits for the names: they should be known before the first message, but a
/// network that is down must not delay receiving.
const HEAD_START: Duration = Duration::from_secs(5);
/// Between two tries where the network, or Telegram, is at fault.
const PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

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
        let asked = bot.names.in_state(&NameLookup::Asked);
        if asked.is_empty() {
            return;
        }
        for name in asked {
            match ask(bot, &name).await {
                Ok(state) => {
                    match &state {
                        NameLookup::Found(id) => {
                            tracing::info!(
                                account = bot.id,
                                name,
                                id,
                                "a name in an allowlist was looked up"
                            );
                        }
                        NameLookup::Asked | NameLookup::Unknown => tracing::warn!(
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
        let unknown = bot.names.in_state(&NameLookup::Unknown);
        io.status.update(|status| status.unknown_names = unknown);
        if bot.names.in_state(&NameLookup::Asked).is_empty() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// An error where it is worth asking again.
async fn ask(bot: &Bot, name: &str) -> Result<NameLookup, BotApiError> {
    match bot.client.call("getChat", &json!({"chat_id": name})).await {
        Ok(chat) => Ok(chat.int("id").map_or(NameLookup::Unknown, |id| NameLookup::Found(id.to_string()))),
        Err(error) => match error.refusal() {
            None
            | Some(
                ApiRefusal::Slower(_)
                | ApiRefusal::Trouble
                | ApiRefusal::Gateway
                | ApiRefusal::Token
                | ApiRefusal::Conflict,
            ) => Err(error),
            Some(_) => Ok(NameLookup::Unknown),
        },
    }
}
