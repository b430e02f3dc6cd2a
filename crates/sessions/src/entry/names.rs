//! Display name and kind of a session in lists (spec `sessions.md` §3.6, §7).

use std::borrow::Cow;

use openclaw_protocol::params::sessions::SessionKind;

use super::ChatType;
use super::group_name::GroupNaming;
use crate::entry::SessionEntry;
use crate::key::SessionKey;

/// The texts of a row that name it.
#[derive(Debug, Default)]
pub(crate) struct RowNames<'a> {
    pub(crate) chat_type: Option<ChatType>,
    pub(crate) display_name: Option<Cow<'a, str>>,
    pub(crate) label: Option<Cow<'a, str>>,
    pub(crate) channel: Option<Cow<'a, str>>,
    pub(crate) group_id: Option<Cow<'a, str>>,
    pub(crate) subject: Option<Cow<'a, str>>,
    pub(crate) group_channel: Option<Cow<'a, str>>,
    pub(crate) space: Option<Cow<'a, str>>,
    pub(crate) origin_label: Option<Cow<'a, str>>,
}

impl<'a> RowNames<'a> {
    pub(crate) fn of(entry: &'a SessionEntry) -> Self {
        let text = |text: &'a Option<Box<str>>| text.as_deref().map(Cow::Borrowed);
        Self {
            chat_type: entry.chat_type,
            display_name: text(&entry.display_name),
            label: text(&entry.label),
            channel: text(&entry.channel),
            group_id: text(&entry.group_id),
            subject: text(&entry.subject),
            group_channel: text(&entry.group_channel),
            space: text(&entry.space),
            origin_label: entry.origin.as_deref().and_then(|origin| text(&origin.label)),
        }
    }

    /// The name in lists: its own, a group's, its label, where it came from.
    pub(crate) fn display_name(&self, key: &SessionKey) -> Option<Cow<'_, str>> {
        fn given<'b>(text: &'b Option<Cow<'_, str>>) -> Option<Cow<'b, str>> {
            text.as_deref().map(Cow::Borrowed)
        }
        given(&self.display_name)
            .or_else(|| self.group_name(key).map(Cow::Owned))
            .or_else(|| given(&self.label))
            .or_else(|| given(&self.origin_label))
    }

    fn group_name(&self, key: &SessionKey) -> Option<String> {
        if kind(key, self.chat_type) != SessionKind::Group {
            return None;
        }
        let naming = GroupNaming {
            channel: self.channel.as_deref().or_else(|| key.group().map(|(channel, _)| channel))?,
            subject: self.subject.as_deref(),
            group_channel: self.group_channel.as_deref(),
            space: self.space.as_deref(),
            id: self.group_id.as_deref().or_else(|| key.group().map(|(_, id)| id)),
            key: key.as_str(),
        };
        Some(naming.display_name())
    }
}

/// Kind of a session.
pub(crate) fn kind(key: &SessionKey, chat_type: Option<ChatType>) -> SessionKind {
    let grouped = matches!(chat_type, Some(ChatType::Group | ChatType::Channel));
    match () {
        () if key.is_global() => SessionKind::Global,
        () if key.is_unknown() => SessionKind::Unknown,
        () if grouped || key.is_group() => SessionKind::Group,
        () => SessionKind::Direct,
    }
}
