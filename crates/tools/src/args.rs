//! Reading what a model passed (spec `tools.md` §1, §2).

use openclaw_agent::ToolError;
use serde_json::Value;

/// The arguments of one call.
#[derive(Debug)]
pub(crate) struct Args(pub(crate) Value);

/// A parameter under the two names models know it by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Either(pub(crate) &'static str, pub(crate) &'static str);

/// The file a tool works on.
pub(crate) const PATH: Either = Either("path", "file_path");

impl Args {
    /// The `path` as it was written: spaces around it may belong to the name
    /// ([`crate::path::Resolver::absolute`]).
    pub(crate) fn path(&self) -> Result<String, ToolError> {
        let found = self.either(PATH).filter(|path| !path.trim().is_empty());
        found.map(str::to_owned).ok_or_else(|| missing(PATH))
    }

    /// A text exactly as given, empty allowed.
    pub(crate) fn text_of(&self, names: Either) -> Result<&str, ToolError> {
        self.either(names).ok_or_else(|| missing(names))
    }

    /// A string exactly as given.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A string without surrounding white space; empty counts as absent.
    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        self.text(name).map(str::trim).filter(|text| !text.is_empty())
    }

    /// Returns a word like [`Self::word`], or an error if the parameter is missing.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ToolError> {
        self.word(name).ok_or_else(|| ToolError::Failed(format!("{name} required")))
    }

    /// A finite number; numeric strings count.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        let value = self.0.get(name)?;
        let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()))?;
        number.is_finite().then_some(number)
    }

    /// A line number or a count of at least one; anything below counts as absent, fractions are cut.
    pub(crate) fn count(&self, name: &str) -> Option<usize> {
        let number = self.number(name).filter(|number| *number >= 1.0)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at least 1, saturates above"
        )]
        Some(number as usize)
    }

    /// Texts; one alone may stand without a list.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        match self.0.get(name) {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// A boolean; absent is `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn either(&self, names: Either) -> Option<&str> {
        self.text(names.0).or_else(|| self.text(names.1))
    }
}

fn missing(names: Either) -> ToolError {
    ToolError::Failed(format!("Missing required parameter: {} ({} or {})", names.0, names.0, names.1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_naming_styles_are_read() {
        for (args, path) in [
            (json!({"path": " a.txt "}), Ok(" a.txt ")),
            (json!({"file_path": "b.txt"}), Ok("b.txt")),
            (json!({"path": "a", "file_path": "b"}), Ok("a")),
            (json!({}), Err("Missing required parameter: path (path or file_path)")),
            (json!({"path": "  "}), Err("Missing required parameter: path (path or file_path)")),
            (json!({"path": 5}), Err("Missing required parameter: path (path or file_path)")),
            (json!(null), Err("Missing required parameter: path (path or file_path)")),
        ] {
            let read = Args(args).path().map_err(|error| error.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), path);
        }
    }

    /// Spec `tools.md` §1.
    #[test]
    fn words_are_trimmed_and_missing_ones_are_named() {
        let args = Args(json!({"a": " x ", "b": " ", "c": 5, "d": null, "e": ["x"]}));
        let read = ["a", "b", "c", "d", "e", "f"]
            .map(|name| args.required(name).map_err(|error| error.to_string()).map(str::to_owned));
        let missing = |name: &str| Err(format!("{name} required"));
        let expect =
            [Ok("x".to_owned()), missing("b"), missing("c"), missing("d"), missing("e"), missing("f")];
        assert_eq!(read, expect);
        assert_eq!(["a", "b", "c"].map(|name| args.word(name)), [Some("x"), None, None]);
        assert_eq!(["a", "b", "c"].map(|name| args.text(name)), [Some(" x "), Some(" "), None]);
        let numbers = Args(json!({"a": "1.5", "b": " 2 ", "c": "", "d": true, "e": -1, "f": "NaN"}));
        let read = ["a", "b", "c", "d", "e", "f"].map(|name| numbers.number(name));
        assert_eq!(read, [Some(1.5), Some(2.0), None, None, Some(-1.0), None]);
        let lists = Args(json!({"a": "x", "b": ["x", 5, " y"], "c": 5, "d": null}));
        let read = ["a", "b", "c", "d", "e"].map(|name| lists.texts(name).join("|"));
        assert_eq!(read, ["x", "x| y", "", "", ""]);
        let flags = Args(json!({"a": true, "b": "true", "c": 1}));
        assert_eq!(["a", "b", "c", "d"].map(|name| flags.flag(name)), [true, false, false, false]);
    }

    #[test]
    fn numbers_may_be_strings_and_nonsense_is_absent() {
        let args =
            Args(json!({"a": 3, "b": " 4 ", "c": "x", "d": 0, "e": -2, "f": 2.9, "g": null, "h": "inf"}));
        let read: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| args.count(name)).into();
        assert_eq!(read, [Some(3), Some(4), None, None, None, Some(2), None, None]);
    }
}
