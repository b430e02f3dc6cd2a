//! Failures that the Bot API reports, parsed once.

use std::time::Duration;

use openclaw_channels::SendError;
use openclaw_protocol::printable::one_line;
use serde_json::Value;

use crate::wire::Wire as _;

/// Characters of a text of the API that people are shown.
const SHOWN: usize = 300;

/// Placeholder for the reason if the API names none.
pub(super) const UNSAID: &str = "no reason given";

/// Error of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BotApiError {
    /// The request did not go out.
    #[error("cannot reach Telegram: {0}")]
    Unreachable(String),
    /// Request that this machine could not make, such as for a file that can't be read.
    #[error("{0}")]
    Unsent(String),
    /// The file of the request is not on this machine any more.
    #[error("{0}")]
    Gone(String),
    /// The request went out and nothing that can be read came back.
    #[error("Telegram did not answer: {0}")]
    Lost(String),
    /// The answer is too long, or is no JSON.
    #[error("{what}")]
    Unread {
        /// Description of the problem.
        what: String,
        /// The first update in it, where it has updates.
        update: Option<i64>,
    },
    /// The API said no.
    #[error("Telegram {status}: {text}")]
    Refused {
        /// HTTP status, or the code in the answer.
        status: u16,
        /// Meaning of the refusal.
        refusal: ApiRefusal,
        /// Text of the refusal.
        text: String,
    },
}

/// Meaning of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiRefusal {
    /// Too many requests.
    Slower(Duration),
    /// Telegram's servers are in trouble and did nothing.
    Trouble,
    /// A server in between gave up; what was behind it may have done it.
    Gateway,
    /// The token is not good (any more).
    Token,
    /// Another process polls with the same token.
    Conflict,
    /// The group has another id now.
    Moved(i64),
    /// The group has another id now, which the answer does not name.
    Upgraded,
    /// The markup can't be read.
    Markup,
    /// The text, or the caption, is too long.
    TooLong,
    /// The topic is gone.
    NoThread,
    /// The message already has this content.
    NotModified,
    /// The chat does not exist for this bot.
    NoChat,
    /// The chat accepts no messages at all.
    Closed,
    /// The words to be quoted are not in the message.
    Quote,
    /// The receiver takes no voice messages.
    NoVoice,
    /// The reaction is not available here.
    Reaction,
    /// The file can't be sent as a picture.
    Photo,
    /// The file is too large for bots.
    FileSize,
    /// The file is gone.
    NoFile,
    /// Any other refusal.
    Other,
}

/// Phrases in lower case in the text of a refusal, with their meanings.
const WORDS: &[(&str, ApiRefusal)] = &[
    ("can't parse entities", ApiRefusal::Markup),
    ("parse entities", ApiRefusal::Markup),
    ("find end of the entity", ApiRefusal::Markup),
    ("message is too long", ApiRefusal::TooLong),
    ("message caption is too long", ApiRefusal::TooLong),
    ("message_too_long", ApiRefusal::TooLong),
    ("media_caption_too_long", ApiRefusal::TooLong),
    ("message thread not found", ApiRefusal::NoThread),
    ("topic_deleted", ApiRefusal::NoThread),
    ("topic_id_invalid", ApiRefusal::NoThread),
    ("was upgraded to a supergroup", ApiRefusal::Upgraded),
    ("message is not modified", ApiRefusal::NotModified),
    ("chat not found", ApiRefusal::NoChat),
    ("chat_write_forbidden", ApiRefusal::Closed),
    ("no rights to send a message", ApiRefusal::Closed),
    ("not enough rights to send text messages", ApiRefusal::Closed),
    ("need administrator rights in the channel chat", ApiRefusal::Closed),
    ("bot was kicked", ApiRefusal::Closed),
    ("bot was blocked", ApiRefusal::Closed),
    ("bot is not a member", ApiRefusal::Closed),
    ("bot can't initiate conversation", ApiRefusal::Closed),
    ("bot can't send messages to", ApiRefusal::Closed),
    ("user is deactivated", ApiRefusal::Closed),
    ("user_is_blocked", ApiRefusal::Closed),
    ("peer_id_invalid", ApiRefusal::Closed),
    ("chat was deactivated", ApiRefusal::Closed),
    ("chat was deleted", ApiRefusal::Closed),
    ("quote_text_invalid", ApiRefusal::Quote),
    ("message to be replied not found", ApiRefusal::Quote),
    ("voice_messages_forbidden", ApiRefusal::NoVoice),
    ("reaction_invalid", ApiRefusal::Reaction),
    ("reaction_empty", ApiRefusal::Reaction),
    ("reactions_too_many", ApiRefusal::Reaction),
    ("photo_invalid_dimensions", ApiRefusal::Photo),
    ("image_process_failed", ApiRefusal::Photo),
    ("photo_save_file_invalid", ApiRefusal::Photo),
    ("file is too big", ApiRefusal::FileSize),
    ("wrong file_id", ApiRefusal::NoFile),
    ("wrong file identifier", ApiRefusal::NoFile),
    ("file_reference_expired", ApiRefusal::NoFile),
    ("invalid file_id", ApiRefusal::NoFile),
];

impl BotApiError {
    /// Reads an answer that is no result. `text` has no token in it any more.
    pub(super) fn refused(status: u16, answer: &Value, text: &str) -> Self {
        let code = answer.int("error_code").and_then(|code| u16::try_from(code).ok()).unwrap_or(status);
        let parameters = answer.at("parameters");
        let lower = text.to_lowercase();
        let by_words = || WORDS.iter().find(|(words, _)| lower.contains(words)).map(|(_, refusal)| *refusal);
        let refusal = match code {
            429 => ApiRefusal::Slower(Duration::from_secs(
                parameters.int("retry_after").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(1),
            )),
            401 => ApiRefusal::Token,
            // The API knows no method for a token it does not know; a chat that is not there is a 400.
            404 => ApiRefusal::Token,
            409 => ApiRefusal::Conflict,
            502 | 504 => ApiRefusal::Gateway,
            500.. => ApiRefusal::Trouble,
            413 => ApiRefusal::FileSize,
            _ => match parameters.int("migrate_to_chat_id") {
                Some(chat) => ApiRefusal::Moved(chat),
                None => by_words().unwrap_or(ApiRefusal::Other),
            },
        };
        // People read it in logs and lists, a line each.
        let text: String = text.chars().take(SHOWN).collect();
        Self::Refused { status: code, refusal, text: one_line(&text).into_owned() }
    }

    /// Returns the text for the owner, with advice if only a person can do something.
    pub(super) fn told(&self) -> String {
        let remedy = match self {
            Self::Refused { refusal: ApiRefusal::Token, .. } => {
                "Check the bot token; @BotFather makes a new one."
            }
            Self::Refused { refusal: ApiRefusal::Conflict, text, .. }
                if text.to_lowercase().contains("webhook") =>
            {
                "Another program has set a webhook for this bot, which gets its updates. Stop that program, then run: openclaw channels \
                 start --channel telegram"
            }
            Self::Refused { refusal: ApiRefusal::Conflict, .. } => {
                "Another program receives with the same bot token, such as a second gateway or OpenClaw itself. Stop it; if you do not \
                 know it, /revoke at @BotFather makes a new token and locks it out."
            }
            Self::Refused { .. }
            | Self::Unreachable(_)
            | Self::Unsent(_)
            | Self::Gone(_)
            | Self::Lost(_)
            | Self::Unread { .. } => {
                return self.to_string();
            }
        };
        let said = self.to_string();
        format!("{}. {remedy}", said.trim_end_matches('.'))
    }

    /// Returns the meaning of a refusal; `None` if there was no answer.
    pub(super) fn refusal(&self) -> Option<ApiRefusal> {
        match self {
            Self::Refused { refusal, .. } => Some(*refusal),
            Self::Unreachable(_) | Self::Unsent(_) | Self::Gone(_) | Self::Lost(_) | Self::Unread { .. } => {
                None
            }
        }
    }

    /// Returns true if the requested effect may have happened.
    pub(super) fn is_uncertain(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Unread { .. } => true,
            Self::Refused { refusal, .. } => *refusal == ApiRefusal::Gateway,
            Self::Unreachable(_) | Self::Unsent(_) | Self::Gone(_) => false,
        }
    }

    /// Returns true if a refusal of a second call shows that the first one had its effect.
    pub(super) fn says_it_is_done(&self) -> bool {
        const WORDS: [&str; 3] =
            ["message to delete not found", "message to unpin not found", "chat_not_modified"];
        match self {
            Self::Refused { text, .. } => {
                let lower = text.to_lowercase();
                WORDS.iter().any(|words| lower.contains(words))
            }
            Self::Unreachable(_) | Self::Unsent(_) | Self::Gone(_) | Self::Lost(_) | Self::Unread { .. } => {
                false
            }
        }
    }

    /// Returns the reason why the file of a request will never be sent, for people; `None` if the
    /// failure is not known to be caused by the file. An unknown failure is attributed to the file:
    /// sending the words alone will show if they arrive.
    pub(super) fn of_file(&self) -> Option<String> {
        match self {
            Self::Gone(why) => Some(why.clone()),
            Self::Refused { status, refusal: ApiRefusal::FileSize, text } => {
                let said = if text == UNSAID { String::new() } else { format!(": {text}") };
                Some(format!("it is larger than Telegram takes from bots (Telegram {status}{said})"))
            }
            // A chat that does not hear this bot takes no words either.
            Self::Refused { status: 403, .. } => None,
            Self::Refused { refusal, .. } => match refusal {
                ApiRefusal::NoFile | ApiRefusal::Photo | ApiRefusal::NoVoice | ApiRefusal::Other => {
                    Some(self.to_string())
                }
                ApiRefusal::Slower(_)
                | ApiRefusal::Trouble
                | ApiRefusal::Gateway
                | ApiRefusal::Token
                | ApiRefusal::Conflict
                | ApiRefusal::Moved(_)
                | ApiRefusal::Upgraded
                | ApiRefusal::Markup
                | ApiRefusal::TooLong
                | ApiRefusal::NoThread
                | ApiRefusal::NotModified
                | ApiRefusal::NoChat
                | ApiRefusal::Closed
                | ApiRefusal::Quote
                | ApiRefusal::Reaction
                | ApiRefusal::FileSize => None,
            },
            Self::Unreachable(_) | Self::Unsent(_) | Self::Lost(_) | Self::Unread { .. } => None,
        }
    }

    /// Converts the failure of sending a message to `chat` to the error for the outbox.
    pub(super) fn of_send(self, chat: &str) -> SendError {
        let reason = self.to_string();
        match self {
            Self::Unreachable(_) => SendError::Unreachable { reason },
            Self::Unsent(_) => SendError::Retry { reason, after: None },
            Self::Gone(_) => SendError::File { reason },
            Self::Lost(_) | Self::Unread { .. } => SendError::Uncertain { reason },
            Self::Refused { refusal, .. } => match refusal {
                ApiRefusal::Slower(after) => SendError::Retry { reason, after: Some(after) },
                ApiRefusal::Trouble => SendError::Down { reason },
                ApiRefusal::Gateway => SendError::Uncertain { reason },
                // The account is started again later; until then nothing is lost.
                ApiRefusal::Token => SendError::NotReady,
                ApiRefusal::NoChat => SendError::Final { reason: no_chat(chat) },
                ApiRefusal::NoThread => {
                    SendError::Final { reason: format!("the topic of chat {chat} is gone") }
                }
                // The new id comes as an update.
                ApiRefusal::Upgraded => SendError::Retry { reason, after: None },
                ApiRefusal::Conflict
                | ApiRefusal::Moved(_)
                | ApiRefusal::Markup
                | ApiRefusal::TooLong
                | ApiRefusal::NotModified
                | ApiRefusal::Closed
                | ApiRefusal::Quote
                | ApiRefusal::NoVoice
                | ApiRefusal::Reaction
                | ApiRefusal::Photo
                | ApiRefusal::FileSize
                | ApiRefusal::NoFile
                | ApiRefusal::Other => SendError::Final { reason },
            },
        }
    }
}

fn no_chat(chat: &str) -> String {
    format!(
        "Telegram send failed: chat not found (chat_id={chat}). Likely: bot not started in DM, bot removed from group/channel, group migrated (new -100… id), or wrong bot token. Input was: \"{chat}\"."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(status: u16, answer: &Value) -> ApiRefusal {
        BotApiError::refused(status, answer, answer.text("description").unwrap_or_default())
            .refusal()
            .unwrap()
    }

    #[test]
    fn refusals_are_told_apart() {
        let said = |text: &str| json!({"ok": false, "error_code": 400, "description": text});
        let rows = [
            (
                429,
                json!({"error_code": 429, "parameters": {"retry_after": 3}}),
                ApiRefusal::Slower(Duration::from_secs(3)),
            ),
            (429, json!({}), ApiRefusal::Slower(Duration::from_secs(1))),
            (429, json!({"parameters": {"retry_after": -5}}), ApiRefusal::Slower(Duration::from_secs(1))),
            (
                400,
                said("Bad Request: can't parse entities: Can't find end of the entity"),
                ApiRefusal::Markup,
            ),
            (400, said("Bad Request: message is too long"), ApiRefusal::TooLong),
            (400, said("Bad Request: message thread not found"), ApiRefusal::NoThread),
            (
                400,
                said("Bad Request: message is not modified: specified new message content"),
                ApiRefusal::NotModified,
            ),
            (400, said("Bad Request: chat not found"), ApiRefusal::NoChat),
            (400, said("Bad Request: have no rights to send a message"), ApiRefusal::Closed),
            (400, said("Bad Request: VOICE_MESSAGES_FORBIDDEN"), ApiRefusal::NoVoice),
            (400, said("Bad Request: REACTION_INVALID"), ApiRefusal::Reaction),
            (400, said("Bad Request: file is too big"), ApiRefusal::FileSize),
            (400, said("Bad Request: something new"), ApiRefusal::Other),
            (400, said("Bad Request: group chat was upgraded to a supergroup chat"), ApiRefusal::Upgraded),
            (
                400,
                json!({"description": "group chat was upgraded", "parameters": {"migrate_to_chat_id": -1001}}),
                ApiRefusal::Moved(-1001),
            ),
            (401, json!({"error_code": 401}), ApiRefusal::Token),
            (404, json!({}), ApiRefusal::Token),
            (409, json!({}), ApiRefusal::Conflict),
            (413, json!({}), ApiRefusal::FileSize),
            (500, json!({}), ApiRefusal::Trouble),
            (502, json!("<html>"), ApiRefusal::Gateway),
            (403, json!({"description": "Forbidden: bot was blocked by the user"}), ApiRefusal::Closed),
        ];
        for (status, answer, expect) in rows {
            assert_eq!(refusal(status, &answer), expect, "{status} {answer}");
        }
    }

    #[test]
    fn what_it_says_stands_in_one_line() {
        let error =
            BotApiError::refused(400, &json!({}), "Bad Request: x\n  2026-01-01T00:00:00Z  sent\u{1b}[2J");
        assert_eq!(
            error.to_string(),
            "Telegram 400: Bad Request: x\\n  2026-01-01T00:00:00Z  sent\\u001b[2J"
        );
    }

    #[test]
    fn what_concerns_the_file_is_told_from_what_concerns_the_chat() {
        let refused = |status: u16, text: &str| {
            let answer = json!({"error_code": status, "description": text});
            BotApiError::refused(status, &answer, text)
        };
        let size = "it is larger than Telegram takes from bots (Telegram 413";
        let rows = [
            (refused(413, UNSAID), Some(format!("{size})"))),
            (refused(413, "Request Entity Too Large"), Some(format!("{size}: Request Entity Too Large)"))),
            (
                refused(400, "Bad Request: file must be non-empty"),
                Some("Telegram 400: Bad Request: file must be non-empty".to_owned()),
            ),
            (
                refused(400, "Bad Request: not enough rights to send photos to the chat"),
                Some("Telegram 400: Bad Request: not enough rights to send photos to the chat".to_owned()),
            ),
            (BotApiError::Gone("gone".to_owned()), Some("gone".to_owned())),
            (refused(400, "Bad Request: not enough rights to send text messages to the chat"), None),
            (refused(400, "Bad Request: have no rights to send a message"), None),
            (refused(400, "Bad Request: chat not found"), None),
            (refused(403, "Forbidden: bot was blocked by the user"), None),
            (refused(403, "Forbidden: something new"), None),
            (refused(429, "Too Many Requests: retry after 3"), None),
            (refused(502, "Bad Gateway"), None),
            (BotApiError::Lost("reset".to_owned()), None),
        ];
        for (error, expect) in rows {
            assert_eq!(error.of_file(), expect, "{error:?}");
        }
    }

    #[test]
    fn what_may_have_been_sent_is_told_from_what_was_not() {
        let refused = |status, refusal| BotApiError::Refused { status, refusal, text: "x".to_owned() };
        let retry = |after| SendError::Retry { reason: String::new(), after };
        let unreachable = SendError::Unreachable { reason: String::new() };
        let uncertain = SendError::Uncertain { reason: String::new() };
        let done = SendError::Final { reason: String::new() };
        let secs = Duration::from_secs;
        let rows = [
            (BotApiError::Unreachable(String::new()), unreachable.clone()),
            (BotApiError::Unsent(String::new()), retry(None)),
            (BotApiError::Lost(String::new()), uncertain.clone()),
            (refused(429, ApiRefusal::Slower(secs(300))), retry(Some(secs(300)))),
            (refused(429, ApiRefusal::Slower(secs(301))), retry(Some(secs(301)))),
            (refused(500, ApiRefusal::Trouble), SendError::Down { reason: String::new() }),
            (refused(502, ApiRefusal::Gateway), uncertain),
            (refused(401, ApiRefusal::Token), SendError::NotReady),
            (refused(400, ApiRefusal::NoThread), done.clone()),
            (refused(400, ApiRefusal::Upgraded), retry(None)),
            (refused(403, ApiRefusal::Other), done),
        ];
        for (error, expect) in rows {
            let shown = error.to_string();
            let found = match error.of_send("5") {
                SendError::NotReady => SendError::NotReady,
                SendError::Unreachable { .. } => unreachable.clone(),
                SendError::Retry { after, .. } => SendError::Retry { reason: String::new(), after },
                SendError::Down { .. } => SendError::Down { reason: String::new() },
                SendError::Final { .. } => SendError::Final { reason: String::new() },
                SendError::File { .. } => SendError::File { reason: String::new() },
                SendError::Uncertain { .. } => SendError::Uncertain { reason: String::new() },
            };
            assert_eq!(found, expect, "{shown}");
        }
    }
}
