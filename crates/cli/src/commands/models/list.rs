//! `openclaw models list`.

use openclaw_models::{ModelRef, ProviderId};
use serde::Serialize;
use serde_json::json;

use super::form::Form;
use super::view::ModelView;
use crate::failure::CommandResult;
use crate::output::{self, Column, columns};

/// Filter for models.
pub(super) struct Filter {
    /// True to list every known model.
    pub(super) all: bool,
    /// Only local ones.
    pub(super) local: bool,
    /// Only of this provider.
    pub(super) provider: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelListRow {
    key: String,
    name: String,
    input: String,
    context_window: Option<u64>,
    local: bool,
    available: bool,
    tags: Vec<String>,
    missing: bool,
}

pub(super) fn run(view: &ModelView, filter: &Filter, form: Form) -> CommandResult {
    let wanted = filter.provider.as_deref().map(ProviderId::normalize);
    let rows: Vec<ModelListRow> = references(view, filter.all)
        .iter()
        .filter(|reference| wanted.as_ref().is_none_or(|provider| reference.provider == *provider))
        .map(|reference| row(view, reference))
        .filter(|row| row.local || !filter.local)
        .collect();
    match form {
        Form::Json => output::json(&json!({ "count": rows.len(), "models": rows })),
        Form::Plain => rows.iter().for_each(|row| output::line(&row.key)),
        Form::Text if rows.is_empty() => {
            output::line("No models found.");
            if !filter.all {
                output::error_line("Only models in use are listed; --all lists every known one.");
            }
        }
        Form::Text => table(&rows).iter().for_each(|line| output::line(line)),
    }
    Ok(0)
}

fn references(view: &ModelView, all: bool) -> Vec<ModelRef> {
    let mut references = view.in_use();
    if all {
        for row in view.catalog.rows(|provider| view.is_usable(provider)) {
            let reference = ModelRef::new(&row.provider, &row.id);
            if !references.contains(&reference) {
                references.push(reference);
            }
        }
    }
    references
}

fn row(view: &ModelView, reference: &ModelRef) -> ModelListRow {
    let known = view.catalog.lookup(reference).ok();
    let is_offline = reference.provider.as_str() == openclaw_models::offline::PROVIDER;
    let name = known.as_ref().map_or_else(|| reference.model.to_string(), |spec| spec.name.clone());
    ModelListRow {
        key: reference.to_string(),
        name,
        input: if known.as_ref().is_some_and(|spec| spec.images) { "text+image" } else { "text" }.to_owned(),
        context_window: known.as_ref().and_then(|spec| spec.context_window),
        local: view.is_local(&reference.provider),
        available: view.is_usable(&reference.provider),
        tags: tags(view, reference),
        missing: known.is_none() && !is_offline,
    }
}

fn tags(view: &ModelView, reference: &ModelRef) -> Vec<String> {
    let mut tags = Vec::new();
    if view.primary == *reference {
        tags.push("default".to_owned());
    }
    let at = view.fallbacks.iter().position(|fallback| fallback == reference);
    tags.extend(at.map(|at| format!("fallback#{}", at + 1)));
    if view.image.as_ref() == Some(reference) {
        tags.push("image".to_owned());
    }
    let at = view.image_fallbacks.iter().position(|fallback| fallback == reference);
    tags.extend(at.map(|at| format!("img-fallback#{}", at + 1)));
    if view.names.lists(reference) {
        tags.push("configured".to_owned());
    }
    tags.extend(view.aliases_of(reference).into_iter().map(|alias| format!("alias:{alias}")));
    tags
}

const COLUMNS: &[Column] =
    &[("Model", 42), ("Input", 10), ("Ctx", 8), ("Local", 5), ("Auth", 5), ("Tags", 0)];

/// A context window in thousands of tokens, as the reference counts them.
pub(super) fn window(tokens: Option<u64>) -> String {
    match tokens {
        None => "-".to_owned(),
        Some(small @ 0..=1023) => small.to_string(),
        Some(tokens) => format!("{}k", (tokens + 512) / 1024),
    }
}

fn table(rows: &[ModelListRow]) -> Vec<String> {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let mut tags = row.tags.clone();
            if row.missing {
                tags.push("missing".to_owned());
            }
            vec![
                row.key.clone(),
                row.input.clone(),
                window(row.context_window),
                yes(row.local),
                yes(row.available),
                tags.join(","),
            ]
        })
        .collect();
    columns(COLUMNS, &cells)
}
