//! Generated files: written by `cargo xtask generate`, compared by `cargo xtask generate --check`.
//!
//! A file that is made of the types and tables of one crate is compared by `tests/generated.rs` of
//! that crate, which also writes it. The web chat's files are made here, of the protocol schema.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

const SCHEMA: &str = "ui/protocol.schema.json";
const TYPES: &str = "ui/src/protocol.ts";
const ASSETS: &str = "ui/dist";

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => write(),
        [flag] if flag == "--check" => check(),
        _ => bail!("usage: cargo xtask generate [--check]"),
    }
}

fn write() -> Result<()> {
    if !tests(Generated::Write)? {
        bail!("a generated file can't be written");
    }
    if !has_npm() {
        println!("generate: {TYPES} and {ASSETS} need npm, which is not installed");
        return Ok(());
    }
    install()?;
    build(&root().join(TYPES), &root().join(ASSETS))
}

fn check() -> Result<()> {
    let mut stale = Vec::new();
    if !tests(Generated::Compare)? {
        stale.push("what the tests above name");
    }
    // Without the registry the assets cannot be built here; that says nothing about the change.
    let can_build = has_npm() && install().inspect_err(|error| println!("generate: {error:#}")).is_ok();
    if can_build {
        let fresh = scratch()?;
        build(&fresh.join("protocol.ts"), &fresh.join("dist"))?;
        if std::fs::read(fresh.join("protocol.ts"))? != std::fs::read(root().join(TYPES)).unwrap_or_default()
        {
            stale.push(TYPES);
        }
        if files(&fresh.join("dist"))? != files(&root().join(ASSETS))? {
            stale.push(ASSETS);
        }
    } else {
        println!("generate: npm is not installed or has no registry; {TYPES} and {ASSETS} were not compared");
    }
    if stale.is_empty() {
        return Ok(());
    }
    bail!("stale: {}; run `cargo xtask generate` and commit the result", stale.join(", "))
}

/// Use of the generated files.
#[derive(Clone, Copy, PartialEq)]
enum Generated {
    Write,
    Compare,
}

/// Runs the tests of the generated files; true if they pass.
fn tests(mode: Generated) -> Result<bool> {
    let mut tests = Command::new("cargo");
    tests
        .args(["test", "--workspace", "--quiet", "--no-fail-fast", "--test", "generated"])
        .current_dir(root());
    // The tests write wherever the variable is set, to whatever value.
    match mode {
        Generated::Write => tests.env("UPDATE_EXPECT", "1"),
        Generated::Compare => tests.env_remove("UPDATE_EXPECT"),
    };
    Ok(tests.status().context("cannot start cargo")?.success())
}

/// The definitions of the protocol schema under one object, so that the type generator reaches each of
/// them.
fn types_schema() -> Result<Value> {
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(root().join(SCHEMA))?)?;
    let definitions = schema["definitions"].take();
    let names = definitions.as_object().into_iter().flat_map(|all| all.keys());
    let properties: serde_json::Map<String, Value> = names
        .map(|name| (name.clone(), serde_json::json!({"$ref": format!("#/definitions/{name}")})))
        .collect();
    Ok(serde_json::json!({
        "title": "Definitions", "type": "object", "properties": properties, "definitions": definitions
    }))
}

fn install() -> Result<()> {
    if ui().join("node_modules").is_dir() {
        return Ok(());
    }
    npm(&["install", "--no-save", "--ignore-scripts", "--silent"])
}

fn build(types: &Path, assets: &Path) -> Result<()> {
    let input = scratch()?.join("types.schema.json");
    std::fs::write(&input, types_schema()?.to_string())?;
    npm(&[
        "run",
        "--silent",
        "types",
        "--",
        "-i",
        &input.display().to_string(),
        "-o",
        &types.display().to_string(),
    ])?;
    npm(&["run", "--silent", "check"])?;
    npm(&[
        "exec",
        "--",
        "vite",
        "build",
        "--logLevel",
        "warn",
        "--emptyOutDir",
        "--outDir",
        &assets.display().to_string(),
    ])
}

fn npm(args: &[&str]) -> Result<()> {
    let status = Command::new("npm").args(args).current_dir(ui()).status().context("cannot start npm")?;
    if !status.success() {
        bail!("npm {} failed", args.join(" "));
    }
    Ok(())
}

fn has_npm() -> bool {
    Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Files below `dir` with their bytes, by relative path.
fn files(dir: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(current) = open.pop() {
        for entry in
            std::fs::read_dir(&current).with_context(|| format!("cannot read {}", current.display()))?
        {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push((path.strip_prefix(dir)?.to_owned(), std::fs::read(&path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn scratch() -> Result<PathBuf> {
    let dir = root().join("target/generate-check");
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn ui() -> PathBuf {
    root().join("ui")
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}
