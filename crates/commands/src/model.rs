//! `/model`, and `/<alias>` for each alias the owner gave (spec `models.md` §1.3).

use openclaw_config::ResolvedAgent;
use openclaw_journal::intent::{Hints, ModelHint};
use openclaw_models::{Choices, Chosen, ModelRef, Models, ProviderId};
use openclaw_runtime::session_model::{AskedModel, is_forbidden};
use openclaw_sessions::reset::trigger::strip_prefix_without_case;

use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::directive::{Directive, DirectiveReading, DirectiveResult, Settling, Wished};
use super::line::{Hit, cut, ends_name, skip_colon, slashes};
use super::response::{CommandResponse, Showing};
use super::{CommandContext, CommandError, cards, models};

pub(crate) const NAME: &str = "model";
const DIRECTIVE: Directive = Directive { take: take_directive, hint, settle, needs_mention: |_| false };
pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new(NAME, Category::Options, Does::Directive(DIRECTIVE), "Show or choose the model.")
        .taking(Takes::Level, "[<provider/model>|<alias>|list|status]")
        .offering(ArgumentMenu::Own(show));

/// Request of `/model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelWish {
    /// No argument: show the model in use.
    Show,
    /// `status`: everything about it.
    Status,
    /// `list`: the models to choose from.
    List,
    /// Switch to this model.
    Choose(ModelHint),
    /// A credential without a model.
    ProfileAlone,
}

impl ModelWish {
    /// Reads `name@profile`. A profile id may have more of the signs, as in an e-mail address.
    pub(crate) fn of(token: &str) -> Self {
        let (model, profile) = token.split_once('@').unwrap_or((token, ""));
        let profile = Some(profile).filter(|profile| !profile.is_empty()).map(str::to_owned);
        let word = model.to_lowercase();
        match (word.as_str(), profile) {
            ("" | "status" | "list", Some(_)) => Self::ProfileAlone,
            ("", None) => Self::Show,
            ("status", None) => Self::Status,
            ("list", None) => Self::List,
            (_, profile) => Self::Choose(ModelHint { model: model.to_owned(), profile }),
        }
    }

    /// Returns the arguments that [`ModelWish::of`] reads it from.
    fn arguments(&self) -> String {
        match self {
            Self::Show => String::new(),
            Self::Status => "status".to_owned(),
            Self::List => "list".to_owned(),
            Self::Choose(ModelHint { model, profile: None }) => model.clone(),
            Self::Choose(ModelHint { model, profile: Some(profile) }) => format!("{model}@{profile}"),
            Self::ProfileAlone => "@profile".to_owned(),
        }
    }
}

/// The model in use, with the way to the others as a button.
fn show<'a>(context: &'a CommandContext<'a>) -> Showing<'a> {
    Box::pin(async move {
        let current = context.current(&context.choices().await).await.0;
        Ok(CommandResponse {
            text: cards::current_above_buttons(&current),
            buttons: models::browse(),
            then: None,
        })
    })
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(wished.context.settle_model(ModelWish::of(wished.argument)))
}

fn hint(argument: &str, hints: &mut Hints) {
    if let ModelWish::Choose(choice) = ModelWish::of(argument) {
        hints.model = Some(choice);
    }
}

fn take_directive(text: &str, reading: DirectiveReading, aliases: &[&str]) -> Option<(String, String)> {
    let (wish, rest) = take(text, reading, aliases)?;
    Some((wish.arguments(), rest))
}

/// Returns the model that a person means, if they may have it with that credential; the error is
/// the answer.
pub async fn choose(
    models: &Models,
    choices: &Choices,
    agent: &ResolvedAgent,
    asked: &ModelHint,
) -> Result<Chosen, String> {
    if let Some(refusal) = cards::refusal(&asked.model) {
        return Err(refusal.to_owned());
    }
    let chosen = choices.find(&asked.model).map_err(|error| error.to_string())?;
    if let Some(profile) = &asked.profile {
        let checked = models.check_profile(&agent.agent_dir, &chosen.model.provider, profile).await;
        checked.map_err(|error| error.to_string())?;
    }
    Ok(chosen)
}

impl CommandContext<'_> {
    async fn settle_model(&self, wish: ModelWish) -> Result<DirectiveResult, CommandError> {
        let choices = self.choices().await;
        Ok(match wish {
            ModelWish::Choose(asked) => {
                match choose(&self.services.models.all, &choices, self.agent, &asked).await {
                    Ok(chosen) => self.switch(&choices, chosen, asked.profile).await,
                    Err(refusal) => DirectiveResult::refused(refusal),
                }
            }
            ModelWish::List => DirectiveResult::told(models::list(&choices)),
            ModelWish::Show => DirectiveResult::told(cards::current(&self.current(&choices).await.0)),
            ModelWish::Status => DirectiveResult::told(self.model_status(&choices).await?),
            ModelWish::ProfileAlone => DirectiveResult::refused(cards::PROFILE_ALONE.to_owned()),
        })
    }

    async fn switch(&self, choices: &Choices, chosen: Chosen, profile: Option<String>) -> DirectiveResult {
        let (before, _) = self.current(choices).await;
        self.services.models.chosen_by_hand(self.key);
        let warning = choices.warning(&chosen.model);
        let text = cards::switched(&chosen, profile.as_deref(), warning.as_deref());
        let tells = (before != chosen.model)
            .then(|| (format!("Model switched to {chosen}."), format!("model:{}", chosen.model)));
        // The agent's own model is chosen by choosing nothing, unless that goes on with a room's.
        let by_itself = chosen.is_default && self.services.models.inherited_model(self.key).await.is_none();
        let model = (!by_itself).then_some(chosen.model);
        let settled = DirectiveResult::changed(text, move |entry| {
            let model = model.as_ref().map(|model| (model.provider.as_str(), model.model.as_str()));
            entry.switch_model(model, profile.as_deref());
        });
        settled.telling(tells)
    }

    /// Returns the model in use. The flag tells if the session's own choice was dropped on the way.
    pub async fn current(&self, choices: &Choices) -> (ModelRef, bool) {
        let default = choices.default_model().clone();
        let asked: AskedModel = self.services.models.asked_for(self.key, self.entry, None).await;
        if is_forbidden(choices, &asked) {
            self.services.models.drop_override(self.key, &asked, &default).await;
            return (default, true);
        }
        let model = asked.model.as_deref().and_then(|text| choices.strict(text).ok());
        (model.unwrap_or(default), false)
    }

    async fn model_status(&self, choices: &Choices) -> Result<String, CommandError> {
        let (current, was_reset) = self.current(choices).await;
        let mut providers: Vec<ProviderId> = Vec::new();
        for model in choices.known() {
            if !providers.contains(&model.provider) {
                providers.push(model.provider.clone());
            }
        }
        let agent = self.agent;
        let cards = self
            .services
            .models
            .all
            .provider_cards(&self.settings.models, &agent.id, &agent.agent_dir, providers)
            .await?;
        let auth_file = agent.agent_dir.join(openclaw_models::credentials::FILE);
        Ok(cards::status(&cards::ModelStatus {
            current: &current,
            choices,
            agent: agent.id.as_str(),
            auth_file: &self.settings.config.environment().with_tilde(&auth_file),
            was_reset,
            providers: &cards,
        }))
    }
}

/// Takes the wish out of a text; returns it, and the rest of the text. Of several the first counts;
/// all are taken out.
fn take(text: &str, reading: DirectiveReading, aliases: &[&str]) -> Option<(ModelWish, String)> {
    let find_model = |line: &str| find_model(line, reading);
    if let Some((token, rest)) = cut(text, find_model) {
        return Some((ModelWish::of(&token), rest));
    }
    let (alias, rest) = cut(text, |line| find_alias(line, aliases))?;
    // `/opus:/model` leaves one that was none before.
    let rest = cut(&rest, find_model).map_or(rest, |(_, rest)| rest);
    Some((ModelWish::Choose(ModelHint { model: alias, profile: None }), rest))
}

fn find_model(line: &str, reading: DirectiveReading) -> Option<Hit<String>> {
    slashes(line).find_map(|(from, behind)| {
        let behind = strip_prefix_without_case(behind, "model").filter(|behind| ends_name(behind))?;
        let behind = skip_colon(behind);
        let token = token(behind);
        if reading == DirectiveReading::Among && !matches!(ModelWish::of(token), ModelWish::Choose(_)) {
            return None;
        }
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
        ModelWish::Choose(ModelHint { model: model.to_owned(), profile: profile.map(str::to_owned) })
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
            assert_eq!(
                take(text, DirectiveReading::Alone, &aliases),
                Some((wish, rest.to_owned())),
                "{text:?}"
            );
        }
        for text in ["/models", "/modelx", "a/model b", "//model x", "model x", "/opus/x", "/opusx", ""] {
            assert_eq!(take(text, DirectiveReading::Alone, &aliases), None, "{text:?}");
        }
    }

    proptest! {
        /// Checks that reading removes the whole wish and nothing else.
        #[test]
        fn what_is_left_is_the_text_without_its_wishes(
            words in prop::collection::vec("[a-z/:@ü]{1,5}|/model|/opus|\n| ", 0..9), text in any::<String>(),
        ) {
            for text in [words.join(" "), words.concat(), text] {
                let Some((_, rest)) = take(&text, DirectiveReading::Alone, &["opus"]) else { continue };
                // A second reading finds no `/model`; an alias counts only where there was none.
                if let Some((wish, _)) = take(&rest, DirectiveReading::Alone, &[]) {
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
            let (found, rest) = take(&format!("hi /model {model}@{profile} there"), DirectiveReading::Alone, &[]).unwrap();
            prop_assert_eq!(found, choose(&model, Some(&profile)));
            prop_assert_eq!(rest, "hi there");
        }
    }
}
