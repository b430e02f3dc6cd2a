//! Names of groups in lists (spec `sessions.md` §3.6).

/// Parts that a group's name is made of.
#[derive(Debug, Clone, Copy, Default)]
pub struct GroupNaming<'a> {
    /// Channel id.
    pub channel: &'a str,
    /// Group subject.
    pub subject: Option<&'a str>,
    /// Room name.
    pub group_channel: Option<&'a str>,
    /// Server or workspace.
    pub space: Option<&'a str>,
    /// Group id.
    pub id: Option<&'a str>,
    /// Session key, when nothing else is known.
    pub key: &'a str,
}

impl GroupNaming<'_> {
    /// `<channel>:<token>`, or the channel alone when no token is left.
    pub fn display_name(&self) -> String {
        let given =
            |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let room = given(self.group_channel);
        let space = given(self.space);
        let detail = match (&space, &room) {
            (Some(space), Some(room)) => format!("{space}#{}", room.trim_start_matches('#')),
            (None, Some(room)) => room.clone(),
            (_, None) => given(self.subject)
                .or(space)
                .or_else(|| given(self.id))
                .unwrap_or_else(|| self.key.to_owned()),
        };
        let channel = self.channel.trim().to_lowercase();
        let channel = if channel.is_empty() { "group".to_owned() } else { channel };
        let mut token = slug(&detail);
        if room.is_none() {
            token = token.trim_start_matches('#').to_owned();
        }
        if !token.is_empty() && !token.contains('#') && !token.starts_with('@') && !token.starts_with("g-") {
            token = format!("g-{token}");
        }
        if token.is_empty() { channel } else { format!("{channel}:{token}") }
    }
}

/// Lower case, spaces and other signs as one `-`. Letters and digits of every script stay.
fn slug(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().to_lowercase().chars() {
        let keep = c.is_alphanumeric() || matches!(c, '#' | '@' | '.' | '_' | '+');
        if keep {
            out.push(c);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_matches(|c| c == '-' || c == '.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of `sessions.md` §3.6; the last follows its known-bad note.
    #[test]
    fn groups_are_named_by_room_subject_or_id() {
        let base = GroupNaming { key: "k", ..GroupNaming::default() };
        let rows = [
            (
                GroupNaming {
                    channel: "discord",
                    group_channel: Some("#general"),
                    space: Some("friends-of-openclaw"),
                    ..base
                },
                "discord:friends-of-openclaw#general",
            ),
            (
                GroupNaming { channel: "whatsapp", subject: Some("Family Chat"), ..base },
                "whatsapp:g-family-chat",
            ),
            (GroupNaming { channel: "telegram", id: Some("-100123"), ..base }, "telegram:g-100123"),
            (GroupNaming { channel: "slack", subject: Some("#ops"), ..base }, "slack:g-ops"),
            (
                GroupNaming { channel: "whatsapp", id: Some("120363012345678901@g.us"), ..base },
                "whatsapp:g-120363012345678901@g.us",
            ),
            (GroupNaming { channel: "discord", subject: Some("日本"), ..base }, "discord:g-日本"),
        ];
        for (naming, expect) in rows {
            assert_eq!(naming.display_name(), expect, "{naming:?}");
        }
    }

    /// Rules of `sessions.md` §3.6.
    #[test]
    fn names_are_one_token_behind_their_channel() {
        let x = GroupNaming { channel: "x", key: "agent:main:k", ..GroupNaming::default() };
        let room = |group_channel, space| GroupNaming { group_channel, space, ..x };
        let called = |subject| GroupNaming { subject: Some(subject), space: Some("s"), id: Some("7"), ..x };
        let rows = [
            (room(Some("general"), Some("s")), "x:s#general"),
            (room(Some("##general"), Some("s")), "x:s#general"),
            (room(Some("#general"), None), "x:#general"),
            (room(Some("general"), None), "x:g-general"),
            (room(None, Some("s")), "x:g-s"),
            (GroupNaming { space: Some("s"), id: Some("7"), ..x }, "x:g-s"),
            (called("@team"), "x:@team"),
            (called("g-x"), "x:g-x"),
            (called("A  --  B."), "x:g-a-b"),
            (called("a_b+c.d@e"), "x:g-a_b+c.d@e"),
            (called("!!"), "x"),
            (x, "x:g-agent-main-k"),
        ];
        for (naming, expect) in rows {
            assert_eq!(naming.display_name(), expect, "{naming:?}");
        }
    }
}
