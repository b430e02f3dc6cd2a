//! Outgoing messages: parts, each of which is one request to the platform, and the result of
//! sending one.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Address, MediaKind};

/// Content of one request. Made from an answer before it is stored, so that a crash in the third
/// part of five goes on with the third. Stored as JSON: fields may be added, none changes its
/// meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Content of the part.
    pub content: Content,
    /// The platform's id of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Words of that message to be quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// True if the reader's device stays silent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Rows of buttons below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Vec<Button>>,
    /// Fields that only one platform knows, with its own names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Part {
    /// Words alone.
    pub fn text(words: impl Into<String>) -> Self {
        Self {
            content: Content::Text(FormattedText::plain(words)),
            reply_to: None,
            quote: None,
            silent: false,
            buttons: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Returns the part with other words, without formatting. A part that has none stays as it is.
    #[must_use]
    pub fn with_words(self, other: String) -> Self {
        let content = match self.content {
            Content::Text(_) => Content::Text(FormattedText::plain(other)),
            Content::Media { path, sent_as, mime, name, caption: Some(_) } => {
                Content::Media { path, sent_as, mime, name, caption: Some(FormattedText::plain(other)) }
            }
            Content::Poll { options, multiple, hours, .. } => {
                Content::Poll { question: other, options, multiple, hours }
            }
            Content::Media { .. } | Content::Sticker { .. } => self.content,
        };
        Self { content, ..self }
    }

    /// The words of a file that is not sent, and a note of that behind them. `None`: it is no file, or has no words.
    #[must_use]
    pub fn without_file(&self, note: &FormattedText) -> Option<Self> {
        let Content::Media { caption: Some(words), .. } = &self.content else { return None };
        let formatted = words.formatted.as_ref().map(|formatted| {
            let note = note.formatted.as_ref().unwrap_or(&note.plain);
            format!("{formatted}\n\n{note}")
        });
        let words = FormattedText { plain: format!("{}\n\n{}", words.plain, note.plain), formatted };
        Some(Self { content: Content::Text(words), ..self.clone() })
    }

    /// The reader's name for the file; `None` where it is no file.
    pub fn file_name(&self) -> Option<&str> {
        match &self.content {
            Content::Media { name, .. } => Some(name),
            Content::Text(_) | Content::Poll { .. } | Content::Sticker { .. } => None,
        }
    }

    /// A video plays as an animation.
    pub fn play_as_gif(&mut self) {
        if let Content::Media { sent_as, .. } = &mut self.content
            && *sent_as == MediaKind::Video
        {
            *sent_as = MediaKind::Animation;
        }
    }

    /// Returns the text that people read, without formatting; `None` if there is none.
    pub fn words(&self) -> Option<&str> {
        match &self.content {
            Content::Text(words) | Content::Media { caption: Some(words), .. } => Some(&words.plain),
            Content::Media { caption: None, .. } | Content::Sticker { .. } => None,
            Content::Poll { question, .. } => Some(question),
        }
    }
}

/// Content of a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Content {
    /// Words.
    Text(FormattedText),
    /// A file.
    Media {
        /// The file, in the gateway's own storage until it is sent.
        path: PathBuf,
        /// Kind of media as which the file is sent.
        #[serde(rename = "as")]
        sent_as: MediaKind,
        /// Media type.
        mime: String,
        /// File name for the reader.
        name: String,
        /// Words below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caption: Option<FormattedText>,
    },
    /// A question with answers to choose from.
    Poll {
        /// The question.
        question: String,
        /// The answers.
        options: Vec<String>,
        /// True if more than one option may be chosen.
        #[serde(default)]
        multiple: bool,
        /// Duration of the poll in hours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hours: Option<u32>,
    },
    /// A sticker that the platform has.
    Sticker {
        /// Sticker id on the platform.
        id: String,
    },
}

/// Words as the platform takes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormattedText {
    /// Text without formatting; sent if the platform refuses the other.
    pub plain: String,
    /// Text in the platform's own markup, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
}

impl FormattedText {
    /// Creates words without formatting.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { plain: text.into(), formatted: None }
    }
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Button {
    /// Label of the button.
    pub text: String,
    /// Data that is returned when the button is pressed.
    pub data: String,
}

/// A part on its way.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingPart<'a> {
    /// Unique for ever, such as `<run id>:<part>`. Platforms that know idempotency keys are given it.
    pub id: &'a str,
    /// Destination address.
    pub address: &'a Address,
    /// Part to send.
    pub part: &'a Part,
}

/// Facts about one attempt for the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendAttempt {
    /// 1 for the first.
    pub number: u32,
    /// Accepted so long ago that the message should say so (spec `channels.md` §5.5: half an hour).
    pub late: bool,
    /// An earlier try may have had its effect: the reader may see it twice.
    pub may_repeat: bool,
}

/// The platform has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Receipt {
    /// The platform's ids of what was made of it.
    pub message_ids: Vec<String>,
    /// The platform's id of the conversation, where that is another than it was addressed to: by a name, or by an id of before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// Treatment of a second request of the same id by the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// The platform recognises the id (idempotency key) and answers with the receipt of the first
    /// request.
    Recognised,
    /// The platform sends the message twice.
    Doubled,
}

/// Answer of the platform about a part whose fate is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartFate {
    /// The part was sent.
    Sent(Receipt),
    /// The part was not sent, and no request for it is under way.
    NotSent,
    /// The platform can't be asked.
    Unknown,
}

/// Reason why a part was not sent, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The channel is not connected. No request was made: it does not count as an attempt, and is
    /// tried again soon.
    #[error("the channel is not ready")]
    NotReady,
    /// The platform can't be reached. No message was sent: it does not count as an attempt, and is
    /// tried until the platform can be reached.
    #[error("{reason}")]
    Unreachable {
        /// Description of the failure for people.
        reason: String,
    },
    /// The part was not sent, but sending it may succeed later: it is retried.
    #[error("{reason}")]
    Retry {
        /// Description of the failure for people.
        reason: String,
        /// Backoff that the platform asks for.
        after: Option<Duration>,
    },
    /// The platform answers that it is in trouble itself (HTTP 5xx), and nothing was sent. If the
    /// whole platform is, that does not count as an attempt; if the trouble comes with this part
    /// alone, attempts count.
    #[error("{reason}")]
    Down {
        /// Description of the failure for people.
        reason: String,
    },
    /// The part will never be sent: the chat does not exist, or a right is missing.
    #[error("{reason}")]
    Final {
        /// Description of the failure for people.
        reason: String,
    },
    /// The file of the part will never be sent, and nothing of the part was sent: the platform does
    /// not accept this file, or no file of its kind in this chat. Words may be sent without it.
    #[error("{reason}")]
    File {
        /// Description of the file's problem for people.
        reason: String,
    },
    /// The request went out and nothing came back: it may have been sent.
    #[error("{reason}")]
    Uncertain {
        /// Description of the failure for people.
        reason: String,
    },
}
