//! Tokens to money, and both for people (spec `models.md` §7).

use openclaw_config::settings::ModelCost;
use openclaw_protocol::message::{Cost, Usage};

const PER: f64 = 1_000_000.0;
/// The most tokens believed of one count, far above any model's. A careless or hostile server may send any number; sums
/// over all answers of a session must not overflow.
const MAX_COUNT: u64 = 1_000_000_000_000;

/// The price of a tier that costs this factor of the list's.
pub(crate) fn times(price: ModelCost, factor: f64) -> ModelCost {
    ModelCost {
        input: price.input * factor,
        output: price.output * factor,
        cache_read: price.cache_read * factor,
        cache_write: price.cache_write * factor,
    }
}

/// Caps the counts, then fills in total and cost.
pub fn settle(usage: &mut Usage, price: &ModelCost) {
    for count in [&mut usage.input, &mut usage.output, &mut usage.cache_read, &mut usage.cache_write] {
        *count = MAX_COUNT.min(*count);
    }
    usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
    let of = |tokens: u64, price: f64| {
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
        let tokens = tokens as f64;
        price / PER * tokens
    };
    let mut cost = Cost {
        input: of(usage.input, price.input),
        output: of(usage.output, price.output),
        cache_read: of(usage.cache_read, price.cache_read),
        cache_write: of(usage.cache_write, price.cache_write),
        total: 0.0,
    };
    cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
    usage.cost = cost;
}

/// Dollars for people: `$12.35`, `$0.01`, and four digits below a cent (spec `messages.md` §9).
pub fn dollars(amount: f64) -> String {
    if amount >= 0.01 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// A count of tokens for people: `999`, `1.2k`, `32k`, `1.2m` (spec `messages.md` §9).
pub fn short_count(tokens: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
    let count = tokens as f64;
    match tokens {
        0..=999 => tokens.to_string(),
        1_000..=9_999 => format!("{:.1}k", count / 1e3),
        10_000..=999_999 => format!("{:.0}k", count / 1e3),
        _ => format!("{:.1}m", count / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of `models.md` §4.1.
    #[test]
    fn opus_costs_what_the_spec_says() {
        let price = ModelCost { input: 5.0, output: 25.0, cache_read: 0.5, cache_write: 6.25 };
        let mut usage = Usage { input: 100, output: 9, cache_read: 11, cache_write: 7, ..Usage::default() };
        settle(&mut usage, &price);
        assert_eq!(usage.total_tokens, 127);
        assert!((usage.cost.total - 0.000_774_25).abs() < 1e-12, "{}", usage.cost.total);
        assert!((usage.cost.cache_write - 0.000_043_75).abs() < 1e-15);
    }

    #[test]
    fn counts_no_model_can_have_do_not_overflow() {
        let mut usage = Usage { input: u64::MAX, output: u64::MAX, cache_read: 1, ..Usage::default() };
        settle(&mut usage, &ModelCost::default());
        assert_eq!((usage.input, usage.total_tokens), (MAX_COUNT, 2 * MAX_COUNT + 1));
    }

    /// Numbers of `messages.md` §9.
    #[test]
    fn numbers_are_short() {
        let counts = [
            (999, "999"),
            (1_200, "1.2k"),
            (9_999, "10.0k"),
            (10_000, "10k"),
            (32_000, "32k"),
            (999_999, "1000k"),
            (1_200_000, "1.2m"),
        ];
        for (tokens, expect) in counts {
            assert_eq!(short_count(tokens), expect, "{tokens}");
        }
        for (amount, expect) in [(0.0, "$0.0000"), (0.0099, "$0.0099"), (0.01, "$0.01"), (12.345_6, "$12.35")]
        {
            assert_eq!(dollars(amount), expect, "{amount}");
        }
    }
}
