use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::settings::ListedModel;

/// Rows of `provider/model`, maybe with an alias behind a blank, that the owner listed; providers that are not built in are
/// configured ones.
fn listed(rows: &[&str], default: &str) -> Choices {
    let entry = |row: &&str| {
        let (key, alias) = row.split_once(' ').map_or((*row, None), |(key, alias)| (key, Some(alias)));
        ListedModel { key: key.to_owned(), alias: alias.map(str::to_owned), ..ListedModel::default() }
    };
    let mut settings = ModelSettings { listed: rows.iter().map(entry).collect(), ..ModelSettings::default() };
    for row in rows {
        let provider = row.split('/').next().unwrap();
        let server = json!({"baseUrl": "http://x/v1", "apiKey": "k", "api": "openai-completions"});
        settings.providers.push((provider.to_owned(), serde_json::from_value(server).unwrap()));
    }
    Choices::new(&settings, Vec::new(), ModelRef::parse(default, DEFAULT_PROVIDER).unwrap())
}

/// Choices without an allowlist: the whole catalog, in which one provider is configured.
fn whole(default: &str) -> Choices {
    let server = json!({"baseUrl": "http://x/v1", "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "fake-1"}, {"id": "fake-pro"}]});
    let settings = ModelSettings {
        providers: vec![("fake".to_owned(), serde_json::from_value(server).unwrap())],
        ..ModelSettings::default()
    };
    let rows = Catalog::new(&settings).rows(|provider| provider.as_str() == "minimax");
    let rows = rows.iter().map(|row| ModelRef::new(&row.provider, &row.id)).collect();
    Choices::new(&settings, rows, ModelRef::parse(default, DEFAULT_PROVIDER).unwrap())
}

/// Returns the message that people would see.
fn told(choices: &Choices, text: &str) -> String {
    match choices.find(text) {
        Ok(found) if found.is_default => format!("{found} default"),
        Ok(found) => found.to_string(),
        Err(error) => error.to_string(),
    }
}

fn check(choices: &Choices, rows: &[(&str, &str)]) {
    for (text, expect) in rows {
        assert_eq!(told(choices, text), *expect, "{text:?}");
    }
}

const HINT: &str = "Use /models to list providers, or /models <provider> to list models.";

/// Spec `models.md` §1.3: exact and alias first, then fuzzy over what is allowed.
#[test]
fn a_person_gets_the_model_they_name_or_the_nearest_that_is_allowed() {
    let choices = listed(
        &[
            "anthropic/claude-opus-4-6",
            "openai/gpt-4.1-mini",
            "openai/gpt-5.2",
            "moonshot/kimi-k2-0905-preview Kimi",
            "lmstudio/kimi-local",
            "openrouter/moonshotai/kimi-k2",
            "minimax/MiniMax-M2.1",
            "minimax/MiniMax-M2.1-lightning",
            "lmstudio/minimax-m2.1-gs32",
        ],
        "anthropic/claude-opus-4-6",
    );
    check(
        &choices,
        &[
            ("opus", "opus (anthropic/claude-opus-4-6) default"),
            (" OPUS ", "opus (anthropic/claude-opus-4-6) default"),
            ("Default", "anthropic/claude-opus-4-6 default"),
            ("anthropic/opus-4.6", "anthropic/claude-opus-4-6 default"),
            ("openai/gpt-4.1-mini", "openai/gpt-4.1-mini"),
            ("openrouter/moonshotai/kimi-k2", "openrouter/moonshotai/kimi-k2"),
            // A part of an alias, and all of one.
            ("ki", "Kimi (moonshot/kimi-k2-0905-preview)"),
            ("kimi", "Kimi (moonshot/kimi-k2-0905-preview)"),
            ("kimi-k2-0905-preview", "Kimi (moonshot/kimi-k2-0905-preview)"),
            ("moonshot/kimi", "Kimi (moonshot/kimi-k2-0905-preview)"),
            ("lmstudio/kimi", "lmstudio/kimi-local"),
            // The plain model before its variant, the namesake of its provider before another's.
            ("minimax", "minimax/MiniMax-M2.1"),
            ("minimax/m2.1", "minimax/MiniMax-M2.1"),
            ("minimax/lightning", "minimax/MiniMax-M2.1-lightning"),
            ("MiniMax-M2.1-lightning", "minimax/MiniMax-M2.1-lightning"),
            // Mistyped.
            ("claude-opus-4-7", "opus (anthropic/claude-opus-4-6) default"),
            ("openai/gpt-5.3", "gpt (openai/gpt-5.2)"),
            ("openai", "gpt (openai/gpt-5.2)"),
            ("openai/mini", "openai/gpt-4.1-mini"),
        ],
    );
    for (text, expect) in [
        ("bogus", "Model \"bogus\" is not allowed. "),
        ("nobody/nothing", "Model \"nobody/nothing\" is not allowed. "),
        ("zz/", "Unrecognized model \"zz/\". "),
    ] {
        assert_eq!(told(&choices, text), format!("{expect}{HINT}"));
    }
}

#[test]
fn without_a_list_the_catalogue_is_allowed_and_open_providers_have_any_model() {
    let choices = whole("fake/fake-1");
    check(
        &choices,
        &[
            ("fake/fake-pro", "fake/fake-pro"),
            ("fake/pro", "fake/fake-pro"),
            ("fake", "fake/fake-1 default"),
            ("gpt-5.2", "openai/gpt-5.2"),
            ("sonnet", "anthropic/claude-sonnet-4-5"),
            // Editions of built-in models, and whatever a provider with more than is listed may have.
            ("anthropic/claude-opus-4-6-20260201", "anthropic/claude-opus-4-6-20260201"),
            ("openrouter/moonshotai/kimi-k9", "openrouter/moonshotai/kimi-k9"),
            ("minimax/MiniMax-M2.5", "minimax/MiniMax-M2.5"),
            ("minimax/m2.1", "minimax/MiniMax-M2.1"),
            // An id the owner did not list is taken only where nothing is near.
            ("fake/fake-2", "fake/fake-1 default"),
            ("fake/another-one", "fake/another-one"),
            ("offline/guide", "offline/guide"),
        ],
    );
    assert_eq!(told(&choices, "nobody/x"), format!("Model \"nobody/x\" is not allowed. {HINT}"));
}

#[test]
fn a_list_of_which_nothing_exists_restricts_nothing() {
    let gone = ListedModel { key: "gone/1".to_owned(), ..ListedModel::default() };
    let settings = ModelSettings { listed: vec![gone], ..ModelSettings::default() };
    let rows = vec![ModelRef::new("openai", "gpt-5.2")];
    let choices = Choices::new(&settings, rows, ModelRef::default());
    check(&choices, &[("openai/gpt-5.2", "openai/gpt-5.2"), ("gpt-5.2", "openai/gpt-5.2")]);
    assert!(choices.strict("openai/gpt-5.2").is_ok());
}

/// Spec `models.md` §1.2: the texts of `sessions.patch`.
#[test]
fn a_program_gets_what_it_names_and_nothing_else() {
    let choices = listed(&["anthropic/claude-opus-4-6", "openai/gpt-5.2"], "fake/own");
    let rows = [
        ("opus", "anthropic/claude-opus-4-6"),
        ("openai/gpt-5.2", "openai/gpt-5.2"),
        ("fake/own", "fake/own"),
        ("offline/guide", "offline/guide"),
        ("openai/gpt-5", "model not allowed: openai/gpt-5"),
        ("gpt-5.2", "model not allowed: anthropic/gpt-5.2"),
        (" ", "invalid model: empty"),
        (" x/ ", "invalid model: x/"),
    ];
    for (text, expect) in rows {
        let found = choices.strict(text).map_or_else(|error| error.to_string(), |model| model.to_string());
        assert_eq!(found, expect, "{text:?}");
    }
    assert_eq!(whole("fake/fake-1").strict("nobody/x").map(|m| m.to_string()), Ok("nobody/x".to_owned()));
    let callable = |text| whole("fake/fake-1").callable(text).map(|model| model.to_string());
    let nobody = callable("nobody/x").unwrap_err().to_string();
    assert!(nobody.starts_with("Unknown model: nobody/x (provider nobody is not known"), "{nobody}");
}

/// The parts of the score and its ties, spec `models.md` §1.3.
#[test]
fn points_are_given_as_the_spec_lists() {
    let choices = listed(&["zai/zai-mini-fast Flash", "b/other", "b/tiny"], "b/other");
    let rows = [
        // The key, the provider and a prefix of the id; named after its provider; two variants nobody asked for.
        ("zai", "zai/zai-mini-fast", 140 + 180 + 110 + 30 - 60),
        ("zai/zai-mini-fast", "zai/zai-mini-fast", 220 + 30 + 80),
        ("zai-mini-fast", "zai/zai-mini-fast", 110 + 160 + 210 + 30 + 80),
        ("mini", "zai/zai-mini-fast", 110 + 80 + 30 + 40),
        ("turbo", "zai/zai-mini-fast", 30 - 20),
        ("za", "zai/zai-mini-fast", 140 + 120 + 110 + 30 - 60),
        ("ai", "zai/zai-mini-fast", 110 + 90 + 80 + 30 - 60),
        ("flash", "zai/zai-mini-fast", 140 + 30 - 60),
        ("fla", "zai/zai-mini-fast", 90 + 30 - 60),
        ("las", "zai/zai-mini-fast", 60 + 30 - 60),
        // One, two and three mistakes.
        ("othr", "b/other", 140 + 20),
        ("othrx", "b/other", 70 + 20),
        ("oxxxr", "b/other", 20),
        ("ot", "b/other", 110 + 110 + 20),
        ("b/", "b/other", 140 + 20),
    ];
    for (text, model, expect) in rows {
        let model = ModelRef::parse(model, "x").unwrap();
        assert_eq!(choices.score(&model, text).points, expect, "{text} {model}");
    }
    let ties = [
        // The default first, then more of the variants asked for, fewer variants, the shorter id, the key.
        (listed(&["p/a-one", "p/b-one"], "p/b-one"), "one", "p/b-one"),
        (listed(&["p/kmin xkminix", "p/xmini"], "q/z"), "kmini", "p/xmini"),
        (listed(&["p/a-mini-fast", "p/z-mini-longer"], "q/z"), "mini", "p/z-mini-longer"),
        (listed(&["p/xx-long-one", "p/xx-one"], "q/z"), "one", "p/xx-one"),
        (listed(&["p/b-one", "p/a-one"], "q/z"), "one", "p/a-one"),
        (listed(&["q/a-one", "p/a-one"], "r/z"), "one", "p/a-one"),
    ];
    for (choices, text, expect) in ties {
        assert_eq!(told(&choices, text).trim_end_matches(" default"), expect);
    }
    // 120 points are enough, and 90 where the provider was named; all are multiples of ten.
    let bounds = [
        ("x/x-model Nick", "q/z", None, "nic", 90 + 30, true),
        ("openrouter/x-kimi-k2", "q/z", None, "outer/x", 110, false),
        ("openrouter/x-kimi-k2", "q/z", Some("openrouter"), "outer/x", 110, true),
        ("x/model Nick", "q/z", Some("x"), "nic", 90, true),
        ("x/model Nick", "x/model", Some("x"), "ick", 60 + 20, false),
    ];
    for (row, default, provider, text, points, enough) in bounds {
        let choices = listed(&[row], default);
        assert_eq!(choices.score(&choices.known()[0], text).points, points, "{row} {text}");
        assert_eq!(choices.fuzzy(provider, text).is_some(), enough, "{row} {text}");
    }
}

/// Spec `sessions.md` §5.4.
#[test]
fn the_first_words_may_name_a_model_and_the_others_stay_the_message() {
    let choices = listed(
        &[
            "anthropic/claude-opus-4-6 opus",
            "anthropic/claude-haiku-4-5",
            "openai/gpt-5.2",
            "openai/gpt-5-mini",
            "minimax/MiniMax-M2.1",
            "minimax/MiniMax-M2.1-lightning",
            "local/llama-3 Tiny",
        ],
        "openai/gpt-5.2",
    );
    let rows = [
        ("minimax m2.1 hello", "minimax/MiniMax-M2.1", "hello"),
        ("minimax lightning", "minimax/MiniMax-M2.1-lightning", ""),
        ("take notes", "-", "take notes"),
        ("opus  write  a poem", "anthropic/claude-opus-4-6", "write  a poem"),
        ("OPUS", "anthropic/claude-opus-4-6", ""),
        ("tiny hi", "local/llama-3", "hi"),
        ("anthropic/claude-haiku-4-5 hi", "anthropic/claude-haiku-4-5", "hi"),
        ("anthropic/haiku hi", "anthropic/claude-haiku-4-5", "hi"),
        ("openai/gpt-5.2 hi", "openai/gpt-5.2 default", "hi"),
        ("claude-opus hi", "anthropic/claude-opus-4-6", "hi"),
        ("minimax-m2.2 hi", "minimax/MiniMax-M2.1", "hi"),
        ("anthropic an essay please", "anthropic/claude-opus-4-6", "an essay please"),
        ("openai is a company", "openai/gpt-5.2 default", "is a company"),
        ("remember the milk", "-", "remember the milk"),
        ("haiku about rain", "-", "haiku about rain"),
        ("other/model hi", "-", "other/model hi"),
        ("/status", "-", "/status"),
        ("/model opus", "-", "/model opus"),
        ("", "-", ""),
    ];
    for (text, expected, rest) in rows {
        let Opening { model, rest: left } = choices.opening(text);
        let found = model.map_or("-".to_owned(), |chosen| {
            format!("{}{}", chosen.model, if chosen.is_default { " default" } else { "" })
        });
        assert_eq!((found.as_str(), left.as_str()), (expected, rest), "{text}");
    }
}

fn some_choices() -> impl Strategy<Value = Choices> {
    let id = "[a-d]{1,2}(-(mini|fast|m2\\.1|opus))?";
    let row =
        (prop::sample::select(vec!["anthropic", "openai", "pa", "pb"]), id, prop::option::of("[a-c]{1,3}"));
    (prop::collection::vec(row, 1..6), prop::sample::select(vec!["pa/a", "openai/b-mini", "px/own"]))
        .prop_map(|(rows, default)| {
            let rows: Vec<String> = rows
                .into_iter()
                .map(|(provider, id, alias)| format!("{provider}/{id} {}", alias.unwrap_or_default()))
                .collect();
            listed(&rows.iter().map(String::as_str).collect::<Vec<_>>(), default)
        })
}

proptest! {
    /// Whatever is asked for, nothing is found that may not be used, and what is found is found again by its key.
    #[test]
    fn only_what_is_allowed_is_found_and_found_again(
        choices in some_choices(), text in "([a-d]{0,3}|pa|openai|anthropic)(/[a-d]{0,3})?(-mini|-m2)?",
    ) {
        if let Ok(found) = choices.find(&text) {
            prop_assert!(choices.known().contains(&found.model), "{found}");
            let again = choices.find(&found.model.to_string()).unwrap();
            prop_assert_eq!(&again.model, &found.model);
            prop_assert_eq!(again.is_default, found.is_default);
            prop_assert!(choices.strict(&found.model.to_string()).is_ok());
        }
        let opening = choices.opening(&text);
        match opening.model {
            Some(found) => prop_assert!(choices.known().contains(&found.model)),
            None => prop_assert_eq!(opening.rest, text),
        }
    }

    /// A reference or an alias written out is what is found, however near others are.
    #[test]
    fn the_exact_name_always_wins(choices in some_choices()) {
        for model in choices.known() {
            prop_assert_eq!(&choices.find(&model.to_string()).unwrap().model, model);
            for alias in choices.aliases_of(model) {
                let first = choices.names.by_alias(alias).unwrap().1;
                prop_assert_eq!(&choices.find(alias).unwrap().model, first);
            }
        }
    }
}
