//! Length limit of a part, in the unit that its platform counts.

use super::grapheme;

/// Unit that a platform counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LengthUnit {
    /// UTF-16 code units: Telegram, Discord, Signal.
    #[default]
    Utf16,
    /// Bytes of UTF-8: IRC.
    Bytes,
    /// Unicode scalar values: Slack.
    Chars,
}

impl LengthUnit {
    /// Returns the length of a text.
    pub fn len(self, text: &str) -> usize {
        match self {
            Self::Utf16 => text.encode_utf16().count(),
            Self::Bytes => text.len(),
            Self::Chars => text.chars().count(),
        }
    }

    fn of(self, c: char) -> usize {
        match self {
            Self::Utf16 => c.len_utf16(),
            Self::Bytes => c.len_utf8(),
            Self::Chars => 1,
        }
    }
}

/// The longest a part may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    units: usize,
    unit: LengthUnit,
}

impl Limit {
    /// Creates a limit of this many units; 0 is no limit.
    pub fn new(units: usize, unit: LengthUnit) -> Self {
        Self { units, unit }
    }

    /// Creates a limit of this many UTF-16 code units; 0 is no limit.
    pub fn utf16(units: usize) -> Self {
        Self::new(units, LengthUnit::Utf16)
    }

    /// The number; 0 is no limit.
    pub fn units(self) -> usize {
        self.units
    }

    /// Returns a limit with another number of the same unit.
    #[must_use]
    pub fn of_units(self, units: usize) -> Self {
        Self { units, ..self }
    }

    /// Returns the length of a text in the limit's unit.
    pub fn len(self, text: &str) -> usize {
        self.unit.len(text)
    }

    /// Returns true if there is no limit.
    pub fn is_unlimited(self) -> bool {
        self.units == 0
    }

    /// Returns true if a text fits into one part.
    pub fn fits(self, text: &str) -> bool {
        // No unit is smaller than a byte; the beginning that fits is looked for first, for texts that are far too long.
        self.is_unlimited()
            || text.len() <= self.units
            || self.prefix(text) == text.len() && self.len(text) <= self.units
    }

    /// Returns the limit reduced by this many units; `None` if nothing would be left.
    pub fn minus(self, units: usize) -> Option<Self> {
        match self.units {
            0 => Some(self),
            all => all.checked_sub(units).filter(|left| *left > 0).map(|left| Self { units: left, ..self }),
        }
    }

    /// Returns the end in bytes of the longest beginning that fits and splits no grapheme. A
    /// grapheme that is longer than the limit is parted between characters, and the first character
    /// always belongs to it, so that whoever cuts gets on.
    pub fn prefix(self, text: &str) -> usize {
        if self.is_unlimited() || text.len() <= self.units {
            return text.len();
        }
        let mut used = 0;
        let mut end = text.len();
        for (at, c) in text.char_indices() {
            used += self.unit.of(c);
            if used > self.units {
                end = at;
                break;
            }
        }
        if end == 0 {
            return text.chars().next().map_or(0, char::len_utf8);
        }
        match grapheme::floor(text, end) {
            0 => end,
            whole => whole,
        }
    }
}
