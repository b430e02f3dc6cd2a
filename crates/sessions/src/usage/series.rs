//! `sessions.usage.timeseries`: one session's answers over time.

use std::io::{self, BufReader};
use std::path::Path;

use openclaw_config::shared_place;
use openclaw_protocol::params::usage::{
    SessionsUsageTimeseriesParams, SessionsUsageTimeseriesResult, UsagePoint,
};

use super::digest::Counting;
use super::line::{self, AnswerUsage, CountedRole, UsageLine};
use super::scan::unix_ms;
use super::sums::{Costs, TokenSums};
use super::{Ledger, Prices, UsageError};
use crate::transcript::scan::Lines;

/// Answers `sessions.usage.timeseries`.
pub async fn timeseries(
    ledger: Ledger<'_>,
    params: &SessionsUsageTimeseriesParams,
) -> Result<SessionsUsageTimeseriesResult, UsageError> {
    let key = params.key.as_deref();
    match ledger.read_one(key, "timeseries", points).await? {
        Some((session_id, points)) => Ok(SessionsUsageTimeseriesResult { session_id, points }),
        None => Err(UsageError::NoTranscript(key.unwrap_or_default().trim().to_owned())),
    }
}

fn points(path: &Path, prices: &Prices) -> io::Result<Vec<UsagePoint>> {
    let file = shared_place::open(path)?;
    let fallback = unix_ms(file.metadata()?.modified().ok());
    let mut lines = Lines::new(BufReader::with_capacity(64 * 1024, file), 0);
    let mut counting = Counting::default();
    let mut series = Series::default();
    while let Some(line) = lines.advance()? {
        if line.cut {
            continue;
        }
        let read = line::read(lines.bytes());
        let UsageLine::Message(message) = &read else {
            counting.line(&read, fallback);
            continue;
        };
        let at = counting.time_of(message, fallback);
        if let (Some(at), CountedRole::Assistant(answer) | CountedRole::Summary(answer)) = (at, &message.said)
            && let Some(tokens) = answer.tokens.filter(|_| answer.is_of_a_model())
        {
            series.push(Sum { at, tokens, cost: cost_of(answer, prices).unwrap_or(0.0) });
        }
    }
    Ok(series.points())
}

/// Cost of an answer: as it says, else at the catalog's price.
pub(super) fn cost_of(answer: &AnswerUsage<'_>, prices: &Prices) -> Option<f64> {
    if let Some(costs) = answer.costs {
        return Some(costs.total);
    }
    let price = prices(answer.provider.as_deref()?, answer.model.as_deref()?)?;
    Some(Costs::of(&answer.tokens?, &price).total)
}

/// Answers in a row, taken together.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    at: i64,
    tokens: TokenSums,
    cost: f64,
}

const MOST: usize = SessionsUsageTimeseriesResult::MAX_POINTS;

/// Points that become fewer and wider as answers come: never more than twice the requested number.
#[derive(Debug, Default)]
struct Series {
    sums: Vec<Sum>,
    /// Answers a full sum stands for; 0 is one.
    wide: usize,
    /// Answers in the last sum.
    last: usize,
}

impl Series {
    fn push(&mut self, sum: Sum) {
        let wide = self.wide.max(1);
        match self.sums.last_mut().filter(|_| self.last < wide) {
            Some(open) => {
                open.merge(&sum);
                self.last += 1;
            }
            None => {
                self.sums.push(sum);
                self.last = 1;
            }
        }
        if self.last == wide && self.sums.len() >= 2 * MOST {
            self.halve();
        }
    }

    /// Takes each two neighbours together.
    fn halve(&mut self) {
        self.sums = self
            .sums
            .chunks(2)
            .filter_map(|pair| {
                let (first, rest) = pair.split_first()?;
                let mut sum = *first;
                rest.iter().for_each(|other| sum.merge(other));
                Some(sum)
            })
            .collect();
        self.wide = self.wide.max(1) * 2;
        self.last = self.wide;
    }

    fn points(mut self) -> Vec<UsagePoint> {
        if self.sums.len() > MOST {
            self.halve();
        }
        let (mut cumulative_tokens, mut cumulative_cost) = (0_u64, 0.0);
        let point = |sum: Sum| {
            cumulative_tokens = cumulative_tokens.saturating_add(sum.tokens.total);
            cumulative_cost += sum.cost;
            UsagePoint {
                timestamp: sum.at,
                input: sum.tokens.input,
                output: sum.tokens.output,
                cache_read: sum.tokens.cache_read,
                cache_write: sum.tokens.cache_write,
                total_tokens: sum.tokens.total,
                cost: sum.cost,
                cumulative_tokens,
                cumulative_cost,
            }
        };
        self.sums.into_iter().map(point).collect()
    }
}

impl Sum {
    fn merge(&mut self, later: &Self) {
        self.at = later.at;
        self.tokens.add(&later.tokens);
        self.cost += later.cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_answers_become_few_points_that_add_up_to_the_same() {
        for count in [0, 1, 199, 200, 201, 399, 400, 401, 799, 800, 801, 1_000, 12_345] {
            let mut series = Series::default();
            for at in 1..=count {
                series.push(Sum {
                    at,
                    tokens: TokenSums { input: 1, total: 2, ..TokenSums::default() },
                    cost: 0.5,
                });
                assert!(series.sums.len() <= 2 * MOST);
            }
            let points = series.points();
            let whole = usize::try_from(count).unwrap();
            assert!(points.len() <= MOST && points.len() >= whole.min(MOST / 2), "{count}: {}", points.len());
            assert_eq!(points.iter().map(|point| point.input).sum::<u64>(), whole as u64);
            if let Some(last) = points.last() {
                assert_eq!((last.timestamp, last.cumulative_tokens), (count, 2 * whole as u64), "{count}");
                assert!((last.cumulative_cost - 0.5 * whole as f64).abs() < 1e-6);
            }
            assert!(points.is_sorted_by_key(|point| point.timestamp));
        }
    }
}
