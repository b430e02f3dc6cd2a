//! Changes to a text before Unigram cuts it.

use unicode_normalization::UnicodeNormalization as _;

use super::charsmap::Charsmap;

/// One change; a model has a list of them.
#[derive(Debug)]
pub(super) enum TextChange {
    Charsmap(Charsmap),
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,
}

impl TextChange {
    pub(super) fn apply(&self, text: &str) -> String {
        match self {
            Self::Charsmap(map) => map.apply(text),
            Self::Nfc => text.nfc().collect(),
            Self::Nfd => text.nfd().collect(),
            Self::Nfkc => text.nfkc().collect(),
            Self::Nfkd => text.nfkd().collect(),
            Self::Lowercase => text.to_lowercase(),
        }
    }
}
