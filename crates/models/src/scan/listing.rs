//! The list of models as OpenRouter writes it. Pure.

use serde_json::Value;

use super::{Found, PROVIDER, Pricing, Tried, Wanted};

/// Seconds up to here, milliseconds from here on.
const MILLISECONDS_FROM: f64 = 1e12;
const MS_PER_DAY: f64 = 86_400_000.0;

/// Reads the list; entries that are none are left out. `None` if it is not a list.
pub(super) fn read(body: &[u8]) -> Option<Vec<Found>> {
    let document: Value = serde_json::from_slice(body).ok()?;
    Some(document.get("data")?.as_array()?.iter().filter_map(model).collect())
}

/// Returns true if a model is free and matches the filter. `now` is Unix milliseconds.
pub(super) fn is_wanted(model: &Found, wanted: &Wanted, now: i64) -> bool {
    let maker = model.id.split('/').next().unwrap_or_default();
    let is_of_maker = wanted.maker.as_deref().is_none_or(|wanted| maker.eq_ignore_ascii_case(wanted.trim()));
    let is_big = model.parameters.unwrap_or(0.0) >= wanted.least_parameters;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are far below 2^53")]
    let days = model.created_at_ms.map_or(0.0, |created| now.saturating_sub(created) as f64 / MS_PER_DAY);
    model.is_free && is_of_maker && is_big && wanted.most_days.is_none_or(|most| days <= most)
}

fn model(entry: &Value) -> Option<Found> {
    let text =
        |at: &str| entry.pointer(at).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
    let id = text("/id")?.to_owned();
    let name = text("/name").unwrap_or(&id).to_owned();
    let count = |places: &[&str]| places.iter().find_map(|at| entry.pointer(at)?.as_u64());
    let supported: Vec<&str> = entry
        .get("supported_parameters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let pricing = entry.get("pricing").and_then(pricing);
    let is_free = id.ends_with(":free") || pricing.is_some_and(|it| it.prompt == 0.0 && it.completion == 0.0);
    Some(Found {
        provider: PROVIDER,
        model_ref: format!("{PROVIDER}/{id}"),
        context_length: count(&["/context_length"]),
        max_completion_tokens: count(&[
            "/max_completion_tokens",
            "/max_output_tokens",
            "/top_provider/max_completion_tokens",
        ]),
        supported_parameters_count: supported.len(),
        supports_tools_meta: supported.contains(&"tools"),
        modality: text("/modality").or_else(|| text("/architecture/modality")).map(str::to_owned),
        parameters: parameters(&format!("{id} {name}")),
        created_at_ms: ["created_at", "created"].iter().find_map(|key| created(entry.get(key)?)),
        pricing,
        is_free,
        tool: Tried::SKIPPED,
        image: Tried::SKIPPED,
        id,
        name,
    })
}

/// Returns `None` unless both prices of tokens are present.
fn pricing(prices: &Value) -> Option<Pricing> {
    let of = |name: &str| {
        let price = prices.get(name)?;
        price.as_f64().or_else(|| price.as_str()?.trim().parse().ok()).filter(|price| price.is_finite())
    };
    Some(Pricing {
        prompt: of("prompt")?,
        completion: of("completion")?,
        request: of("request").unwrap_or(0.0),
        image: of("image").unwrap_or(0.0),
        web_search: of("web_search").unwrap_or(0.0),
        internal_reasoning: of("internal_reasoning").unwrap_or(0.0),
    })
}

fn created(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|number| *number > 0.0)?;
    let milliseconds = if number > MILLISECONDS_FROM { number } else { number * 1000.0 };
    #[expect(clippy::cast_possible_truncation, reason = "as saturates")]
    Some(milliseconds.round() as i64)
}

/// The largest number of billions in a text: `70b`, `1.5B`, `e4b` as words of their own.
pub fn parameters(text: &str) -> Option<f64> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let billions = words.filter_map(|word| {
        let number = word.strip_suffix('b')?;
        // A letter may stand before the number, as in `e4b` and `a3b`.
        let number = number.strip_prefix(|c: char| c.is_ascii_lowercase()).unwrap_or(number);
        let is_number = number.starts_with(|c: char| c.is_ascii_digit());
        number.parse::<f64>().ok().filter(|number| is_number && *number > 0.0)
    });
    billions.max_by(f64::total_cmp)
}

/// Returns true if a model takes images: by the part of its modality before the arrow.
pub(super) fn sees(modality: Option<&str>) -> bool {
    let input = modality.and_then(|modality| modality.split("->").next()).unwrap_or_default();
    input.split(|c: char| !c.is_ascii_alphabetic()).any(|kind| kind.eq_ignore_ascii_case("image"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn billions_are_found_in_names() {
        let rows = [
            ("meta-llama/llama-3.3-70b-instruct:free", Some(70.0)),
            ("google/gemma-3n-e4b-it:free Gemma 3n 4B", Some(4.0)),
            ("qwen/qwen3-235b-a22b:free", Some(235.0)),
            ("qwen/qwen-1.5b", Some(1.5)),
            ("openai/gpt-5.2", None),
            ("x/web-b 0b nanb", None),
        ];
        for (text, expect) in rows {
            assert_eq!(parameters(text), expect, "{text}");
        }
    }

    #[test]
    fn only_input_counts_for_seeing() {
        let rows = [
            (Some("text+image->text"), true),
            (Some("Image"), true),
            (Some("text->text+image"), false),
            (Some("text"), false),
            (None, false),
        ];
        for (modality, expect) in rows {
            assert_eq!(sees(modality), expect, "{modality:?}");
        }
    }

    #[test]
    fn free_models_of_the_wanted_kind_are_kept() {
        let day = 86_400;
        let list = json!({"data": [
            {"id": "a/big-70b:free", "created": 100 * day, "supported_parameters": ["tools", "seed"], "context_length": 8192},
            {"id": "a/small-7b", "pricing": {"prompt": "0", "completion": 0}, "created": 90 * day},
            {"id": "b/paid-70b", "pricing": {"prompt": "0.1", "completion": "0"}},
            {"id": "b/unknown", "architecture": {"modality": "text+image->text"}, "pricing": {"prompt": "0", "completion": "0"}},
            {"id": " "}, 3, {"name": "x"}]});
        let found = read(list.to_string().as_bytes()).unwrap();
        assert_eq!(found.len(), 4);
        assert!(found[0].supports_tools_meta && found[0].supported_parameters_count == 2);
        let check = |wanted: &Wanted| -> Vec<&str> {
            let now = 101 * day * 1000;
            found
                .iter()
                .filter(|model| is_wanted(model, wanted, now))
                .map(|model| model.id.as_str())
                .collect()
        };
        assert_eq!(check(&Wanted::default()), ["a/big-70b:free", "a/small-7b", "b/unknown"]);
        assert_eq!(check(&Wanted { least_parameters: 8.0, ..Wanted::default() }), ["a/big-70b:free"]);
        assert_eq!(
            check(&Wanted { most_days: Some(1.0), ..Wanted::default() }),
            ["a/big-70b:free", "b/unknown"]
        );
        assert_eq!(check(&Wanted { maker: Some(" B ".into()), ..Wanted::default() }), ["b/unknown"]);
        assert_eq!(read(b"{}"), None);
        assert_eq!(read(b"<html>"), None);
    }
}
