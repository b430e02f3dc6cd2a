//! What the values of options mean.

use std::str::FromStr;

use crate::failure::Failure;

/// A value without the blanks around it; a blank one counts as absent.
pub(crate) fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// The same to keep.
pub(crate) fn given_text(text: &Option<String>) -> Option<String> {
    given(text.as_deref()).map(str::to_owned)
}

/// A whole number above zero.
///
/// # Errors
/// The complaint, when the text is none.
pub(crate) fn positive<N: FromStr + PartialOrd + Default>(
    text: &str,
    complaint: impl Into<String>,
) -> Result<N, Failure> {
    let number = text.trim().parse::<N>().ok().filter(|number| *number > N::default());
    number.ok_or_else(|| Failure::usage(complaint))
}
