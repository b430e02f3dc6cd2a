//! Durations in config values: `30m`, `1.5h`, `500ms` (spec `config.md` §4.3).

/// Unit of a number that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationUnit {
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Days.
    Days,
}

impl DurationUnit {
    fn milliseconds(self) -> f64 {
        match self {
            Self::Milliseconds => 1.0,
            Self::Seconds => 1_000.0,
            Self::Minutes => 60_000.0,
            Self::Hours => 3_600_000.0,
            Self::Days => 86_400_000.0,
        }
    }
}

/// Error for a text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// The text is empty.
    #[error("invalid duration (empty)")]
    Empty,
    /// The text is no duration.
    #[error("invalid duration: {0}")]
    Invalid(String),
}

/// Reads a duration as milliseconds. Blanks around it do not matter.
///
/// # Errors
/// [`DurationError`] for anything but a non-negative number with at most one unit.
pub fn parse_duration(text: &str, default_unit: DurationUnit) -> Result<u64, DurationError> {
    if text.trim().is_empty() {
        return Err(DurationError::Empty);
    }
    let invalid = || DurationError::Invalid(text.to_owned());
    let lower = text.trim().to_ascii_lowercase();
    let digits_end = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits_end);
    let unit = match unit {
        "" => default_unit,
        "ms" => DurationUnit::Milliseconds,
        "s" => DurationUnit::Seconds,
        "m" => DurationUnit::Minutes,
        "h" => DurationUnit::Hours,
        "d" => DurationUnit::Days,
        _ => return Err(invalid()),
    };
    let well_formed = number.starts_with(|c: char| c.is_ascii_digit()) && !number.ends_with('.');
    let amount: f64 = number.parse().ok().filter(|_| well_formed).ok_or_else(invalid)?;
    let total = (amount * unit.milliseconds()).round();
    if total > MAX_MILLISECONDS {
        return Err(invalid());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range and not negative")]
    Ok(total as u64)
}

/// A thousand years: more is a typing error.
const MAX_MILLISECONDS: f64 = 3.2e13;
