//! `/usage [off|tokens|full|cost]`: the line below answers, and the tokens that were spent (spec
//! `messages.md` §5). The line itself is [`openclaw_delivery::usage_footer`].

use openclaw_models::usage::{dollars, short_count};
use openclaw_protocol::params::usage::{
    DailyCost, Date, Days, SessionsUsageParams, UsageCostParams, UsageCostResult, UsageTotals,
};
use openclaw_runtime::surroundings::{Surroundings, prices};
use openclaw_sessions::entry::ResponseUsage;
use openclaw_sessions::usage::{self, Ledger, UsageError};

use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::{Answering, CommandContext};

pub(crate) const COMMAND: ChatCommand = ChatCommand::new(
    "usage",
    Category::Options,
    Does::Answers(run),
    "Show tokens below answers, or what was spent.",
)
.taking(Takes::Words, "[off|tokens|full|cost]")
.offering(ArgumentMenu::Fixed(&["off", "tokens", "full", "cost"]));

const USAGE: &str = "⚙️ Usage: /usage off|tokens|full|cost";
/// A day before every session.
const EVER: &str = "2020-01-01";
const MONTH: f64 = 30.0;

/// Request of `/usage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UsageSwitch {
    /// Switch to the mode after the current one.
    Next,
    Set(ResponseUsage),
    Cost,
}

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let now = context.entry.response_usage.unwrap_or(ResponseUsage::Off);
        let mode = match read(arguments) {
            None => return Ok(USAGE.to_owned()),
            Some(UsageSwitch::Cost) => return Ok(cost(context).await),
            // Begun by an earlier process: it may be done already, and is not done again.
            Some(UsageSwitch::Next) if context.was_begun => now,
            Some(UsageSwitch::Next) => next(now),
            Some(UsageSwitch::Set(mode)) => mode,
        };
        context
            .edit(move |entry| entry.response_usage = (mode != ResponseUsage::Off).then_some(mode))
            .await?;
        Ok(format!("⚙️ Usage footer: {}.", name(mode)))
    })
}

fn read(arguments: &str) -> Option<UsageSwitch> {
    Some(match arguments.trim().to_lowercase().as_str() {
        "" => UsageSwitch::Next,
        "cost" => UsageSwitch::Cost,
        "off" | "false" | "no" | "0" | "disable" | "disabled" => UsageSwitch::Set(ResponseUsage::Off),
        "on" | "true" | "yes" | "1" | "enable" | "enabled" | "tokens" | "token" | "tok" | "min"
        | "minimal" => UsageSwitch::Set(ResponseUsage::Tokens),
        "full" | "session" => UsageSwitch::Set(ResponseUsage::Full),
        _ => return None,
    })
}

fn next(mode: ResponseUsage) -> ResponseUsage {
    match mode {
        ResponseUsage::Off => ResponseUsage::Tokens,
        ResponseUsage::Tokens => ResponseUsage::Full,
        ResponseUsage::Full => ResponseUsage::Off,
    }
}

fn name(mode: ResponseUsage) -> &'static str {
    match mode {
        ResponseUsage::Off => "off",
        ResponseUsage::Tokens => "tokens",
        ResponseUsage::Full => "full",
    }
}

async fn cost(context: &CommandContext<'_>) -> String {
    let Some(around) = &context.services.surroundings else {
        return "⚠️ /usage cost works where a gateway runs.".to_owned();
    };
    match spent(context, around.as_ref()).await {
        Ok((session, days)) => card(session.as_ref(), &days),
        Err(error) => format!("⚠️ What was spent can't be counted: {error}"),
    }
}

async fn spent(
    context: &CommandContext<'_>,
    around: &dyn Surroundings,
) -> Result<(Option<UsageTotals>, UsageCostResult), UsageError> {
    let agents = context.settings.config.agent_ids();
    let ledger = || Ledger {
        store: context.services.store.as_ref(),
        index: around.usage(),
        agents: &agents,
        prices: prices(&context.settings.models),
    };
    let asked = SessionsUsageParams {
        key: serde_json::from_value(context.key.as_str().into()).ok(),
        start_date: Some(Date(EVER.to_owned())),
        ..SessionsUsageParams::default()
    };
    let session = usage::report(ledger(), &asked).await?;
    let month = UsageCostParams { days: Some(Days::Number(MONTH)), ..UsageCostParams::default() };
    let days = usage::cost(ledger(), &month).await?;
    Ok((session.sessions.first().map(|session| session.usage.totals), days))
}

/// `💸 Usage cost` with the session's, today's and the month's.
fn card(session: Option<&UsageTotals>, days: &UsageCostResult) -> String {
    let session = match session {
        Some(totals) => {
            let tokens = short_count(totals.total_tokens);
            format!("Session {} · {tokens} tokens", dollars(totals.total_cost))
        }
        None => "Session n/a".to_owned(),
    };
    let today = jiff::Timestamp::from_millisecond(days.updated_at)
        .map(|at| at.strftime("%Y-%m-%d").to_string())
        .unwrap_or_default();
    let today = days.daily.iter().find(|day| day.date == today);
    let today = today.map_or(0.0, |DailyCost { totals, .. }| totals.total_cost);
    let month = days.totals.total_cost;
    format!("💸 Usage cost\n{session}\nToday {}\nLast 30d {}", dollars(today), dollars(month))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_has_several_names_and_comes_round() {
        use ResponseUsage::{Full, Off, Tokens};
        let rows = [
            ("", Some(UsageSwitch::Next)),
            ("off", Some(UsageSwitch::Set(Off))),
            ("on", Some(UsageSwitch::Set(Tokens))),
            ("TOK", Some(UsageSwitch::Set(Tokens))),
            ("session", Some(UsageSwitch::Set(Full))),
            ("full", Some(UsageSwitch::Set(Full))),
            ("cost", Some(UsageSwitch::Cost)),
            ("what", None),
        ];
        for (text, expect) in rows {
            assert_eq!(read(text), expect, "{text:?}");
        }
        assert_eq!([Off, Tokens, Full].map(next), [Tokens, Full, Off]);
    }

    #[test]
    fn what_was_spent_is_told_for_the_session_the_day_and_the_month() {
        let totals =
            |total_tokens, total_cost| UsageTotals { total_tokens, total_cost, ..UsageTotals::default() };
        let day = |date: &str, cost| DailyCost { date: date.to_owned(), totals: totals(1, cost) };
        let days = UsageCostResult {
            updated_at: 1_769_616_000_000,
            days: 30,
            daily: vec![day("2026-01-27", 1.0), day("2026-01-28", 0.01)],
            totals: totals(9, 1.01),
        };
        assert_eq!(
            card(Some(&totals(377, 0.0004)), &days),
            "💸 Usage cost\nSession $0.0004 · 377 tokens\nToday $0.01\nLast 30d $1.01"
        );
        assert!(card(None, &days).contains("\nSession n/a\n"));
    }
}
