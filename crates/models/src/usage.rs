//! Tokens to money, and the spellings under which servers report tokens (spec `models.md` §7).

use openclaw_protocol::message::{Cost, Usage};
use serde_json::Value;

use crate::catalog::Price;

const PER: f64 = 1_000_000.0;

/// Fills in total and cost.
pub fn settle(usage: &mut Usage, price: &Price) {
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

const INPUT: &[&str] = &["input", "inputTokens", "input_tokens", "promptTokens", "prompt_tokens"];
const OUTPUT: &[&str] = &["output", "outputTokens", "output_tokens", "completionTokens", "completion_tokens"];
const CACHE_READ: &[&str] = &["cacheRead", "cache_read", "cache_read_input_tokens"];
const CACHE_WRITE: &[&str] = &["cacheWrite", "cache_write", "cache_creation_input_tokens"];
const TOTAL: &[&str] = &["total", "totalTokens", "total_tokens"];

/// Reads usage under any of its known spellings; nothing when no field is there. The total is the reported one, else the
/// sum.
pub fn normalize(value: &Value) -> Option<Usage> {
    let fields = value.as_object()?;
    let find = |names: &[&str]| names.iter().find_map(|name| tokens(fields.get(*name)?));
    let (input, output) = (find(INPUT), find(OUTPUT));
    let (cache_read, cache_write, total) = (find(CACHE_READ), find(CACHE_WRITE), find(TOTAL));
    [input, output, cache_read, cache_write, total].iter().any(Option::is_some).then(|| {
        let mut usage = Usage {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            cache_read: cache_read.unwrap_or(0),
            cache_write: cache_write.unwrap_or(0),
            ..Usage::default()
        };
        usage.total_tokens =
            total.unwrap_or(usage.input + usage.output + usage.cache_read + usage.cache_write);
        usage
    })
}

/// What a session shows as its context fill: the prompt tokens of its last call, else the total, else the input, capped at
/// the window (spec `models.md` §7).
pub fn context_fill(last: Option<&Usage>, window: Option<u64>) -> Option<u64> {
    let usage = last?;
    let prompt = usage.input + usage.cache_read + usage.cache_write;
    let fill = if prompt > 0 { prompt } else { usage.total_tokens };
    (fill > 0).then(|| window.map_or(fill, |window| fill.min(window)))
}

fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|n| n.is_finite() && *n >= 0.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "finite, not negative; as saturates"
        )]
        Some(number as u64)
    })
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
    use serde_json::json;

    use super::*;

    /// Example of `models.md` §4.1.
    #[test]
    fn opus_costs_what_the_spec_says() {
        let price = Price { input: 5.0, output: 25.0, cache_read: 0.5, cache_write: 6.25 };
        let mut usage = Usage { input: 100, output: 9, cache_read: 11, cache_write: 7, ..Usage::default() };
        settle(&mut usage, &price);
        assert_eq!(usage.total_tokens, 127);
        assert!((usage.cost.total - 0.000_774_25).abs() < 1e-12, "{}", usage.cost.total);
        assert!((usage.cost.cache_write - 0.000_043_75).abs() < 1e-15);
    }

    #[test]
    fn all_spellings_are_read() {
        let rows = [
            (json!({"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"total":10}), [1, 2, 3, 4, 10]),
            (json!({"prompt_tokens":5,"completion_tokens":6,"total_tokens":11}), [5, 6, 0, 0, 11]),
            (json!({"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3}), [1, 2, 3, 0, 6]),
            (json!({"promptTokens":1.0,"completionTokens":null}), [1, 0, 0, 0, 1]),
        ];
        for (value, expect) in rows {
            let u = normalize(&value).unwrap();
            assert_eq!([u.input, u.output, u.cache_read, u.cache_write, u.total_tokens], expect, "{value}");
        }
        assert_eq!(normalize(&json!({"other": 1})), None);
        assert_eq!(normalize(&json!(3)), None);
    }

    /// Every alias of `models.md` §7, alone and in the place of its first one.
    #[test]
    fn every_alias_means_the_same() {
        let of = |usage: &Usage| [usage.input, usage.output, usage.cache_read, usage.cache_write];
        for (at, names) in [INPUT, OUTPUT, CACHE_READ, CACHE_WRITE].into_iter().enumerate() {
            for name in names {
                let usage = normalize(&json!({ *name: 7 })).unwrap();
                let mut expect = [0; 4];
                expect[at] = 7;
                assert_eq!((of(&usage), usage.total_tokens), (expect, 7), "{name}");
            }
        }
        for name in TOTAL {
            assert_eq!(normalize(&json!({ *name: 7, "input": 3 })).unwrap().total_tokens, 7, "{name}");
        }
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

    /// Vectors of `models.md` §7.
    #[test]
    fn context_fill_is_the_last_prompt_capped_at_the_window() {
        let usage =
            |input, cache_read, total| Usage { input, cache_read, total_tokens: total, ..Usage::default() };
        assert_eq!(context_fill(Some(&usage(27, 2400, 2433)), Some(200_000)), Some(2427));
        assert_eq!(context_fill(Some(&usage(100, 0, 0)), None), Some(100));
        assert_eq!(context_fill(Some(&usage(0, 0, 5000)), Some(4000)), Some(4000));
        assert_eq!(context_fill(None, Some(4000)), None);
        assert_eq!(context_fill(Some(&usage(0, 0, 0)), None), None);
    }
}
