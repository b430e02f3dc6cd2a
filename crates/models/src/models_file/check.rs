//! The rules of `models.json`, as the loader of OpenClaw 2026.2.9 has them: who breaks one loses the whole file.

use serde_json::{Map, Value};

/// Faults that are named; more say nothing new.
const MAX_NAMED: usize = 5;

/// Reason why a `models.json` is ignored as a whole. The texts are for people; those of the rules
/// are OpenClaw's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileProblem {
    /// The file can't be read.
    #[error("{0}")]
    Read(String),
    /// The file is not JSON.
    #[error("Failed to parse models.json: {0}")]
    Syntax(String),
    /// The file is JSON of the wrong shape.
    #[error("Invalid models.json schema: {0}")]
    Schema(String),
    /// A required field is missing.
    #[error("{0}")]
    Rule(String),
}

/// Required type of a field.
#[derive(Debug, Clone, Copy)]
enum FieldKind {
    /// A text that is not empty.
    Text,
    Bool,
    Number,
    /// Text values.
    Texts,
    /// A list of `text` and `image`.
    Modalities,
    /// Numbers of these names, all or any of them.
    Prices(Presence),
    Object,
    Models,
    Overrides,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

type FieldTable = &'static [(&'static str, Presence, FieldKind)];

use Presence::{Optional, Required};

const PROVIDER: FieldTable = &[
    ("baseUrl", Optional, FieldKind::Text),
    ("apiKey", Optional, FieldKind::Text),
    ("api", Optional, FieldKind::Text),
    ("headers", Optional, FieldKind::Texts),
    ("authHeader", Optional, FieldKind::Bool),
    ("models", Optional, FieldKind::Models),
    ("modelOverrides", Optional, FieldKind::Overrides),
];
const MODEL: FieldTable = &[
    ("id", Required, FieldKind::Text),
    ("name", Optional, FieldKind::Text),
    ("api", Optional, FieldKind::Text),
    ("reasoning", Optional, FieldKind::Bool),
    ("input", Optional, FieldKind::Modalities),
    ("cost", Optional, FieldKind::Prices(Required)),
    ("contextWindow", Optional, FieldKind::Number),
    ("maxTokens", Optional, FieldKind::Number),
    ("headers", Optional, FieldKind::Texts),
    ("compat", Optional, FieldKind::Object),
];
const OVERRIDE: FieldTable = &[
    ("name", Optional, FieldKind::Text),
    ("reasoning", Optional, FieldKind::Bool),
    ("input", Optional, FieldKind::Modalities),
    ("cost", Optional, FieldKind::Prices(Optional)),
    ("contextWindow", Optional, FieldKind::Number),
    ("maxTokens", Optional, FieldKind::Number),
    ("headers", Optional, FieldKind::Texts),
    ("compat", Optional, FieldKind::Object),
];
const PRICES: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

/// Checks a whole document.
pub(super) fn check(document: &Value) -> Result<(), FileProblem> {
    let mut faults = Faults::default();
    match document.get("providers") {
        Some(Value::Object(providers)) => {
            for (id, provider) in providers {
                faults.fields(&format!("/providers/{id}"), provider, PROVIDER);
            }
        }
        Some(_) => faults.add("/providers", "must be object"),
        None => faults.add("root", "must have required property 'providers'"),
    }
    if !faults.named.is_empty() {
        return Err(FileProblem::Schema(faults.named.join("; ")));
    }
    let providers = document.get("providers").and_then(Value::as_object);
    providers.into_iter().flatten().try_for_each(|(id, provider)| rules(id, provider))
}

/// Checks that a provider states enough for its models to be callable.
fn rules(id: &str, provider: &Value) -> Result<(), FileProblem> {
    let problem = |text: String| Err(FileProblem::Rule(text));
    let has = |name: &str| provider.get(name).is_some();
    let models = provider.get("models").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let overrides = provider.get("modelOverrides").and_then(Value::as_object).is_some_and(|o| !o.is_empty());
    if models.is_empty() {
        if has("baseUrl") || overrides {
            return Ok(());
        }
        return problem(format!(
            "Provider {id}: must specify \"baseUrl\", \"modelOverrides\", or \"models\"."
        ));
    }
    for field in ["baseUrl", "apiKey"] {
        if !has(field) {
            return problem(format!("Provider {id}: \"{field}\" is required when defining custom models."));
        }
    }
    for model in models {
        let name = model.get("id").and_then(Value::as_str).unwrap_or_default();
        if !has("api") && model.get("api").is_none() {
            return problem(format!(
                "Provider {id}, model {name}: no \"api\" specified. Set at provider or model level."
            ));
        }
        for field in ["contextWindow", "maxTokens"] {
            if model.get(field).and_then(Value::as_f64).is_some_and(|number| number <= 0.0) {
                return problem(format!("Provider {id}, model {name}: invalid {field}"));
            }
        }
    }
    Ok(())
}

#[derive(Default)]
struct Faults {
    named: Vec<String>,
}

impl Faults {
    fn add(&mut self, place: &str, what: &str) {
        if self.named.len() < MAX_NAMED {
            self.named.push(format!("{place} {what}"));
        }
    }

    fn object<'v>(&mut self, place: &str, value: &'v Value) -> Option<&'v Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.add(place, "must be object");
        }
        object
    }

    fn fields(&mut self, place: &str, value: &Value, fields: FieldTable) {
        let Some(object) = self.object(place, value) else { return };
        for (name, presence, kind) in fields {
            match object.get(*name) {
                Some(value) => self.field(&format!("{place}/{name}"), value, *kind),
                None if *presence == Required => {
                    self.add(place, &format!("must have required property '{name}'"));
                }
                None => {}
            }
        }
    }

    fn field(&mut self, place: &str, value: &Value, kind: FieldKind) {
        match kind {
            FieldKind::Text => match value.as_str() {
                Some("") => self.add(place, "must not be empty"),
                Some(_) => {}
                None => self.add(place, "must be string"),
            },
            FieldKind::Bool if !value.is_boolean() => self.add(place, "must be boolean"),
            FieldKind::Number if !value.is_number() => self.add(place, "must be number"),
            FieldKind::Bool | FieldKind::Number => {}
            FieldKind::Object => drop(self.object(place, value)),
            FieldKind::Texts => {
                let object = self.object(place, value);
                for (name, _) in object.into_iter().flatten().filter(|(_, value)| !value.is_string()) {
                    self.add(&format!("{place}/{name}"), "must be string");
                }
            }
            FieldKind::Modalities => {
                let known = |word: &Value| matches!(word.as_str(), Some("text" | "image"));
                if !value.as_array().is_some_and(|words| words.iter().all(known)) {
                    self.add(place, "must be a list of \"text\" and \"image\"");
                }
            }
            FieldKind::Prices(presence) => self.prices(place, value, presence),
            FieldKind::Models => match value.as_array() {
                Some(models) => {
                    for (at, model) in models.iter().enumerate() {
                        self.fields(&format!("{place}/{at}"), model, MODEL);
                    }
                }
                None => self.add(place, "must be array"),
            },
            FieldKind::Overrides => {
                let object = self.object(place, value);
                for (id, change) in object.into_iter().flatten() {
                    self.fields(&format!("{place}/{id}"), change, OVERRIDE);
                }
            }
        }
    }

    fn prices(&mut self, place: &str, value: &Value, presence: Presence) {
        let Some(object) = self.object(place, value) else { return };
        for name in PRICES {
            match object.get(name) {
                Some(price) if !price.is_number() => {
                    self.add(&format!("{place}/{name}"), "must be number");
                }
                None if presence == Required => {
                    self.add(place, &format!("must have required property '{name}'"));
                }
                Some(_) | None => {}
            }
        }
    }
}
