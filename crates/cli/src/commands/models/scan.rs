//! `openclaw models scan`: free models of OpenRouter become fallbacks.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use openclaw_models::credentials::{AgentFlag, how_to_add};
use openclaw_models::scan::{Found, PROVIDER, Pace, Picks, Tried, Wanted, pick, ranked};
use openclaw_models::{Http, ModelRef, Models, ProviderId};
use serde::Serialize;

use super::change::{Choice, Defaults};
use super::view::ModelView;
use crate::args::{ScanArgs, given, positive};
use crate::client;
use crate::commands::questions::Questions;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output::{self, Column, columns};

/// Time for one answer unless asked otherwise, in milliseconds.
const TIMEOUT_MS: f64 = 12_000.0;
/// Models asked at once.
const AT_ONCE: usize = 3;

/// Plan made from the flags.
struct ScanPlan {
    wanted: Wanted,
    pace: Pace,
    most: usize,
}

/// The document, keys in the order of the reference.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScanDocument<'a> {
    selected: &'a [String],
    selected_images: &'a [String],
    set_default: bool,
    set_image: bool,
    results: &'a [Found],
    warnings: Vec<&'static str>,
}

pub(super) fn run(args: &ScanArgs, context: &CliContext) -> CommandResult {
    let plan = ScanPlan::of(args)?;
    let changes_primary = args.set_default || args.set_image;
    if args.no_probe && changes_primary {
        return Err(CommandFailure::usage(
            "Cannot apply models that were not tried. Remove --no-probe, or --set-default and --set-image.",
        ));
    }
    let view = ModelView::new(context, None)?;
    let has_key = view.is_usable(&ProviderId::normalize(PROVIDER));
    if !has_key && !args.no_probe && changes_primary {
        return Err(CommandFailure::new("no-key", "Cannot try models without a key for OpenRouter.")
            .hint(format!("{} Then run the command again.", how_to_add_key(&view))));
    }
    let tries = has_key && !args.no_probe;
    let found = ranked(look(&view, &plan, tries)?);
    if !tries {
        listed_only(&view, &found, args, has_key);
        return Ok(0);
    }
    if !found.iter().any(|model| model.tool.ok) {
        return Err(CommandFailure::new("no-models", "No tool-capable OpenRouter free models found.").hint(
            format!(
                "`openclaw models scan --no-probe` lists {} without trying them. {}",
                found.len(),
                first_error(&found)
            ),
        ));
    }
    if !args.json {
        output::line(&summary(&found));
        table(&found).iter().for_each(|line| output::line(line));
    }
    let picks = pick(&found, plan.most);
    match consent(args)? {
        Consent::Given => apply(args, context, &found, &picks),
        Consent::Asked => apply(args, context, &found, &chosen(&found, &picks)?),
        Consent::Missing => {
            print_document(
                args,
                &found,
                &Picks::default(),
                vec!["nothing was changed: pass --yes to apply the best"],
            );
            Ok(0)
        }
    }
}

impl ScanPlan {
    fn of(args: &ScanArgs) -> Result<Self, CommandFailure> {
        let number = |text: &Option<String>, name: &str, least: &str, is_ok: fn(f64) -> bool| {
            let Some(text) = given(text.as_deref()) else {
                return Ok(None);
            };
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && is_ok(*number));
            number.map(Some).ok_or_else(|| CommandFailure::usage(format!("{name} must be {least}")))
        };
        let count = |text: &str, name: &str| positive(text, format!("{name} must be a positive integer"));
        let timeout = number(&args.timeout, "--timeout", "> 0", |number| number > 0.0)?.unwrap_or(TIMEOUT_MS);
        let at_once = args.concurrency.as_deref().map(|text| count(text, "--concurrency"));
        Ok(Self {
            wanted: Wanted {
                least_parameters: number(&args.min_params, "--min-params", ">= 0", |it| it >= 0.0)?
                    .unwrap_or(0.0),
                // 0 means any age, as with OpenClaw 2026.2.9.
                most_days: number(&args.max_age_days, "--max-age-days", ">= 0", |it| it >= 0.0)?
                    .filter(|days| *days > 0.0),
                maker: args.provider.clone().filter(|maker| !maker.trim().is_empty()),
            },
            pace: Pace {
                deadline: Duration::try_from_secs_f64(timeout / 1000.0).unwrap_or(Duration::MAX),
                at_once: at_once.transpose()?.unwrap_or(AT_ONCE),
            },
            most: count(&args.max_candidates, "--max-candidates")?,
        })
    }
}

/// Scans use the default agent's credentials.
fn how_to_add_key(view: &ModelView) -> String {
    how_to_add(&ProviderId::normalize(PROVIDER), &AgentFlag::of_default(&view.settings))
}

fn look(view: &ModelView, plan: &ScanPlan, tries: bool) -> Result<Vec<Found>, CommandFailure> {
    let models = Models::new(view.variables.clone(), Http::default());
    let settings = &view.settings;
    client::block_on(async {
        let listed = models.free_models(settings, &plan.wanted).await;
        let listed = listed.map_err(|error| CommandFailure::new("scan", error.to_string()))?;
        Ok(if tries {
            models.try_models(settings, &view.agent.agent_dir, listed, plan.pace).await
        } else {
            listed
        })
    })
}

/// Prints the list when nothing was tried.
fn listed_only(view: &ModelView, found: &[Found], args: &ScanArgs, has_key: bool) {
    if args.json {
        output::json(&found);
        return;
    }
    if !has_key && !args.no_probe {
        output::line("Free models of OpenRouter want a key too: they are listed, and none was tried.");
        output::line(&how_to_add_key(view));
    }
    output::line(&format!("Found {} OpenRouter free models (metadata only).", found.len()));
    table(found).iter().for_each(|line| output::line(line));
}

/// Consent to change the config.
enum Consent {
    Given,
    Asked,
    Missing,
}

fn consent(args: &ScanArgs) -> Result<Consent, CommandFailure> {
    match () {
        () if args.yes || args.no_input => Ok(Consent::Given),
        () if args.json => Ok(Consent::Missing),
        () if io::stdin().is_terminal() => Ok(Consent::Asked),
        () => Err(CommandFailure::usage("Non-interactive scan: pass --yes to apply defaults.")),
    }
}

/// Asks which of the models become fallbacks.
fn chosen(found: &[Found], picks: &Picks) -> Result<Picks, CommandFailure> {
    let mut questions = Questions::of_process();
    let able = |is_able: fn(&Found) -> bool| -> Vec<&str> {
        found.iter().filter(|model| is_able(model)).map(|model| model.model_ref.as_str()).collect()
    };
    let fallbacks = ask(
        &mut questions,
        "Fallback models, the first is tried first",
        &able(|it| it.tool.ok),
        &picks.fallbacks,
    )?;
    let seeing = able(|it| it.image.ok);
    let image_fallbacks = if seeing.is_empty() {
        Vec::new()
    } else {
        ask(&mut questions, "Image fallback models", &seeing, &picks.image_fallbacks)?
    };
    Ok(Picks { fallbacks, image_fallbacks })
}

fn ask<R: io::BufRead, W: io::Write>(
    questions: &mut Questions<R, W>,
    what: &str,
    models: &[&str],
    preset: &[String],
) -> Result<Vec<String>, CommandFailure> {
    for (at, model) in models.iter().enumerate() {
        questions.say(&format!("  {}) {model}", at + 1))?;
    }
    let number =
        |model: &String| models.iter().position(|known| known == model).map(|at| (at + 1).to_string());
    let numbers = preset.iter().filter_map(number).collect::<Vec<_>>().join(",");
    loop {
        let answer = questions.ask(&format!("{what} (numbers)"), &numbers)?;
        match numbered(&answer, models) {
            Some(chosen) => return Ok(chosen),
            None => {
                questions.say(&format!("Write numbers from 1 to {}, separated by commas.", models.len()))?
            }
        }
    }
}

/// The models of a list of numbers, each once.
fn numbered(answer: &str, models: &[&str]) -> Option<Vec<String>> {
    let mut chosen: Vec<String> = Vec::new();
    for word in answer.split([',', ' ']).filter(|word| !word.is_empty()) {
        let at = word.parse::<usize>().ok()?.checked_sub(1)?;
        let model = (*models.get(at)?).to_owned();
        if !chosen.contains(&model) {
            chosen.push(model);
        }
    }
    (!chosen.is_empty()).then_some(chosen)
}

fn apply(args: &ScanArgs, context: &CliContext, found: &[Found], picks: &Picks) -> CommandResult {
    if args.set_image && picks.image_fallbacks.is_empty() {
        return Err(CommandFailure::new("no-models", "No image-capable models selected for image model.")
            .hint("Leave out --set-image, or look for others with --min-params 0 and without --provider."));
    }
    let mut defaults = Defaults::open(context)?;
    for model in picks.fallbacks.iter().chain(&picks.image_fallbacks) {
        if let Some(reference) = ModelRef::parse(model, PROVIDER) {
            defaults.allow(&reference);
        }
    }
    defaults.put_fallbacks(Choice::Text, &picks.fallbacks);
    if !picks.image_fallbacks.is_empty() {
        defaults.put_fallbacks(Choice::Image, &picks.image_fallbacks);
    }
    let choices = [
        (Choice::Text, &picks.fallbacks, args.set_default),
        (Choice::Image, &picks.image_fallbacks, args.set_image),
    ];
    for (choice, models, sets) in choices {
        if let Some(first) = models.first().filter(|_| sets) {
            defaults.put_primary(choice, first);
        }
    }
    if args.json {
        defaults.save_silently()?;
        print_document(args, found, picks, Vec::new());
        return Ok(0);
    }
    defaults.save()?;
    for (choice, models, sets) in choices {
        if let Some(first) = models.first() {
            output::line(&format!("{}: {}", choice.fallbacks_label(), models.join(", ")));
            if sets {
                output::line(&format!("{}: {first}", choice.primary_label()));
            }
        }
    }
    Ok(0)
}

fn print_document(args: &ScanArgs, found: &[Found], picks: &Picks, warnings: Vec<&'static str>) {
    output::json(&ScanDocument {
        selected: &picks.fallbacks,
        selected_images: &picks.image_fallbacks,
        set_default: args.set_default,
        set_image: args.set_image,
        results: found,
        warnings,
    });
}

fn first_error(found: &[Found]) -> String {
    let error = found.iter().find_map(|model| model.tool.error.as_ref());
    error.map_or_else(String::new, |error| format!("The first one said: {}", output::one_line(error)))
}

fn summary(found: &[Found]) -> String {
    let count = |is_it: fn(&Found) -> bool| found.iter().filter(|model| is_it(model)).count();
    format!(
        "Scan results: tested {}, tool ok {}, image ok {}, tool+image ok {}, image only {}",
        found.len(),
        count(|model| model.tool.ok),
        count(|model| model.image.ok),
        count(|model| model.tool.ok && model.image.ok),
        count(|model| model.image.ok && !model.tool.ok)
    )
}

const COLUMNS: &[Column] =
    &[("Model", 42), ("Tool", 10), ("Image", 10), ("Ctx", 8), ("Params", 8), ("Notes", 0)];

fn table(found: &[Found]) -> Vec<String> {
    let tried = |tried: &Tried| match tried {
        Tried { skipped: true, .. } => "skip".to_owned(),
        Tried { ok: true, latency_ms, .. } => output::duration(*latency_ms),
        Tried { .. } => "fail".to_owned(),
    };
    let cells = |model: &Found| {
        vec![
            model.model_ref.clone(),
            tried(&model.tool),
            tried(&model.image),
            super::list::window(model.context_length),
            model.parameters.map_or_else(|| "-".to_owned(), |billions| format!("{billions}b")),
            model.modality.as_ref().map(|modality| format!("modality:{modality}")).unwrap_or_default(),
        ]
    };
    columns(COLUMNS, &found.iter().map(cells).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_chosen_by_number() {
        let models = ["a", "b", "c"];
        let rows: [(&str, Option<&[&str]>); 6] = [
            ("2", Some(&["b"])),
            ("3,1, 3", Some(&["c", "a"])),
            ("", None),
            ("0", None),
            ("4", None),
            ("a", None),
        ];
        for (answer, expect) in rows {
            let expect = expect.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(numbered(answer, &models), expect, "{answer}");
        }
    }

    #[test]
    fn a_person_is_asked_until_the_answer_makes_sense() {
        let mut questions = Questions { answers: &b"9\n2,1\n"[..], screen: Vec::new() };
        let chosen = ask(&mut questions, "Models", &["a", "b"], &["a".to_owned()]).unwrap();
        assert_eq!(chosen, ["b", "a"]);
        let screen = String::from_utf8(questions.screen).unwrap();
        assert!(
            screen.contains("1) a") && screen.contains("[1]") && screen.contains("from 1 to 2"),
            "{screen}"
        );
        let mut enter = Questions { answers: &b"\n"[..], screen: Vec::new() };
        assert_eq!(ask(&mut enter, "Models", &["a", "b"], &["b".to_owned()]).unwrap(), ["b"]);
    }
}
