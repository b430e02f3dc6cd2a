//! `usage.cost`: tokens and cost by day, all agents together. OpenClaw 2026.2.9 counts the default agent alone; what the
//! others spend is the owner's money as well.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use openclaw_protocol::params::usage::{DailyCost, Days, UsageCostParams, UsageCostResult, UsageTotals};

use super::day::{Day, DayRange};
use super::files::TranscriptOf;
use super::report::{model_totals, read};
use super::sums::Add;
use super::{Ledger, Prices, UsageError, UsageIndex};
use crate::time::now_ms;

/// Answers `usage.cost`.
pub async fn cost(ledger: Ledger<'_>, params: &UsageCostParams) -> Result<UsageCostResult, UsageError> {
    let now = now_ms();
    let days = params.days.as_ref().and_then(number_of_days);
    let range = DayRange::of_request(params.start_date.as_deref(), params.end_date.as_deref(), days, now)?;
    let owners = ledger.owners_within(range).await?;
    let places = ledger.places();
    let prices = ledger.prices;
    let daily = ledger.index.look(move |index| by_day(index, &places.all(owners), range, &prices)).await?;
    let mut totals = UsageTotals::default();
    daily.values().for_each(|day| totals.add(day));
    let daily = daily.into_iter().map(|(day, totals)| DailyCost { date: day.to_string(), totals }).collect();
    Ok(UsageCostResult { updated_at: now, days: range.days(), daily, totals })
}

fn by_day(
    index: &UsageIndex,
    transcripts: &[TranscriptOf],
    range: DayRange,
    prices: &Prices,
) -> BTreeMap<Day, UsageTotals> {
    let present: HashSet<&Path> = transcripts.iter().map(|transcript| transcript.path.as_path()).collect();
    index.retain(&present);
    let mut daily: BTreeMap<Day, UsageTotals> = BTreeMap::new();
    for transcript in transcripts {
        let Some(scanned) = read(index, transcript, range) else { continue };
        for digest in scanned.digest().within(range) {
            for model in &digest.models {
                daily.entry(digest.day).or_default().add(&model_totals(model, prices));
            }
        }
    }
    daily
}

/// Number of days, given as a number or a text; `None` if it is neither.
fn number_of_days(days: &Days) -> Option<u64> {
    let number = match days {
        Days::Number(number) => *number,
        Days::Text(text) => text.trim().parse::<f64>().ok()?,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and one day is the least"
    )]
    number.is_finite().then(|| (number.floor() as u64).max(1))
}
