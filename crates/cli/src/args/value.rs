//! What the values of options mean.

use std::str::FromStr;

use crate::failure::CommandFailure;

/// A value without the blanks around it; a blank one counts as absent.
pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// The same to keep.
pub(crate) fn given_text(text: &Option<String>) -> Option<String> {
    given(text.as_deref()).map(str::to_owned)
}

/// What may begin with a hyphen, as ids of groups and lists in texts do: anything but what reads as an option.
///
/// # Errors
/// It reads as an option: the value before it was forgotten.
pub(crate) fn no_option(text: &str) -> Result<String, &'static str> {
    let is_word = |word: &str| word.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
    let is_option = match (text.strip_prefix("--"), text.strip_prefix('-')) {
        (Some(long), _) => {
            let name = long.split('=').next().unwrap_or_default();
            name.starts_with(|c: char| c.is_ascii_lowercase()) && is_word(name)
        }
        (None, Some(short)) => short.len() == 1 && short.starts_with(|c: char| c.is_ascii_alphabetic()),
        (None, None) => false,
    };
    if is_option { Err("this is an option, and the value before it is missing") } else { Ok(text.to_owned()) }
}

/// A whole number above zero.
///
/// # Errors
/// The complaint, when the text is none.
pub(crate) fn positive<N: FromStr + PartialOrd + Default>(
    text: &str,
    complaint: impl Into<String>,
) -> Result<N, CommandFailure> {
    let number = text.trim().parse::<N>().ok().filter(|number| *number > N::default());
    number.ok_or_else(|| CommandFailure::usage(complaint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_no_value() {
        for text in [
            "-1001",
            "-1001:topic:7",
            "@ada",
            "- milk\n- bread",
            "-- so be it",
            "--",
            "-",
            "-5 degrees",
            "---",
        ] {
            assert_eq!(no_option(text).as_deref(), Ok(text));
        }
        for text in ["--json", "--mesage", "--dry-run", "--account=work", "-t"] {
            assert!(no_option(text).is_err(), "{text}");
        }
    }
}
