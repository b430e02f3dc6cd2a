//! Tokens and costs, and adding them up.

use openclaw_protocol::params::usage::UsageTotals;

use super::Price;

/// Tokens of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TokenSums {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    /// Total as the answers report it; not always the sum.
    pub(super) total: u64,
}

impl TokenSums {
    pub(super) fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.total = self.total.saturating_add(other.total);
    }
}

/// Costs of answers in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Costs {
    pub(super) input: f64,
    pub(super) output: f64,
    pub(super) cache_read: f64,
    pub(super) cache_write: f64,
    pub(super) total: f64,
}

impl Costs {
    pub(super) fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.total += other.total;
    }

    /// Cost of tokens at a price.
    pub(super) fn of(tokens: &TokenSums, price: &Price) -> Self {
        const PER: f64 = 1_000_000.0;
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^53")]
        let of = |tokens: u64, price: f64| tokens as f64 * price / PER;
        let input = of(tokens.input, price.input);
        let output = of(tokens.output, price.output);
        let cache_read = of(tokens.cache_read, price.cache_read);
        let cache_write = of(tokens.cache_write, price.cache_write);
        Self { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write }
    }
}

/// Adds to sums as clients see them.
pub(super) trait Add {
    fn add_tokens(&mut self, tokens: &TokenSums);
    fn add_costs(&mut self, costs: &Costs);
    fn add(&mut self, other: &Self);
}

impl Add for UsageTotals {
    fn add_tokens(&mut self, tokens: &TokenSums) {
        self.input = self.input.saturating_add(tokens.input);
        self.output = self.output.saturating_add(tokens.output);
        self.cache_read = self.cache_read.saturating_add(tokens.cache_read);
        self.cache_write = self.cache_write.saturating_add(tokens.cache_write);
        self.total_tokens = self.total_tokens.saturating_add(tokens.total);
    }

    fn add_costs(&mut self, costs: &Costs) {
        self.input_cost += costs.input;
        self.output_cost += costs.output;
        self.cache_read_cost += costs.cache_read;
        self.cache_write_cost += costs.cache_write;
        self.total_cost += costs.total;
    }

    fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.total_cost += other.total_cost;
        self.input_cost += other.input_cost;
        self.output_cost += other.output_cost;
        self.cache_read_cost += other.cache_read_cost;
        self.cache_write_cost += other.cache_write_cost;
        self.missing_cost_entries = self.missing_cost_entries.saturating_add(other.missing_cost_entries);
    }
}
