//! Catalog update from a list in the form of models.dev. Pure.

use serde_json::{Map, Value, json};

/// Names of our providers, and theirs. Providers whose models `spec/models.md` §2.3 fixes are not
/// among them.
const PROVIDERS: &[(&str, &str)] = &[
    ("amazon-bedrock", "amazon-bedrock"),
    ("anthropic", "anthropic"),
    ("azure-openai-responses", "azure"),
    ("cerebras", "cerebras"),
    ("github-copilot", "github-copilot"),
    ("google", "google"),
    ("groq", "groq"),
    ("huggingface", "huggingface"),
    ("kimi-coding", "kimi-for-coding"),
    ("mistral", "mistral"),
    ("openai", "openai"),
    ("opencode", "opencode"),
    ("openrouter", "openrouter"),
    ("vercel-ai-gateway", "vercel"),
    ("xai", "xai"),
    ("zai", "zai"),
];
/// Names of prices: ours, and theirs.
const PRICES: [(&str, &str); 4] =
    [("input", "input"), ("output", "output"), ("cacheRead", "cache_read"), ("cacheWrite", "cache_write")];

/// Treatment of models that we do not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum New {
    /// Say that there is one.
    Name,
    /// Take it in.
    Add,
}

/// Brings a list up to date, and says what changed.
pub(super) fn refresh(list: &mut Value, source: &Value, new: New) -> Vec<String> {
    let mut told = Vec::new();
    for (ours, theirs) in PROVIDERS {
        let known = source.pointer(&format!("/{theirs}/models")).and_then(Value::as_object);
        let entry = list.get_mut(*ours).and_then(Value::as_object_mut);
        if let (Some(known), Some(entry)) = (known, entry) {
            provider(ours, entry, known, new, &mut told);
        }
    }
    told
}

fn provider(
    id: &str,
    entry: &mut Map<String, Value>,
    known: &Map<String, Value>,
    new: New,
    told: &mut Vec<String>,
) {
    let models = entry.entry("models").or_insert_with(|| json!([]));
    let Some(models) = models.as_array_mut() else { return };
    for model in models.iter_mut().filter_map(Value::as_object_mut) {
        let name = model.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(about) = known.get(&name) else {
            told.push(format!("gone     {id}/{name}"));
            continue;
        };
        let before = model.clone();
        describe(model, about);
        if *model != before {
            told.push(format!("changed  {id}/{name}"));
        }
    }
    for (name, about) in known {
        let is_listed = models.iter().any(|model| model["id"] == name.as_str());
        if is_listed || !is_for_agents(about) {
            continue;
        }
        told.push(format!("{}  {id}/{name}", if new == New::Add { "added  " } else { "unlisted" }));
        if new == New::Add {
            let mut model = Map::new();
            model.insert("id".to_owned(), name.as_str().into());
            model.insert(
                "name".to_owned(),
                about.get("name").cloned().unwrap_or_else(|| name.as_str().into()),
            );
            describe(&mut model, about);
            models.push(Value::Object(model));
        }
    }
}

/// True if a model writes text, uses tools, and is still offered.
fn is_for_agents(about: &Value) -> bool {
    let writes = about.pointer("/modalities/output").and_then(Value::as_array);
    about["tool_call"] == true
        && about["status"] != "deprecated"
        && about.pointer("/limit/output").and_then(Value::as_u64).is_some_and(|tokens| tokens > 0)
        && writes.is_some_and(|kinds| kinds.iter().all(|kind| kind == "text"))
}

/// Writes down what is known of a model, in the order of our fields; what is not known stays.
fn describe(model: &mut Map<String, Value>, about: &Value) {
    let sees = about.pointer("/modalities/input").and_then(Value::as_array);
    let sees = sees.map(|kinds| kinds.iter().any(|kind| kind == "image"));
    let price = about.get("cost").map(price);
    let mut next = Map::new();
    for field in ["id", "name", "api", "baseUrl"] {
        if let Some(value) = model.remove(field) {
            next.insert(field.to_owned(), value);
        }
    }
    let reasons = about.get("reasoning").and_then(Value::as_bool);
    let mut set = |field: &str, said: Option<Option<Value>>| {
        let old = model.remove(field);
        if let Some(value) = said.unwrap_or(old) {
            next.insert(field.to_owned(), value);
        }
    };
    set("reasoning", reasons.map(|reasons| reasons.then_some(Value::Bool(true))));
    set("input", sees.map(|sees| sees.then(|| json!(["text", "image"]))));
    set("cost", price);
    set("contextWindow", tokens(about, "/limit/context").map(Some));
    set("maxTokens", tokens(about, "/limit/output").map(Some));
    next.append(model);
    *model = next;
}

fn tokens(about: &Value, place: &str) -> Option<Value> {
    about.pointer(place).and_then(Value::as_u64).filter(|tokens| *tokens > 0).map(Value::from)
}

/// Prices in our names; nothing for what is free.
fn price(cost: &Value) -> Option<Value> {
    let named = |ours: &str, theirs: &str| {
        let value = cost.get(theirs).filter(|value| value.as_f64().is_some_and(|price| price > 0.0));
        match value {
            Some(value) => Some((ours.to_owned(), value.clone())),
            None => ours.ends_with("put").then(|| (ours.to_owned(), json!(0))),
        }
    };
    let prices: Map<String, Value> = PRICES.iter().filter_map(|(ours, theirs)| named(ours, theirs)).collect();
    let costs = prices.values().any(|price| price.as_f64().is_some_and(|price| price > 0.0));
    costs.then_some(Value::Object(prices))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Value {
        let model = |change: Value| {
            let mut model = json!({"name": "New", "reasoning": true, "tool_call": true, "modalities": {"input": ["text", "image"], "output": ["text"]},
                "cost": {"input": 3, "output": 15, "cache_read": 0.3}, "limit": {"context": 200_000, "output": 64_000}});
            model.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            model
        };
        json!({"anthropic": {"models": {
            "listed": model(json!({"reasoning": false})),
            "new": model(json!({})),
            "free": model(json!({"cost": {"input": 0, "output": 0}, "modalities": {"input": ["text"], "output": ["text"]}})),
            "painter": model(json!({"modalities": {"input": ["text"], "output": ["image"]}})),
            "toolless": model(json!({"tool_call": false})),
            "old": model(json!({"status": "deprecated"})) }},
            "moonshot": {"models": {"kimi-k2.5": model(json!({}))}}})
    }

    fn list() -> Value {
        json!({"anthropic": {"api": "x", "models": [
                {"id": "listed", "name": "Mine", "api": "y", "reasoning": true, "cost": {"input": 1, "output": 2}, "contextWindow": 1, "maxTokens": 2, "compat": {"a": true}},
                {"id": "gone", "name": "Gone", "contextWindow": 1, "maxTokens": 2}]},
            "moonshot": {"models": [{"id": "kimi-k2.5", "contextWindow": 256_000, "maxTokens": 8192}]}})
    }

    #[test]
    fn listed_models_are_brought_up_to_date_and_others_named() {
        let mut changed = list();
        let told = refresh(&mut changed, &source(), New::Name);
        assert_eq!(
            told,
            [
                "changed  anthropic/listed",
                "gone     anthropic/gone",
                "unlisted  anthropic/new",
                "unlisted  anthropic/free"
            ]
        );
        let expect = r#"{"id":"listed","name":"Mine","api":"y","input":["text","image"],"cost":{"input":3,"output":15,"cacheRead":0.3},"contextWindow":200000,"maxTokens":64000,"compat":{"a":true}}"#;
        assert_eq!(changed["anthropic"]["models"][0].to_string(), expect);
        assert_eq!(changed["anthropic"]["models"][1], list()["anthropic"]["models"][1]);
        assert_eq!(changed["moonshot"], list()["moonshot"], "what the spec fixes stays");
        assert!(!refresh(&mut changed, &source(), New::Name).iter().any(|line| line.starts_with("changed")));
    }

    #[test]
    fn new_models_are_taken_in_when_asked_for() {
        let mut changed = list();
        refresh(&mut changed, &source(), New::Add);
        let models = changed["anthropic"]["models"].as_array().unwrap();
        let added: Vec<String> = models[2..].iter().map(Value::to_string).collect();
        assert_eq!(
            added,
            [
                r#"{"id":"new","name":"New","reasoning":true,"input":["text","image"],"cost":{"input":3,"output":15,"cacheRead":0.3},"contextWindow":200000,"maxTokens":64000}"#,
                r#"{"id":"free","name":"New","reasoning":true,"contextWindow":200000,"maxTokens":64000}"#,
            ]
        );
    }
}
