//! The questions of `openclaw channels add` and `remove` without flags.

use openclaw_gateway::platforms;
use std::io::{BufRead, Write};

use super::add::not_a_token;
use crate::args::ChannelsAddArgs;
use crate::commands::questions::Questions;
use crate::failure::CommandFailure;

/// Answers to the questions, besides the flags of `add`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answers {
    pub(super) add: ChannelsAddArgs,
    /// `dmPolicy`, where another than the default was chosen.
    pub(super) dm_policy: Option<String>,
    /// Senders that may write to it.
    pub(super) allow_from: Vec<String>,
}

/// Asks until there is an account to add.
///
/// # Errors
/// When the person gives up; nothing is changed then.
pub(super) fn ask<R: BufRead, W: Write>(
    questions: &mut Questions<R, W>,
    given: &ChannelsAddArgs,
) -> Result<Answers, CommandFailure> {
    let platforms = platforms();
    let known: Vec<&str> = platforms.channels().iter().map(|channel| channel.info().id).collect();
    let channel = loop {
        let first = known.first().copied().unwrap_or_default();
        let answer = questions.ask(&format!("Channel ({})", known.join(", ")), first)?;
        match super::platform(&answer) {
            Ok(channel) => break channel,
            Err(failure) => questions.say(&failure.message)?,
        }
    };
    let setup = &channel.setup().token;
    questions.say(setup.origin)?;
    let account = questions.ask("Account", given.account.as_deref().unwrap_or(super::DEFAULT))?;
    let token = loop {
        let token = questions.ask(&sentence(setup.name), "")?;
        if (setup.has_form)(token.trim()) {
            break token.trim().to_owned();
        }
        questions.say(&not_a_token(setup))?;
    };
    let name = questions.ask("Name for people (empty: none)", "")?;
    let dm_policy = loop {
        let answer = questions.ask("Who may write to it: pairing, allowlist, open, disabled", "pairing")?;
        match answer.as_str() {
            "pairing" => break None,
            "allowlist" | "open" | "disabled" => break Some(answer),
            _ => questions.say("Answer one of: pairing, allowlist, open, disabled.")?,
        }
    };
    let allow_from = match dm_policy.as_deref() {
        Some("open") => vec!["*".to_owned()],
        Some("allowlist") => ids(questions)?,
        _ => Vec::new(),
    };
    let mut add = given.clone();
    add.channel = Some(channel.info().id.to_owned());
    add.account = Some(account);
    add.token = Some(token);
    add.name = Some(name).filter(|name| !name.is_empty());
    Ok(Answers { add, dm_policy, allow_from })
}

/// Returns a text with a capital at its beginning.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// An empty list would let nobody in, so at least one is asked for.
fn ids<R: BufRead, W: Write>(questions: &mut Questions<R, W>) -> Result<Vec<String>, CommandFailure> {
    loop {
        let answer = questions.ask("Ids of who may write (with commas)", "")?;
        let ids: Vec<String> =
            answer.split([',', ' ']).map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect();
        if !ids.is_empty() {
            return Ok(ids);
        }
        questions.say("Nobody could write to it. Your id: write to the bot, and look at its answer.")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(answers: &str) -> (Result<Answers, CommandFailure>, String) {
        let mut screen = Vec::new();
        let mut questions = Questions { answers: answers.as_bytes(), screen: &mut screen };
        let answers = ask(&mut questions, &ChannelsAddArgs::default());
        (answers, String::from_utf8(screen).unwrap())
    }

    #[test]
    fn it_asks_again_until_the_answer_can_be_used() {
        let (answers, screen) = asked("fax\n\nWork\nnonsense\n123:TEST-token\n\nall\nallowlist\n\n5, 6\n");
        let answers = answers.unwrap();
        assert_eq!(answers.add.channel.as_deref(), Some("telegram"));
        assert_eq!(
            (answers.add.account.as_deref(), answers.add.token.as_deref()),
            (Some("Work"), Some("123:TEST-token"))
        );
        assert_eq!(
            (answers.dm_policy.as_deref(), answers.allow_from),
            (Some("allowlist"), vec!["5".to_owned(), "6".to_owned()])
        );
        assert_eq!(answers.add.name, None);
        assert!(screen.contains("Unknown channel: fax") && screen.contains("not a bot token"), "{screen}");
    }

    #[test]
    fn the_door_stays_shut_unless_somebody_says_otherwise() {
        let (answers, _) = asked("telegram\n\n123:TEST-token\nBot\n\n");
        let answers = answers.unwrap();
        assert_eq!((answers.dm_policy, answers.allow_from), (None, Vec::new()));
        assert_eq!(answers.add.name.as_deref(), Some("Bot"));
        let (gave_up, _) = asked("telegram\n");
        assert!(gave_up.is_err());
    }
}
