//! Sizes in config values: `500mb`, `1.5gb`, `4096`.

/// Error for a text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid size: {0} (use b, kb, mb, gb, tb)")]
pub struct ByteSizeError(String);

/// Maximum, 2^53: what a JSON number can hold. A larger value is a typing error.
const MAX: f64 = 9_007_199_254_740_991.0;

/// Reads a size as bytes; a number without a unit counts bytes, and a kilobyte has 1024 of them.
///
/// # Errors
/// [`ByteSizeError`] for anything but a non-negative number with at most one unit.
pub fn parse_byte_size(text: &str) -> Result<u64, ByteSizeError> {
    let invalid = || ByteSizeError(text.to_owned());
    let lower = text.trim().to_ascii_lowercase();
    let digits_end = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits_end);
    let power = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return Err(invalid()),
    };
    let well_formed = number.starts_with(|c: char| c.is_ascii_digit()) && !number.ends_with('.');
    let amount: f64 = number.parse().ok().filter(|_| well_formed).ok_or_else(invalid)?;
    let total = (amount * 1024_f64.powi(power)).round();
    if total > MAX {
        return Err(invalid());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range and not negative")]
    Ok(total as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_at_most_one_unit() {
        let good = [
            ("0", 0),
            ("4096", 4096),
            (" 10MB ", 10 << 20),
            ("1.5 gb", 3 << 29),
            ("2k", 2048),
            ("7b", 7),
            ("1TiB", 1 << 40),
        ];
        for (text, bytes) in good {
            assert_eq!(parse_byte_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "mb", "-1", "1.", ".5kb", "1mbb", "1 m b", "99999999tb", "ten"] {
            assert!(parse_byte_size(text).is_err(), "{text}");
        }
    }
}
