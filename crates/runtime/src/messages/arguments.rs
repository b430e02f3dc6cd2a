//! Reading the arguments of an action. Models write numbers as texts and leave keys empty: a blank text counts as absent.

use openclaw_channels::Button;
use serde_json::Value;

use super::MessageError;

/// Bytes of a button's data that any platform takes.
const BUTTON_TEXT: usize = 256;

/// The arguments of one action.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActionArguments<'a>(pub(super) &'a Value);

impl<'a> ActionArguments<'a> {
    /// Returns a text as it was written.
    pub(super) fn text(self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str().filter(|text| !text.trim().is_empty())
    }

    /// A text without blanks around it; a number as a text.
    pub(super) fn word(self, key: &str) -> Option<String> {
        match self.0.get(key)? {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Returns the first of these that is there.
    pub(super) fn first(self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| self.word(key))
    }

    /// True if the argument is `true`, also as a text.
    pub(super) fn flag(self, key: &str) -> bool {
        match self.0.get(key) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => text.trim().eq_ignore_ascii_case("true"),
            _ => false,
        }
    }

    /// Returns a whole number that is not negative.
    pub(super) fn count(self, key: &str) -> Option<u32> {
        self.word(key)?.parse().ok()
    }

    /// Texts; one alone may stand without a list.
    pub(super) fn list(self, key: &str) -> Vec<String> {
        let word = |value: &Value| match value {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        match self.0.get(key) {
            Some(Value::Array(items)) => items.iter().filter_map(word).collect(),
            Some(one) => word(one).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Rows of buttons.
    pub(super) fn buttons(self) -> Result<Vec<Vec<Button>>, MessageError> {
        let Some(given) = self.0.get("buttons").filter(|buttons| !buttons.is_null()) else {
            return Ok(Vec::new());
        };
        // Models write JSON as a text.
        let parsed = given.as_str().and_then(|text| serde_json::from_str(text).ok());
        let rows = parsed.as_ref().unwrap_or(given).as_array();
        let rows = rows.ok_or_else(|| wrong("buttons must be an array of button rows"))?;
        let rows: Result<Vec<_>, _> = rows.iter().enumerate().map(|(at, row)| button_row(at, row)).collect();
        Ok(rows?.into_iter().filter(|row| !row.is_empty()).collect())
    }
}

fn button_row(at: usize, row: &Value) -> Result<Vec<Button>, MessageError> {
    let row = row.as_array().ok_or_else(|| wrong(&format!("buttons[{at}] must be an array")))?;
    row.iter().enumerate().map(|(place, each)| button(at, place, each)).collect()
}

fn button(at: usize, place: usize, each: &Value) -> Result<Button, MessageError> {
    let field = |keys: [&str; 2]| keys.iter().find_map(|key| each.get(key)?.as_str()).map(str::trim);
    let text = field(["text", "label"]).unwrap_or_default();
    let data = field(["callback_data", "data"]).unwrap_or_default();
    if text.is_empty() || data.is_empty() {
        return Err(wrong(&format!("buttons[{at}][{place}] requires text and callback_data")));
    }
    if data.len() > 64 {
        return Err(wrong(&format!("buttons[{at}][{place}] callback_data too long (max 64 bytes)")));
    }
    if text.len() > BUTTON_TEXT {
        return Err(wrong(&format!("buttons[{at}][{place}] text too long (max {BUTTON_TEXT} bytes)")));
    }
    Ok(Button { text: text.to_owned(), data: data.to_owned() })
}

fn wrong(text: &str) -> MessageError {
    MessageError::Invalid(text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_models_write_is_read() {
        let value =
            json!({"a": " x ", "b": " ", "c": 42, "d": "true", "e": ["1", " ", 2], "f": "one", "g": "3"});
        let args = ActionArguments(&value);
        assert_eq!((args.word("a").as_deref(), args.text("a")), (Some("x"), Some(" x ")));
        assert_eq!((args.word("b"), args.word("c").as_deref()), (None, Some("42")));
        assert!(args.flag("d") && !args.flag("a"));
        assert_eq!(
            (args.list("e"), args.list("f")),
            (vec!["1".to_owned(), "2".to_owned()], vec!["one".to_owned()])
        );
        assert_eq!((args.count("g"), args.count("c"), args.count("a")), (Some(3), Some(42), None));
        assert_eq!(args.first(&["b", "c"]).as_deref(), Some("42"));
    }

    #[test]
    fn buttons_are_checked() {
        let rows = [
            (json!([[{"text": "A", "callback_data": "a"}], []]), Ok(1)),
            (json!("[[{\"text\":\"A\",\"callback_data\":\"a\"}]]"), Ok(1)),
            (json!(null), Ok(0)),
            (json!([]), Ok(0)),
            (json!("x"), Err("buttons must be an array of button rows")),
            (json!([{"text": "A"}]), Err("buttons[0] must be an array")),
            (json!([[{"text": "A"}]]), Err("buttons[0][0] requires text and callback_data")),
            (
                json!([[{"text": "A", "callback_data": "x".repeat(65)}]]),
                Err("buttons[0][0] callback_data too long (max 64 bytes)"),
            ),
        ];
        for (given, expect) in rows {
            let value = json!({"buttons": given});
            let read =
                ActionArguments(&value).buttons().map(|rows| rows.len()).map_err(|error| error.to_string());
            assert_eq!(read, expect.map_err(str::to_owned), "{value}");
        }
    }
}
