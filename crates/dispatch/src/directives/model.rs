//! `/model`, and `/<alias>` for each alias the owner gave (spec `models.md` §1.3).

use openclaw_sessions::reset::trigger::strip_prefix_without_case;

use super::line::{Hit, cut, ends_name, skip_colon, slashes};

/// What is asked with `/model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelWish {
    /// Nothing behind it: the model in use.
    Show,
    /// `status`: everything about it.
    Status,
    /// `list`: what there is.
    List,
    /// This model, maybe with a credential of its own.
    Choose {
        /// As it was written.
        model: String,
        /// Id of an auth profile.
        profile: Option<String>,
    },
    /// A credential without a model.
    ProfileAlone,
}

impl ModelWish {
    /// Whether it is a wish for another model.
    pub(super) fn chooses(&self) -> bool {
        match self {
            Self::Choose { .. } => true,
            Self::Show | Self::Status | Self::List | Self::ProfileAlone => false,
        }
    }

    /// Reads `name@profile`. A profile id may have more of the signs, as in an e-mail address.
    fn of(token: &str) -> Self {
        let (model, profile) = token.split_once('@').unwrap_or((token, ""));
        let profile = Some(profile).filter(|profile| !profile.is_empty()).map(str::to_owned);
        let word = model.to_lowercase();
        match (word.as_str(), profile) {
            ("" | "status" | "list", Some(_)) => Self::ProfileAlone,
            ("", None) => Self::Show,
            ("status", None) => Self::Status,
            ("list", None) => Self::List,
            (_, profile) => Self::Choose { model: model.to_owned(), profile },
        }
    }
}

/// The wish in a text and what is left of the text. Of several the first counts; all are taken out.
pub(super) fn take(text: &str, aliases: &[&str]) -> Option<(ModelWish, String)> {
    if let Some((token, rest)) = cut(text, find_model) {
        return Some((ModelWish::of(&token), rest));
    }
    let (alias, rest) = cut(text, |line| find_alias(line, aliases))?;
    // `/opus:/model` leaves one that was none before.
    let rest = cut(&rest, find_model).map_or(rest, |(_, rest)| rest);
    Some((ModelWish::Choose { model: alias, profile: None }, rest))
}

fn find_model(line: &str) -> Option<Hit<String>> {
    slashes(line).find_map(|(from, behind)| {
        let behind = strip_prefix_without_case(behind, "model").filter(|behind| ends_name(behind))?;
        let behind = skip_colon(behind);
        let token = token(behind);
        let to = line.len() - behind.len() + token.len();
        Some(Hit { from, to, value: token.to_owned() })
    })
}

fn find_alias(line: &str, aliases: &[&str]) -> Option<Hit<String>> {
    slashes(line).find_map(|(from, behind)| {
        let matches = aliases.iter().filter_map(|alias| {
            let behind = strip_prefix_without_case(behind, alias).filter(|behind| ends_name(behind))?;
            Some((*alias, behind))
        });
        // An alias may begin with another one and a blank.
        let (alias, behind) = matches.min_by_key(|(_, behind)| behind.len())?;
        let behind = behind.trim_start().strip_prefix(':').unwrap_or(behind);
        Some(Hit { from, to: line.len() - behind.len(), value: alias.to_owned() })
    })
}

/// The longest beginning of the form `a/b/c`.
fn token(text: &str) -> &str {
    let of_part = |c: char| c.is_ascii_alphanumeric() || "_.:@-".contains(c);
    let mut end = 0;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let rest = if end == 0 { Some(rest) } else { rest.strip_prefix('/') };
        let Some(part) = rest.map(|rest| rest.len() - rest.trim_start_matches(of_part).len()) else { break };
        if part == 0 {
            break;
        }
        end += part + usize::from(end > 0);
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choose(model: &str, profile: Option<&str>) -> ModelWish {
        ModelWish::Choose { model: model.to_owned(), profile: profile.map(str::to_owned) }
    }

    /// Vectors of `models.md` §1.3 and `messages.md` §4.
    #[test]
    fn a_wish_is_read_and_the_rest_stays() {
        let aliases = ["opus", "Fast One", "fast"];
        let rows = [
            ("/model Opus@anthropic:work", choose("Opus", Some("anthropic:work")), ""),
            ("/model openai/gpt-5.2@openai:me@x.com", choose("openai/gpt-5.2", Some("openai:me@x.com")), ""),
            ("hey /model: sonnet thanks", choose("sonnet", None), "hey thanks"),
            ("/model gpt-5@work:profile hi", choose("gpt-5", Some("work:profile")), "hi"),
            ("hey /model: opus please", choose("opus", None), "hey please"),
            ("say /opus hello", choose("opus", None), "say hello"),
            ("/OPUS: hello", choose("opus", None), "hello"),
            ("/fast one go", choose("Fast One", None), "go"),
            ("/fast two", choose("fast", None), "two"),
            ("/MODEL:gpt", choose("gpt", None), ""),
            ("/model openrouter/moonshotai/kimi-k2", choose("openrouter/moonshotai/kimi-k2", None), ""),
            ("/model a//b", choose("a", None), "//b"),
            ("/model", ModelWish::Show, ""),
            ("/model:", ModelWish::Show, ""),
            ("please /model", ModelWish::Show, "please"),
            ("/model Status", ModelWish::Status, ""),
            ("/model list", ModelWish::List, ""),
            ("/model @work", ModelWish::ProfileAlone, ""),
            ("/model status@work", ModelWish::ProfileAlone, ""),
            ("/model x@", choose("x", None), ""),
            ("/model a and /model b", choose("a", None), "and"),
            ("/model a /opus", choose("a", None), "/opus"),
            ("ü /model a ü", choose("a", None), "ü ü"),
            ("/model «a»", ModelWish::Show, "«a»"),
            // Only the line of the wish is touched.
            (
                "fix  this /model opus  now:\n  a   b\n\n  c",
                choose("opus", None),
                "fix this now:\n  a   b\n\n  c",
            ),
            ("/model opus\n\ndo  it", choose("opus", None), "do  it"),
            ("/model\nopus", ModelWish::Show, "opus"),
        ];
        for (text, wish, rest) in rows {
            assert_eq!(take(text, &aliases), Some((wish, rest.to_owned())), "{text:?}");
        }
        for text in ["/models", "/modelx", "a/model b", "//model x", "model x", "/opus/x", "/opusx", ""] {
            assert_eq!(take(text, &aliases), None, "{text:?}");
        }
    }

    proptest! {
        /// Nothing but the wish goes, and nothing of it is left.
        #[test]
        fn what_is_left_is_the_text_without_its_wishes(
            words in prop::collection::vec("[a-z/:@ü]{1,5}|/model|/opus|\n| ", 0..9), text in any::<String>(),
        ) {
            for text in [words.join(" "), words.concat(), text] {
                let Some((_, rest)) = take(&text, &["opus"]) else { continue };
                // A second reading finds no `/model`; an alias counts only where there was none.
                if let Some((wish, _)) = take(&rest, &[]) {
                    prop_assert!(false, "{text:?} left {rest:?} with {wish:?}");
                }
                let mut letters = text.chars().filter(|c| !c.is_whitespace());
                for letter in rest.chars().filter(|c| !c.is_whitespace()) {
                    prop_assert!(letters.any(|of_text| of_text == letter), "{text:?} became {rest:?}");
                }
            }
        }

        #[test]
        fn a_written_reference_is_read_back(model in "[a-z0-9._:-]{1,6}(/[a-z0-9._-]{1,6}){0,2}", profile in "[a-z:.]{1,4}(@[a-z.]{1,3})?") {
            prop_assume!(!["status", "list"].contains(&model.as_str()) && !model.starts_with(':'));
            let (found, rest) = take(&format!("hi /model {model}@{profile} there"), &[]).unwrap();
            prop_assert_eq!(found, choose(&model, Some(&profile)));
            prop_assert_eq!(rest, "hi there");
        }
    }
}
