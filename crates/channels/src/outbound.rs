//! What goes to a platform: parts, each of which is one request to it, and what comes of sending one.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Address, MediaKind};

/// What one request sends. Made from an answer before it is stored, so that a crash in the third part of five goes on with the third.
/// Stored as JSON: fields may be added, none changes its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// What it consists of.
    pub content: Content,
    /// The platform's id of the message that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Words of that message to be quoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Whether the reader's device stays silent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Rows of buttons below it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Vec<Button>>,
    /// What one platform alone knows, by its own names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Part {
    /// Words alone.
    pub fn text(words: impl Into<String>) -> Self {
        Self {
            content: Content::Text(Words::plain(words)),
            reply_to: None,
            quote: None,
            silent: false,
            buttons: Vec::new(),
            extra: Map::new(),
        }
    }

    /// The same in other words, without formatting. A part that has none stays as it is.
    #[must_use]
    pub fn with_words(self, other: String) -> Self {
        let content = match self.content {
            Content::Text(_) => Content::Text(Words::plain(other)),
            Content::Media { path, sent_as, mime, name, caption: Some(_) } => {
                Content::Media { path, sent_as, mime, name, caption: Some(Words::plain(other)) }
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
    pub fn without_file(&self, note: &Words) -> Option<Self> {
        let Content::Media { caption: Some(words), .. } = &self.content else { return None };
        let formatted = words.formatted.as_ref().map(|formatted| {
            let note = note.formatted.as_ref().unwrap_or(&note.plain);
            format!("{formatted}\n\n{note}")
        });
        let words = Words { plain: format!("{}\n\n{}", words.plain, note.plain), formatted };
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

    /// What people read of it, without formatting; `None` where it has no words.
    pub fn words(&self) -> Option<&str> {
        match &self.content {
            Content::Text(words) | Content::Media { caption: Some(words), .. } => Some(&words.plain),
            Content::Media { caption: None, .. } | Content::Sticker { .. } => None,
            Content::Poll { question, .. } => Some(question),
        }
    }
}

/// What a part consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Content {
    /// Words.
    Text(Words),
    /// A file.
    Media {
        /// The file, in the gateway's own storage until it is sent.
        path: PathBuf,
        /// As what it is sent.
        #[serde(rename = "as")]
        sent_as: MediaKind,
        /// Its type.
        mime: String,
        /// Its name for the reader.
        name: String,
        /// Words below it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caption: Option<Words>,
    },
    /// A question with answers to choose from.
    Poll {
        /// The question.
        question: String,
        /// The answers.
        options: Vec<String>,
        /// Whether more than one may be chosen.
        #[serde(default)]
        multiple: bool,
        /// How long it is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hours: Option<u32>,
    },
    /// A sticker that the platform has.
    Sticker {
        /// Its id there.
        id: String,
    },
}

/// Words as the platform takes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Words {
    /// Without formatting; sent where the platform refuses the other.
    pub plain: String,
    /// In the platform's own markup, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
}

impl Words {
    /// Without formatting.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { plain: text.into(), formatted: None }
    }
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Button {
    /// What stands on it.
    pub text: String,
    /// What comes back when it is pressed.
    pub data: String,
}

/// A part on its way.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// Unique for ever, such as `<run id>:<part>`. Platforms that know idempotency keys are given it.
    pub id: &'a str,
    /// Where it goes.
    pub address: &'a Address,
    /// What is sent.
    pub part: &'a Part,
}

/// What a channel should know of one try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
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
}

/// What a platform does with a second request of the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// It recognises the id and answers with the first one's receipt.
    Recognised,
    /// It sends it twice.
    Doubled,
}

/// What a platform says of a part whose fate is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Sent(Receipt),
    /// It is not, and no request of it is under way.
    NotSent,
    /// The platform can't be asked.
    Unknown,
}

/// Why a part was not sent, or may not have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The channel is not connected. Nothing was tried: it does not count, and is tried again soon.
    #[error("the channel is not ready")]
    NotReady,
    /// The platform can't be reached. Nothing was sent: it does not count, and is tried until it can.
    #[error("{reason}")]
    Unreachable {
        /// What happened, for people.
        reason: String,
    },
    /// It was not sent, and may be later: tried again.
    #[error("{reason}")]
    Retry {
        /// What happened, for people.
        reason: String,
        /// How long the platform asks to wait.
        after: Option<Duration>,
    },
    /// The platform answers that it is in trouble itself (HTTP 5xx), and nothing was sent. Where all of it is, that does not count; where
    /// the trouble comes with this part alone, tries count.
    #[error("{reason}")]
    Down {
        /// What happened, for people.
        reason: String,
    },
    /// It will never be sent: a chat that does not exist, a missing right.
    #[error("{reason}")]
    Final {
        /// What happened, for people.
        reason: String,
    },
    /// Its file will never be sent, and nothing of it was: the platform does not take this file, or none of its kind in this chat. Words
    /// may be sent without it.
    #[error("{reason}")]
    File {
        /// What is wrong with the file, for people.
        reason: String,
    },
    /// The request went out and nothing came back: it may have been sent.
    #[error("{reason}")]
    Uncertain {
        /// What happened, for people.
        reason: String,
    },
}
