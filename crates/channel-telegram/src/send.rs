//! Sends a part. Makes one request, unless Telegram refuses something of it that can be left out:
//! then another without it. A refusal says that nothing was sent, so nothing comes twice.

use std::convert::Infallible;
use std::time::Duration;

use openclaw_channels::{
    Activity, Address, Content, FormattedText, MediaKind, OutgoingPart, Part, Receipt, SendAttempt, SendError,
};
use serde_json::{Map, Value};

use crate::bot::Bot;
use crate::failure::{ApiRefusal, BotApiError};
use crate::outgoing::{BotRequest, Without, keyboard, request};
use crate::wire::Wire as _;

/// Things that can be left out, and a move.
const MOST_REPAIRS: usize = 6;
/// UTF-16 units of a piece of a text that was too long whole: markup makes no text twice as long as this.
const PIECE: usize = 2000;
/// Tries for a later piece, when earlier ones were sent already.
const PIECE_TRIES: u32 = 4;
/// Longest wait between them.
const PIECE_WAIT: Duration = Duration::from_secs(60);
/// Interval at which the upload activity is shown: Telegram forgets it after five seconds.
const SHOWN_EVERY: Duration = Duration::from_secs(4);
/// Number of times that the activity is shown: two minutes, as for typing.
const MOST_SHOWN: u32 = 30;

/// Sends a part whose turn it is.
pub(super) async fn send(
    bot: &Bot,
    outgoing: OutgoingPart<'_>,
    attempt: SendAttempt,
) -> Result<Receipt, SendError> {
    let sent = match whole(bot, outgoing, attempt).await {
        Ok(receipt) => Ok(receipt),
        Err(SendFailure::Told(error)) => Err(error),
        Err(SendFailure::TooLong) => pieces(bot, outgoing, attempt).await,
    };
    if let (Ok(receipt), Some(keyboard)) = (&sent, keyboard(&outgoing.part.buttons)) {
        let chat = bot.current(&outgoing.address.target);
        // The last message has the buttons.
        if let Some(message) = receipt.message_ids.last() {
            bot.keyboards.put(&chat, message, Some(keyboard)).await;
        }
    }
    sent
}

enum SendFailure {
    Told(SendError),
    TooLong,
}

async fn whole(bot: &Bot, outgoing: OutgoingPart<'_>, attempt: SendAttempt) -> Result<Receipt, SendFailure> {
    let mut chat = bot.current(&outgoing.address.target);
    let mut without = Without::default();
    for _ in 0..MOST_REPAIRS {
        let request = request(outgoing, &chat, attempt, without, &bot.settings);
        let error = match issue(bot, outgoing.address, &request).await {
            Ok(message) => return Ok(receipt(&message, outgoing.address)),
            Err(error) => error,
        };
        match error.refusal() {
            Some(ApiRefusal::Moved(to)) => {
                chat = bot.has_moved(&outgoing.address.target, to);
                bot.wait_turn(&chat).await.map_err(SendFailure::Told)?;
            }
            Some(ApiRefusal::Markup | ApiRefusal::TooLong)
                if !without.markup && has_markup(outgoing.part) =>
            {
                without.markup = true;
            }
            Some(ApiRefusal::Quote) if !without.quote => without.quote = true,
            // The topic was deleted in the meantime: better in the wrong place than nowhere.
            Some(ApiRefusal::NoThread) if !without.topic => without.topic = true,
            Some(ApiRefusal::Photo | ApiRefusal::NoVoice) if !without.kind => without.kind = true,
            Some(ApiRefusal::TooLong) => return Err(SendFailure::TooLong),
            Some(ApiRefusal::NotModified) => return Ok(Receipt::default()),
            Some(_) | None => return Err(SendFailure::Told(told(bot, outgoing.part, &chat, error))),
        }
        tracing::info!(chat, method = request.method, %error, "sent again without what Telegram refused");
    }
    let reason = "Telegram refused the message in every form".to_owned();
    Err(SendFailure::Told(match outgoing.part.file_name() {
        Some(_) => SendError::File { reason },
        None => SendError::Final { reason },
    }))
}

/// Converts the failure of sending a part to the error for the outbox.
fn told(bot: &Bot, part: &Part, chat: &str, error: BotApiError) -> SendError {
    match error.of_file().filter(|_| part.file_name().is_some()) {
        Some(reason) => SendError::File { reason },
        None => bot.failed(chat, error),
    }
}

async fn issue(bot: &Bot, at: &Address, request: &BotRequest) -> Result<Value, BotApiError> {
    let Some((kind, upload)) = &request.upload else {
        return bot.client.call(request.method, &request.params).await;
    };
    // Nothing is shown once the file has come.
    tokio::select! { biased;
        done = bot.client.upload(request.method, &request.params, upload) => done,
        never = show_upload(bot, at, *kind) => match never {},
    }
}

/// Shows that a file is on its way, for as long as typing would be shown. The caller stops polling
/// it when the file has come.
async fn show_upload(bot: &Bot, at: &Address, kind: MediaKind) -> Infallible {
    for _ in 0..MOST_SHOWN {
        if let Err(error) = bot.activity(at, Activity::Uploading(kind)).await {
            tracing::debug!(%error, "that a file is sent is not shown");
            break;
        }
        tokio::time::sleep(SHOWN_EVERY).await;
    }
    std::future::pending().await
}

fn receipt(message: &Value, to: &Address) -> Receipt {
    let id = |value: Option<i64>| value.map(|id| id.to_string());
    let target = id(message.at("chat").int("id")).filter(|target| *target != to.target);
    Receipt { message_ids: id(message.int("message_id")).into_iter().collect(), target }
}

fn has_markup(part: &Part) -> bool {
    let words = match &part.content {
        Content::Text(words) => Some(words),
        Content::Media { caption, .. } => caption.as_ref(),
        Content::Poll { .. } | Content::Sticker { .. } => None,
    };
    words.is_some_and(|words| words.formatted.is_some())
}

/// Sends in pieces what is too long although it was measured: a file first, without its words, then these, without markup.
async fn pieces(bot: &Bot, outgoing: OutgoingPart<'_>, attempt: SendAttempt) -> Result<Receipt, SendError> {
    let parts = cut(outgoing.part);
    let count = parts.len();
    let mut done = Receipt::default();
    for (at, part) in parts.iter().enumerate() {
        let piece = OutgoingPart { part, ..outgoing };
        let sent = if at == 0 { once(bot, piece, attempt).await } else { later(bot, piece, attempt).await };
        match sent {
            Ok(receipt) => {
                done.message_ids.extend(receipt.message_ids);
                done.target = receipt.target;
            }
            Err(error) if at == 0 => return Err(error),
            // Tried again, the first pieces would come twice.
            Err(error) => {
                return Err(SendError::Final {
                    reason: format!("only {at} of {count} pieces were sent: {error}"),
                });
            }
        }
    }
    Ok(done)
}

async fn once(bot: &Bot, outgoing: OutgoingPart<'_>, attempt: SendAttempt) -> Result<Receipt, SendError> {
    let too_long =
        || SendError::Final { reason: "Telegram finds the message too long, also in pieces".to_owned() };
    bot.wait_turn(&bot.current(&outgoing.address.target)).await?;
    whole(bot, outgoing, attempt).await.map_err(|failure| match failure {
        SendFailure::Told(error) => error,
        SendFailure::TooLong => too_long(),
    })
}

async fn later(bot: &Bot, outgoing: OutgoingPart<'_>, attempt: SendAttempt) -> Result<Receipt, SendError> {
    let mut tries = 1;
    loop {
        match once(bot, outgoing, attempt).await {
            Err(SendError::Retry { after, reason }) if tries < PIECE_TRIES => {
                let wait = after.unwrap_or(Duration::from_secs(u64::from(tries)));
                if wait > PIECE_WAIT {
                    return Err(SendError::Retry { after, reason });
                }
                tokio::time::sleep(wait).await;
                tries += 1;
            }
            sent => return sent,
        }
    }
}

/// The pieces of a part. The first keeps what it answers, the last has the buttons.
fn cut(part: &Part) -> Vec<Part> {
    let bare = |content: Content| Part {
        content,
        reply_to: None,
        quote: None,
        silent: part.silent,
        buttons: Vec::new(),
        extra: Map::new(),
    };
    let texts = |words: &FormattedText| {
        split(&words.plain, PIECE).into_iter().map(|text| bare(Content::Text(FormattedText::plain(text))))
    };
    let mut parts: Vec<Part> = match &part.content {
        Content::Text(words) => texts(words).collect(),
        Content::Media { caption: Some(words), path, sent_as, mime, name } => {
            let file = Content::Media {
                path: path.clone(),
                sent_as: *sent_as,
                mime: mime.clone(),
                name: name.clone(),
                caption: None,
            };
            std::iter::once(bare(file)).chain(texts(words)).collect()
        }
        content @ (Content::Media { .. } | Content::Poll { .. } | Content::Sticker { .. }) => {
            vec![bare(content.clone())]
        }
    };
    if let Some(first) = parts.first_mut() {
        first.reply_to.clone_from(&part.reply_to);
        first.quote.clone_from(&part.quote);
    }
    if let Some(last) = parts.last_mut() {
        last.buttons.clone_from(&part.buttons);
    }
    parts
}

/// Cuts at the last line break of a piece of so many UTF-16 units, or at its last blank, or anywhere.
pub(super) fn split(text: &str, most: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut units = 0;
        let end = rest.char_indices().find_map(|(at, c)| {
            units += c.len_utf16();
            (units > most).then_some(at)
        });
        let at = match end {
            Some(end) => {
                let head = rest.get(..end).unwrap_or_default();
                head.rfind('\n').or_else(|| head.rfind(' ')).map_or(end, |at| at + 1)
            }
            None => rest.len(),
        };
        let (head, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        if !head.trim().is_empty() {
            pieces.push(head.to_owned());
        }
        rest = tail;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use openclaw_channels::Button;

    #[test]
    fn pieces_are_the_whole() {
        let rows =
            ["x".repeat(4500), "word ".repeat(1000), format!("{}\n{}", "a".repeat(1500), "b".repeat(1500))];
        for text in rows {
            let pieces = split(&text, PIECE);
            assert!(pieces.len() > 1 && pieces.iter().all(|piece| piece.encode_utf16().count() <= PIECE));
            assert_eq!(pieces.concat(), text);
        }
        assert_eq!(split("short", PIECE), ["short"]);
        assert!(
            split("😀".repeat(2500).as_str(), PIECE)
                .iter()
                .all(|piece| piece.encode_utf16().count() <= PIECE)
        );
    }

    #[test]
    fn the_first_piece_answers_and_the_last_has_the_buttons() {
        let buttons = vec![vec![Button { text: "b".to_owned(), data: "d".to_owned() }]];
        let part = Part {
            content: Content::Media {
                path: "/x".into(),
                sent_as: MediaKind::Image,
                mime: "image/png".to_owned(),
                name: "x".to_owned(),
                caption: Some(FormattedText::plain("y".repeat(3000))),
            },
            reply_to: Some("5".to_owned()),
            quote: None,
            silent: true,
            buttons: buttons.clone(),
            extra: Map::new(),
        };
        let parts = cut(&part);
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.silent));
        let replies: Vec<_> = parts.iter().map(|part| part.reply_to.as_deref()).collect();
        assert_eq!(replies, [Some("5"), None, None]);
        assert!(parts[0].buttons.is_empty() && parts[2].buttons == buttons);
    }
}
