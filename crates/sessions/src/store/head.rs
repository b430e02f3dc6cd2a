//! Head of a row: the fields that lists, filters and sorting need, as ranges in the row's text,
//! found without building anything else.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::entry::ChatType;
use crate::mend::mend;
use crate::ordered::by_name;

/// Texts of a row that can be had without reading it whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum HeadText {
    SessionId,
    SessionFile,
    SpawnedBy,
    Label,
    DisplayName,
    Channel,
    GroupId,
    Subject,
    GroupChannel,
    Space,
    OriginLabel,
}

impl HeadText {
    #[cfg(test)]
    pub(crate) const ALL: [Self; PARTS] = [
        Self::SessionId,
        Self::SessionFile,
        Self::SpawnedBy,
        Self::Label,
        Self::DisplayName,
        Self::Channel,
        Self::GroupId,
        Self::Subject,
        Self::GroupChannel,
        Self::Space,
        Self::OriginLabel,
    ];
}

const PARTS: usize = 11;

/// A place in a row's text: the inside of a JSON string, which never begins at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    at: NonZeroU32,
    len: u32,
}

/// The head of a row; its spans are those of one text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RowHead {
    pub(crate) updated_at: Option<i64>,
    pub(crate) chat_type: Option<ChatType>,
    parts: [Option<Span>; PARTS],
}

impl RowHead {
    /// A text of the row, where it has one of the right type.
    pub(crate) fn text<'a>(&self, part: HeadText, row: &'a str) -> Option<Cow<'a, str>> {
        let span = (*self.parts.get(part as usize)?)?;
        let at = span.at.get() as usize;
        let inside = row.get(at..at + span.len as usize)?;
        if inside.contains('\\') {
            unescaped(&format!("\"{inside}\"")).map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inside))
        }
    }

    /// Last activity, 0 where unknown.
    pub(crate) fn updated_at_ms(&self) -> i64 {
        self.updated_at.unwrap_or(0)
    }
}

fn unescaped(json: &str) -> Option<String> {
    serde_json::from_str(json).or_else(|_| serde_json::from_str(&mend(json.as_bytes()))).ok()
}

/// The values of a row that a [`RowHead`] or a stored row is made of, as they stand in the text that was read.
#[derive(Debug, Default)]
pub(crate) struct RawHead<'a> {
    updated_at: Option<&'a str>,
    chat_type: Option<&'a str>,
    parts: [Option<&'a str>; PARTS],
    provider: Option<&'a str>,
    room: Option<&'a str>,
    origin: Option<&'a str>,
    pub(crate) skills_snapshot: Option<&'a str>,
    pub(crate) system_prompt_report: Option<&'a str>,
}

impl<'a> RawHead<'a> {
    /// The head of the row's text `row`, in which this was read; `moved` tells where a place of it has gone since.
    pub(crate) fn head(&self, row: &'a str, moved: impl Fn(usize) -> usize) -> RowHead {
        let label = self
            .origin
            .filter(|raw| raw.starts_with('{'))
            .and_then(|origin| serde_json::from_str::<OriginHead<'_>>(origin).ok()?.label.map(RawValue::get));
        let mut head = RowHead {
            updated_at: self.updated_at.and_then(|raw| raw.parse().ok()),
            chat_type: self.chat_type.and_then(|raw| serde_json::from_str(raw).ok()),
            parts: Default::default(),
        };
        for (at, span) in head.parts.iter_mut().enumerate() {
            let own = self.parts.get(at).copied().flatten().filter(|raw| is_text(raw));
            let raw = match at {
                _ if own.is_some() => own,
                _ if at == HeadText::Channel as usize => self.provider,
                _ if at == HeadText::GroupChannel as usize => self.room,
                _ if at == HeadText::OriginLabel as usize => label,
                _ => None,
            };
            *span = raw.filter(|raw| is_text(raw)).and_then(|raw| inside(raw, row, &moved));
        }
        head
    }
}

fn is_text(raw: &str) -> bool {
    raw.starts_with('"')
}

/// The inside of a JSON string, as a place in the text it is part of.
fn inside(raw: &str, row: &str, moved: &impl Fn(usize) -> usize) -> Option<Span> {
    let at = moved(offset_in(raw, row)? + 1);
    Some(Span {
        at: NonZeroU32::new(u32::try_from(at).ok()?)?,
        len: u32::try_from(raw.len().checked_sub(2)?).ok()?,
    })
}

/// Offset of a part of a text in it; `None` if it is no part.
pub(crate) fn offset_in(part: &str, text: &str) -> Option<usize> {
    part.as_ptr().addr().checked_sub(text.as_ptr().addr()).filter(|at| at + part.len() <= text.len())
}

#[derive(Deserialize)]
struct OriginHead<'a> {
    #[serde(borrow, default)]
    label: Option<&'a RawValue>,
}

/// A field of a row that matters here.
#[derive(Clone, Copy)]
enum HeadField {
    UpdatedAt,
    ChatType,
    Part(HeadText),
    /// Old name of `channel`.
    Provider,
    /// Old name of `groupChannel`.
    Room,
    Origin,
    SkillsSnapshot,
    SystemPromptReport,
    Other,
}

impl HeadField {
    fn of(name: &str) -> Self {
        match name {
            "updatedAt" => Self::UpdatedAt,
            "chatType" => Self::ChatType,
            "sessionId" => Self::Part(HeadText::SessionId),
            "sessionFile" => Self::Part(HeadText::SessionFile),
            "spawnedBy" => Self::Part(HeadText::SpawnedBy),
            "label" => Self::Part(HeadText::Label),
            "displayName" => Self::Part(HeadText::DisplayName),
            "channel" => Self::Part(HeadText::Channel),
            "groupId" => Self::Part(HeadText::GroupId),
            "subject" => Self::Part(HeadText::Subject),
            "groupChannel" => Self::Part(HeadText::GroupChannel),
            "space" => Self::Part(HeadText::Space),
            "provider" => Self::Provider,
            "room" => Self::Room,
            "origin" => Self::Origin,
            "skillsSnapshot" => Self::SkillsSnapshot,
            "systemPromptReport" => Self::SystemPromptReport,
            _ => Self::Other,
        }
    }
}

impl<'de> Deserialize<'de> for HeadField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        by_name(deserializer, Self::of)
    }
}

impl<'de> Deserialize<'de> for RawHead<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeadVisitor;
        impl<'de> Visitor<'de> for HeadVisitor {
            type Value = RawHead<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a session")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHead<'de>, A::Error> {
                let mut out = RawHead::default();
                while let Some(slot) = map.next_key::<HeadField>()? {
                    let place = match slot {
                        HeadField::UpdatedAt => &mut out.updated_at,
                        HeadField::ChatType => &mut out.chat_type,
                        HeadField::Part(part) => match out.parts.get_mut(part as usize) {
                            Some(place) => place,
                            None => continue,
                        },
                        HeadField::Provider => &mut out.provider,
                        HeadField::Room => &mut out.room,
                        HeadField::Origin => &mut out.origin,
                        HeadField::SkillsSnapshot => &mut out.skills_snapshot,
                        HeadField::SystemPromptReport => &mut out.system_prompt_report,
                        HeadField::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *place = Some(map.next_value::<&'de RawValue>()?.get());
                }
                Ok(out)
            }
        }
        deserializer.deserialize_map(HeadVisitor)
    }
}
