//! `/models [provider] [page] [limit=…] [all]`: the models to choose from (spec `messages.md` §5).

use std::collections::{BTreeMap, BTreeSet};

use openclaw_channels::Button;
use openclaw_models::{Choices, ModelRef, ProviderId};

use super::CommandContext;
use super::command::{Category, ChatCommand, Does, Takes};
use super::response::{CommandResponse, Showing, button};

pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new("models", Category::Options, Does::Shows(run), "List providers and their models.")
        .taking(Takes::Words, "[provider] [page] [limit=N] [all]");

/// Models on a page, and the most one may ask for.
const PAGE: usize = 20;
const LARGEST_PAGE: usize = 100;
/// Models on a page with buttons, and the longest text that a button may carry.
const BUTTONS: usize = 8;
const LONGEST_DATA: usize = 64;
/// Prefixes of the data that buttons carry.
const PROVIDERS: &str = "mdl_prov";
const BACK: &str = "mdl_back";
const LIST: &str = "mdl_list_";
const CHOOSE: &str = "mdl_sel_";

/// Part of the list that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PageAsked {
    /// The models of this provider; absent: the providers.
    provider: Option<ProviderId>,
    /// Number of the page, from 1.
    page: usize,
    size: usize,
    /// True for all models on one page.
    all: bool,
}

impl Default for PageAsked {
    fn default() -> Self {
        Self { provider: None, page: 1, size: PAGE, all: false }
    }
}

fn run<'a>(context: &'a CommandContext<'a>, text: &'a str) -> Showing<'a> {
    Box::pin(async move {
        let (asked, choices) = (arguments(text), context.choices().await);
        let is_plain = asked.size == PAGE && !asked.all;
        if is_plain && context.shows_buttons() {
            let place = asked.provider.as_ref().map(|provider| (provider.as_str(), asked.page));
            let current = context.current(&choices).await.0;
            if let Some(shown) = shown(place, choices.known(), &current) {
                return Ok(shown);
            }
        }
        Ok(answer(&asked, choices.known()).into())
    })
}

/// A button that opens the list of providers.
pub(crate) fn browse() -> Vec<Vec<Button>> {
    vec![vec![button("Browse providers", PROVIDERS)]]
}

/// Request of a button of the lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelButton {
    Providers,
    /// A page of the models of a provider.
    Page(String, usize),
    /// `provider/model`.
    Choose(String),
}

/// Reads the data of a button, in the words that OpenClaw 2026.2.9 puts on its own.
pub(crate) fn read_press(data: &str) -> Option<ModelButton> {
    if data == PROVIDERS || data == BACK {
        return Some(ModelButton::Providers);
    }
    if let Some(model) = data.strip_prefix(CHOOSE) {
        return model.contains('/').then(|| ModelButton::Choose(model.to_owned()));
    }
    let (provider, page) = data.strip_prefix(LIST)?.rsplit_once('_')?;
    Some(ModelButton::Page(provider.to_owned(), page.parse().ok()?))
}

/// Returns the list that a pressed button asks for; the providers if that list does not exist any
/// more.
pub(crate) async fn pressed(context: &CommandContext<'_>, place: Option<(String, usize)>) -> CommandResponse {
    let choices = context.choices().await;
    let current = context.current(&choices).await.0;
    let place = place.as_ref().map(|(provider, page)| (provider.as_str(), *page));
    let of_place = shown(place, choices.known(), &current);
    of_place.or_else(|| shown(None, choices.known(), &current)).unwrap_or_default()
}

/// A list with buttons; nothing for a provider that is not there.
fn shown(place: Option<(&str, usize)>, known: &[ModelRef], current: &ModelRef) -> Option<CommandResponse> {
    let mut providers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for model in known {
        providers.entry(model.provider.as_str()).or_default().insert(&model.model);
    }
    let Some((provider, page)) = place else {
        let (with, without): (Vec<_>, Vec<_>) =
            providers.iter().partition(|(provider, _)| page_data(provider, 1).is_some());
        let row = |(provider, models): &(&&str, &BTreeSet<&str>)| {
            page_data(provider, 1).map(|data| button(format!("{provider} ({})", models.len()), data))
        };
        let rows: Vec<_> = with.iter().filter_map(row).collect();
        let buttons = rows.chunks(2).map(<[_]>::to_vec).collect();
        let typed = typed(without.iter().map(|(provider, _)| format!("/models {provider}")));
        return Some(CommandResponse { text: format!("Select a provider:{typed}"), buttons, then: None });
    };
    let models: Vec<&str> = providers.get(provider)?.iter().copied().collect();
    let pages = models.len().div_ceil(BUTTONS).max(1);
    // A list whose pages can't be turned is written.
    page_data(provider, pages)?;
    let page = page.clamp(1, pages);
    let models_shown = models.get((page - 1) * BUTTONS..models.len().min(page * BUTTONS)).unwrap_or_default();
    let mut buttons: Vec<_> =
        models_shown.iter().filter_map(|model| choice(provider, model, current)).collect();
    let turn = |sign: &str, to: usize| page_data(provider, to).map(|data| button(sign, data));
    if pages > 1 {
        let row = [
            (page > 1).then(|| turn("◀ Prev", page - 1)).flatten(),
            turn(&format!("{page}/{pages}"), page),
            (page < pages).then(|| turn("Next ▶", page + 1)).flatten(),
        ];
        buttons.push(row.into_iter().flatten().collect());
    }
    buttons.push(vec![button("<< Back", BACK)]);
    let without = models_shown.iter().filter(|model| choice_data(provider, model).is_none());
    let typed = typed(without.map(|model| format!("/model {provider}/{model}")));
    let text =
        format!("Models ({provider}) — {} available{typed}\n\nSwitch: /model <provider/model>", models.len());
    Some(CommandResponse { text, buttons, then: None })
}

/// Row with a model's button; `None` if its name is too long for a button.
fn choice(provider: &str, model: &str, current: &ModelRef) -> Option<Vec<Button>> {
    let data = choice_data(provider, model)?;
    let is_current = current.provider.as_str() == provider && current.model == model;
    let sign = if is_current { " ✓" } else { "" };
    Some(vec![button(format!("{model}{sign}"), data)])
}

fn choice_data(provider: &str, model: &str) -> Option<String> {
    Some(format!("{CHOOSE}{provider}/{model}")).filter(|data| data.len() <= LONGEST_DATA)
}

fn page_data(provider: &str, page: usize) -> Option<String> {
    Some(format!("{LIST}{provider}_{page}")).filter(|data| data.len() <= LONGEST_DATA)
}

/// Lists the commands of choices that have no button, to be typed. As code, so that nothing in a
/// name is formatting.
fn typed(commands: impl Iterator<Item = String>) -> String {
    let lines: String = commands.map(|command| format!("\n`{command}`")).collect();
    if lines.is_empty() { lines } else { format!("\n\nToo long for a button, so type:{lines}") }
}

/// Writes the first page of the list.
pub(crate) fn list(choices: &Choices) -> String {
    answer(&PageAsked::default(), choices.known())
}

fn arguments(text: &str) -> PageAsked {
    let mut asked = PageAsked::default();
    let mut words = text.split_whitespace();
    asked.provider = words.next().map(ProviderId::normalize);
    for word in words.map(str::to_lowercase) {
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
        match word.split_once('=') {
            Some(("page", page)) => asked.page = number(page).unwrap_or(asked.page),
            Some(("limit" | "size", size)) => {
                asked.size = number(size).map_or(asked.size, |size| size.min(LARGEST_PAGE));
            }
            None if matches!(word.as_str(), "all" | "--all") => asked.all = true,
            None => asked.page = number(&word).unwrap_or(asked.page),
            Some(_) => {}
        }
    }
    asked
}

/// The answer, `known` being the models to choose from.
fn answer(asked: &PageAsked, known: &[ModelRef]) -> String {
    let mut providers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for model in known {
        providers.entry(model.provider.as_str()).or_default().insert(&model.model);
    }
    let Some(provider) = &asked.provider else {
        let rows = providers.iter().map(|(provider, models)| format!("- {provider} ({})", models.len()));
        let end = ["", "Use: /models <provider>", "Switch: /model <provider/model>"].map(str::to_owned);
        return lines(["Providers:".to_owned()], rows, end);
    };
    match providers.get(provider.as_str()) {
        Some(models) => page(asked, provider, &models.iter().copied().collect::<Vec<_>>()),
        None => lines(
            [format!("Unknown provider: {provider}"), String::new(), "Available providers:".to_owned()],
            providers.keys().map(|provider| format!("- {provider}")),
            ["", "Use: /models <provider>"].map(str::to_owned),
        ),
    }
}

fn page(asked: &PageAsked, provider: &ProviderId, models: &[&str]) -> String {
    let total = models.len();
    let size = if asked.all { total } else { asked.size }.max(1);
    let pages = total.div_ceil(size).max(1);
    let page = if asked.all { 1 } else { asked.page };
    if page > pages {
        return lines(
            [format!("Page out of range: {page} (valid: 1-{pages})"), String::new()],
            [format!("Try: /models {provider} {pages}")],
            [format!("All: /models {provider} all")],
        );
    }
    let from = (page - 1) * size;
    let shown = models.get(from..total.min(from + size)).unwrap_or_default();
    let head = format!(
        "Models ({provider}) — showing {}-{} of {total} (page {page}/{pages})",
        from + 1,
        from + shown.len(),
    );
    let more = (page < pages).then(|| format!("More: /models {provider} {}", page + 1));
    let all = (!asked.all).then(|| format!("All: /models {provider} all"));
    let end = [String::new(), "Switch: /model <provider/model>".to_owned()];
    lines(
        [head],
        shown.iter().map(|model| format!("- {provider}/{model}")),
        end.into_iter().chain(more).chain(all),
    )
}

fn lines(
    head: impl IntoIterator<Item = String>,
    rows: impl IntoIterator<Item = String>,
    end: impl IntoIterator<Item = String>,
) -> String {
    head.into_iter().chain(rows).chain(end).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_read_with_what_follows_it() {
        let asked = |provider: Option<&str>, page, size, all| PageAsked {
            provider: provider.map(ProviderId::normalize),
            page,
            size,
            all,
        };
        let rows = [
            ("", asked(None, 1, 20, false)),
            ("OpenAI", asked(Some("openai"), 1, 20, false)),
            ("z.ai 2", asked(Some("zai"), 2, 20, false)),
            ("x page=3 limit=5", asked(Some("x"), 3, 5, false)),
            ("x size=500 page=0", asked(Some("x"), 1, 100, false)),
            ("x --all what", asked(Some("x"), 1, 20, true)),
        ];
        for (text, expect) in rows {
            assert_eq!(arguments(text), expect, "{text:?}");
        }
    }

    #[test]
    fn platforms_with_buttons_show_providers_then_models() {
        let known: Vec<ModelRef> = (1..=9)
            .map(|n| ModelRef::new("many", &format!("m{n}")))
            .chain([ModelRef::new("one", "a")])
            .collect();
        let said = |place| {
            let shown = shown(place, &known, &ModelRef::new("many", "m2")).unwrap();
            let words = |row: &Vec<openclaw_channels::Button>| {
                row.iter().map(|one| format!("{}={}", one.text, one.data)).collect::<Vec<_>>().join(" | ")
            };
            (shown.text, shown.buttons.iter().map(words).collect::<Vec<_>>())
        };
        let (text, buttons) = said(None);
        assert_eq!(
            (text.as_str(), buttons.join("; ")),
            ("Select a provider:", "many (9)=mdl_list_many_1 | one (1)=mdl_list_one_1".to_owned())
        );
        let (text, buttons) = said(Some(("many", 1)));
        assert_eq!(text, "Models (many) — 9 available\n\nSwitch: /model <provider/model>");
        assert_eq!(buttons.len(), 10);
        assert_eq!(buttons[1], "m2 ✓=mdl_sel_many/m2");
        assert_eq!(buttons[8], "1/2=mdl_list_many_1 | Next ▶=mdl_list_many_2");
        assert_eq!(buttons[9], "<< Back=mdl_back");
        assert_eq!(said(Some(("many", 9))).1[0], "m9=mdl_sel_many/m9", "past the end is the last");
        assert!(shown(Some(("none", 1)), &known, &ModelRef::new("x", "y")).is_none());
    }

    #[test]
    fn what_is_too_long_for_a_button_is_named_to_be_typed() {
        let (long, provider) = ("z".repeat(80), "p".repeat(70));
        let known = [
            ModelRef::new("one", "a"),
            ModelRef::new("one", &long),
            ModelRef::new("one", &"ü".repeat(30)),
            ModelRef::new(&provider, "a"),
        ];
        let shown = |place| shown(place, &known, &ModelRef::new("one", "a"));
        let providers = shown(None).unwrap();
        assert_eq!(
            providers.text,
            format!("Select a provider:\n\nToo long for a button, so type:\n`/models {provider}`")
        );
        assert_eq!(providers.buttons.concat().len(), 1);
        let models = shown(Some(("one", 1))).unwrap();
        let ue = "ü".repeat(30);
        assert_eq!(
            models.text,
            format!(
                "Models (one) — 3 available\n\nToo long for a button, so type:\n`/model one/{long}`\n`/model one/{ue}`\n\nSwitch: /model <provider/model>"
            )
        );
        assert_eq!(models.buttons.len(), 2, "one model, and the way back");
        assert!(shown(Some((&provider, 1))).is_none(), "it is written");
    }

    #[test]
    fn the_list_comes_in_pages() {
        let known: Vec<ModelRef> = (1..=72)
            .map(|n| ModelRef::new("many", &format!("m{n:02}")))
            .chain([ModelRef::new("one", "b"), ModelRef::new("one", "a"), ModelRef::new("one", "a")])
            .collect();
        let answer = |text: &str| answer(&arguments(text), &known);
        assert_eq!(
            answer(""),
            "Providers:\n- many (72)\n- one (2)\n\nUse: /models <provider>\nSwitch: /model <provider/model>"
        );
        assert_eq!(
            answer("one"),
            "Models (one) — showing 1-2 of 2 (page 1/1)\n- one/a\n- one/b\n\nSwitch: /model <provider/model>\nAll: /models one all"
        );
        assert!(answer("many").starts_with("Models (many) — showing 1-20 of 72 (page 1/4)\n- many/m01\n"));
        assert!(answer("many").ends_with("\nMore: /models many 2\nAll: /models many all"));
        assert!(answer("many 4").starts_with("Models (many) — showing 61-72 of 72 (page 4/4)\n"));
        assert!(!answer("many 4").contains("More:"));
        let all = answer("many all 9");
        assert!(all.starts_with("Models (many) — showing 1-72 of 72 (page 1/1)\n"));
        assert!(all.ends_with("\n- many/m72\n\nSwitch: /model <provider/model>"));
        assert_eq!(
            answer("many 9"),
            "Page out of range: 9 (valid: 1-4)\n\nTry: /models many 4\nAll: /models many all"
        );
        assert_eq!(
            answer("nobody"),
            "Unknown provider: nobody\n\nAvailable providers:\n- many\n- one\n\nUse: /models <provider>"
        );
    }
}
