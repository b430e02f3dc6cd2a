//! `sessions.usage`: each session's sums, and all of them divided by model, agent, channel and day.

mod aggregate;
mod session;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use openclaw_protocol::params::usage::{
    Date, SessionUsage, SessionsUsageParams, SessionsUsageResult, UsageTotals,
};

use super::day::DayRange;
use super::digest::ModelDigest;
use super::files::{TranscriptOf, TranscriptOwner};
use super::scan::Scanned;
use super::sums::{Add, Costs};
use super::{Ledger, Prices, UsageError, UsageIndex};
use crate::time::now_ms;
use aggregate::Aggregates;

/// Answers `sessions.usage`: the sessions with usage in the days asked for, used last first.
pub async fn report(
    ledger: Ledger<'_>,
    params: &SessionsUsageParams,
) -> Result<SessionsUsageResult, UsageError> {
    let now = now_ms();
    let text = |date: &'_ Option<Date>| date.as_ref().map(|date| date.0.clone());
    let (start, end) = (text(&params.start_date), text(&params.end_date));
    let range = DayRange::of_request(start.as_deref(), end.as_deref(), None, now)?;
    let limit = params.limit.unwrap_or(SessionsUsageParams::DEFAULT_LIMIT);
    let asked = UsageRequest {
        range,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
        with_context_weight: params.include_context_weight == Some(true),
        prices: Arc::clone(&ledger.prices),
    };
    let (sessions, aggregates) = match &params.key {
        Some(key) => one(&ledger, &key.0, asked).await?,
        None => all(&ledger, asked).await?,
    };
    let (totals, aggregates) = aggregates.into_wire();
    let (start_date, end_date) = (range.first.to_string(), range.last.to_string());
    Ok(SessionsUsageResult { updated_at: now, start_date, end_date, sessions, totals, aggregates })
}

async fn one(
    ledger: &Ledger<'_>,
    text: &str,
    asked: UsageRequest,
) -> Result<(Vec<SessionUsage>, Aggregates), UsageError> {
    let places = ledger.places();
    let key = places.rules.canonical(text)?;
    let owner = ledger.store.get(&key).await?.as_ref().map(TranscriptOwner::of);
    let (text, range) = (text.to_owned(), asked.range);
    let look = move |index: &UsageIndex| {
        let transcript = places.one(&text, &key, owner)?;
        let scanned = read(index, &transcript, range)?;
        Some((transcript, scanned))
    };
    let used = ledger.index.look(look).await?;
    sessions_of(ledger, used.into_iter().collect(), &asked).await
}

async fn all(
    ledger: &Ledger<'_>,
    asked: UsageRequest,
) -> Result<(Vec<SessionUsage>, Aggregates), UsageError> {
    let places = ledger.places();
    let owners = ledger.owners_within(asked.range).await?;
    let (range, limit) = (asked.range, asked.limit);
    let look = move |index: &UsageIndex| {
        let transcripts = places.all(owners);
        let present: HashSet<&Path> = transcripts.iter().map(|found| found.path.as_path()).collect();
        index.retain(&present);
        used_last(index, transcripts, range, limit)
    };
    let used = ledger.index.look(look).await?;
    sessions_of(ledger, used, &asked).await
}

/// Request of a client.
struct UsageRequest {
    range: DayRange,
    limit: usize,
    with_context_weight: bool,
    prices: Prices,
}

/// A session's transcript and what it used.
type Used = (TranscriptOf, Arc<Scanned>);

/// Transcripts with usage in these days, most recently used first.
fn used_last(
    index: &UsageIndex,
    mut transcripts: Vec<TranscriptOf>,
    range: DayRange,
    limit: usize,
) -> Vec<Used> {
    transcripts.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| a.key.cmp(&b.key)));
    let used = |transcript: TranscriptOf| {
        let scanned = read(index, &transcript, range)?;
        scanned.digest().within(range).next()?;
        Some((transcript, scanned))
    };
    transcripts.into_iter().filter_map(used).take(limit).collect()
}

/// The answer. Rows are read one at a time: what a session is called need not be known of all of them.
async fn sessions_of(
    ledger: &Ledger<'_>,
    used: Vec<Used>,
    asked: &UsageRequest,
) -> Result<(Vec<SessionUsage>, Aggregates), UsageError> {
    let mut sessions = Vec::with_capacity(used.len());
    let mut aggregates = Aggregates::default();
    for (transcript, scanned) in used {
        let row = match &transcript.row {
            Some(key) => ledger.store.get(key).await?,
            None => None,
        };
        let entry = row.as_ref().map(|row| &*row.entry);
        let session = session::usage(&transcript, entry, scanned.digest(), asked);
        aggregates.add(&session, scanned.digest(), asked);
        sessions.push(session);
        tokio::task::yield_now().await;
    }
    Ok((sessions, aggregates))
}

/// Usage of a transcript; `None` if it was last written before the days asked for or can't be read.
pub(super) fn read(index: &UsageIndex, transcript: &TranscriptOf, range: DayRange) -> Option<Arc<Scanned>> {
    if transcript.modified_at < range.first.start_ms() {
        return None;
    }
    match index.digest(&transcript.path) {
        Ok(scanned) => Some(scanned),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            tracing::warn!(file = %transcript.path.display(), %error, "cannot count what the transcript used");
            None
        }
    }
}

/// The sums of a model on a day; answers that don't say what they cost at the catalog's price.
pub(super) fn model_totals(model: &ModelDigest, prices: &Prices) -> UsageTotals {
    let mut totals = UsageTotals::default();
    totals.add_tokens(&model.tokens);
    totals.add_costs(&model.costs);
    if model.unpriced.total > 0 {
        let price = model
            .provider
            .as_deref()
            .zip(model.model.as_deref())
            .and_then(|(provider, model)| prices(provider, model));
        match price {
            Some(price) => totals.add_costs(&Costs::of(&model.unpriced, &price)),
            None => totals.missing_cost_entries = model.unpriced_count,
        }
    }
    totals
}
