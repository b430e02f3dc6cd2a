//! Parser for the text that a person pastes after a login: the address the browser ended at, or the
//! code in one of its forms. Pure.

use url::Url;

/// Reason why an answer has no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The answer is of another login.
    #[error("State mismatch")]
    State,
    /// The answer contains no code.
    #[error("Missing authorization code")]
    Missing,
}

/// Finds the code in a whole address, in `code#state`, in `code=…&state=…`, or takes the text as the code.
///
/// # Errors
/// [`CodeError`]; a state that is there must be that of this login.
pub fn code_of(pasted: &str, state: &str) -> Result<String, CodeError> {
    let text = pasted.trim();
    if let Ok(url) = Url::parse(text)
        && url.has_host()
    {
        return from_query(url.query().unwrap_or_default(), state, StateRule::IfThere);
    }
    if let Some((code, theirs)) = text.split_once('#') {
        return check(code, Some(theirs), state, StateRule::IfThere);
    }
    if text.starts_with("code=") || text.contains("&code=") {
        return from_query(text, state, StateRule::IfThere);
    }
    check(text, None, state, StateRule::IfThere)
}

/// Requirement that an answer names its login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateRule {
    /// A person may leave it out.
    IfThere,
    /// A browser never does; one without it was sent by somebody else.
    Required,
}

/// Finds the code in the query of an address.
pub(crate) fn from_query(query: &str, state: &str, rule: StateRule) -> Result<String, CodeError> {
    let part = |wanted: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
    };
    check(&part("code").unwrap_or_default(), part("state").as_deref(), state, rule)
}

fn check(code: &str, theirs: Option<&str>, ours: &str, rule: StateRule) -> Result<String, CodeError> {
    let is_ours = theirs.map_or(rule == StateRule::IfThere, |theirs| theirs.trim() == ours);
    match (is_ours, code.trim()) {
        (false, _) => Err(CodeError::State),
        (true, "") => Err(CodeError::Missing),
        (true, code) => Ok(code.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_code_is_taken() {
        let rows = [
            ("http://localhost:1455/auth/callback?code=c%2F1&state=s", Ok("c/1")),
            ("  http://localhost:1455/auth/callback?code=c1  \n", Ok("c1")),
            ("http://localhost:1455/auth/callback?code=c1&state=other", Err(CodeError::State)),
            ("http://localhost:1455/auth/callback?state=s", Err(CodeError::Missing)),
            ("http://localhost:1455/auth/callback", Err(CodeError::Missing)),
            ("c1#s", Ok("c1")),
            ("c1#other", Err(CodeError::State)),
            ("#s", Err(CodeError::Missing)),
            ("code=c1&state=s", Ok("c1")),
            ("state=s&code=c1", Ok("c1")),
            ("code=c1&state=other", Err(CodeError::State)),
            ("c1", Ok("c1")),
            ("a:b", Ok("a:b")),
            ("   ", Err(CodeError::Missing)),
        ];
        for (pasted, expect) in rows {
            assert_eq!(code_of(pasted, "s"), expect.map(str::to_owned), "{pasted}");
        }
    }

    #[test]
    fn a_browser_must_bring_the_state() {
        assert_eq!(from_query("code=c", "s", StateRule::Required), Err(CodeError::State));
        assert_eq!(from_query("code=c&state=s", "s", StateRule::Required), Ok("c".to_owned()));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_code_or_an_error(text in ".{0,60}") {
            if let Ok(code) = code_of(&text, "s") {
                proptest::prop_assert!(!code.trim().is_empty());
            }
        }
    }
}
