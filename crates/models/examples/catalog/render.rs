//! The list as text: a line a model, so that a change of one is a change of one line.

use std::fmt::Write as _;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

/// Providers by name, their models by name.
pub(super) fn render(list: &Value) -> Result<String> {
    let list = list.as_object().context("the list is no object")?;
    let mut ids: Vec<&String> = list.keys().collect();
    ids.sort();
    let providers: Result<Vec<String>> = ids.into_iter().map(|id| provider(id, &list[id])).collect();
    Ok(format!("{{\n{}\n}}\n", providers?.join(",\n")))
}

fn provider(id: &str, entry: &Value) -> Result<String> {
    let entry = entry.as_object().with_context(|| format!("{id} is no object"))?;
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in entry.iter().filter(|(name, _)| *name != "models") {
        lines.push(format!("    {}: {}", Value::from(name.as_str()), inline(value)));
    }
    if let Some(models) = entry.get("models").and_then(Value::as_array) {
        let mut models: Vec<&Value> = models.iter().collect();
        models.sort_by_key(|model| (text(model, "name"), text(model, "id")));
        let models: Vec<String> =
            models.into_iter().map(|model| format!("      {}", inline(model))).collect();
        lines.push(format!("    \"models\": [\n{}\n    ]", models.join(",\n")));
    }
    Ok(format!("  {}: {{\n{}\n  }}", Value::from(id), lines.join(",\n")))
}

fn text(model: &Value, field: &str) -> String {
    model.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(fields) => object(fields),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}

fn object(fields: &Map<String, Value>) -> String {
    let mut out = String::from("{ ");
    for (at, (name, value)) in fields.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(out, "{comma}{}: {}", Value::from(name.as_str()), inline(value));
    }
    out + " }"
}
