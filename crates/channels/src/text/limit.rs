//! How long a part may be, in what its platform counts.

use super::grapheme;

/// What a platform counts.
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
    /// How long a text is.
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
    /// So many units; 0 is no limit.
    pub fn new(units: usize, unit: LengthUnit) -> Self {
        Self { units, unit }
    }

    /// So many UTF-16 code units; 0 is no limit.
    pub fn utf16(units: usize) -> Self {
        Self::new(units, LengthUnit::Utf16)
    }

    /// The number; 0 is no limit.
    pub fn units(self) -> usize {
        self.units
    }

    /// Another number of the same unit.
    #[must_use]
    pub fn of_units(self, units: usize) -> Self {
        Self { units, ..self }
    }

    /// How long a text is in its unit.
    pub fn len(self, text: &str) -> usize {
        self.unit.len(text)
    }

    /// Whether it is no limit.
    pub fn is_unlimited(self) -> bool {
        self.units == 0
    }

    /// Whether a text may be one part.
    pub fn fits(self, text: &str) -> bool {
        // No unit is smaller than a byte; the beginning that fits is looked for first, for texts that are far too long.
        self.is_unlimited()
            || text.len() <= self.units
            || self.prefix(text) == text.len() && self.len(text) <= self.units
    }

    /// So many units less; `None` where nothing would be left.
    pub fn minus(self, units: usize) -> Option<Self> {
        match self.units {
            0 => Some(self),
            all => all.checked_sub(units).filter(|left| *left > 0).map(|left| Self { units: left, ..self }),
        }
    }

    /// Where the longest beginning ends that fits and parts no grapheme, in bytes. A grapheme that is longer than the limit is parted
    /// between characters, and the first character always belongs to it, so that whoever cuts gets on.
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
