//! `/whoami`: the identity that the gateway has for the sender (spec `messages.md` §5).

use openclaw_journal::origin::MessageOrigin;
use openclaw_journal::request::WEBCHAT;

use super::command::{Category, ChatCommand, Does};
use super::{Answering, CommandContext};

pub(crate) const COMMAND: ChatCommand = ChatCommand {
    aliases: &["id"],
    inline: true,
    ..ChatCommand::new("whoami", Category::Status, Does::Answers(run), "Show who you are to this gateway.")
};

fn run<'a>(context: &'a CommandContext<'a>, _: &'a str) -> Answering<'a> {
    Box::pin(async move { Ok(text(context.row.payload.source.origin())) })
}

fn text(origin: Option<&MessageOrigin>) -> String {
    let Some(origin) = origin else { return format!("🧭 Identity\nChannel: {WEBCHAT}") };
    let MessageOrigin { address, sender, .. } = origin;
    let line = |name: &str, value: &str| format!("{name}: {value}");
    let lines = [
        Some("🧭 Identity".to_owned()),
        Some(line("Channel", &address.channel)),
        Some(line("User id", &sender.id)),
        sender
            .username
            .as_deref()
            .map(|name| line("Username", &format!("@{}", name.trim_start_matches('@')))),
        (!origin.is_direct()).then(|| line("Chat", &origin.from())),
        address.thread.as_deref().map(|thread| line("Thread", thread)),
        Some(line("AllowFrom", &sender.id)),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use openclaw_journal::testing::{direct, group};

    use super::*;

    #[test]
    fn a_sender_is_told_what_lists_know_them_by() {
        assert_eq!(text(None), "🧭 Identity\nChannel: webchat");
        assert_eq!(
            text(Some(&direct("5", Some("ada")))),
            "🧭 Identity\nChannel: telegram\nUser id: 5\nUsername: @ada\nAllowFrom: 5"
        );
        assert_eq!(
            text(Some(&group("-100", "5", Some("7")))),
            "🧭 Identity\nChannel: telegram\nUser id: 5\nChat: telegram:group:-100:topic:7\nThread: 7\nAllowFrom: 5"
        );
    }
}
