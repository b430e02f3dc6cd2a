//! Check that the product reads the config keys that it claims to act on, and claims those that it
//! reads.
//!
//! The compiler knows who reads a field: in a copy of the sources every field of the typed config is marked as deprecated, and
//! what it warns of is compared with `crates/config/src/support.rs`.
#![expect(clippy::print_stdout, reason = "a development task tells what it did")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use openclaw_config::{NOT_ACTED_ON, SupportedKeys};

/// Prefix of the paths of the files with the typed config: `settings.rs` and the folder `settings`.
const SETTINGS: &str = "crates/config/src/settings";
const ROOT: &str = "Config";
/// Made from the file's types for one agent: what is only copied into it is not read.
const RESOLVED: &str = "ResolvedAgent";

/// Section with a type that has no fields: its keys are those of each platform.
const CHANNELS: &str = "channels";

/// A field of the typed config.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    kind: String,
    /// Key in the file; nothing for fields that are not of the file, the keys of its own for one
    /// that is flattened.
    key: Key,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Own(String),
    Flattened,
    None,
}

type Types = BTreeMap<String, Vec<Field>>;
/// Type and field.
type Place = (String, String);

fn main() -> anyhow::Result<()> {
    let root = root();
    let mut types = Types::new();
    let copy = tempfile::tempdir()?;
    for file in tracked(root)? {
        let to = copy.path().join(&file);
        std::fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        if file.starts_with(SETTINGS) {
            let text = std::fs::read_to_string(root.join(&file))?;
            types.extend(types_of(&text));
            std::fs::write(to, marked(&text))?;
        } else if root.join(&file).is_file() {
            std::fs::copy(root.join(&file), to)?;
        }
    }
    let reads = reads(copy.path())?;
    let supported = SupportedKeys::of_build();
    let mut complaints = complaints(&types, &reads, &|path| supported.acts_on(path));
    complaints.sort();
    if !complaints.is_empty() {
        bail!("\n  {}", complaints.join("\n  "));
    }
    println!("config-reads: {} fields, {} of them read", keys(&types).len(), reads.len());
    Ok(())
}

/// Root of the workspace.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    if !listed.status.success() {
        bail!("git cannot list the files: {}", String::from_utf8_lossy(&listed.stderr));
    }
    Ok(String::from_utf8(listed.stdout)?.lines().map(str::to_owned).collect())
}

/// Fields that anything reads.
fn reads(copy: &Path) -> anyhow::Result<BTreeSet<Place>> {
    let this = std::env::current_exe()?;
    let target = this.ancestors().nth(3).context("the example is in no target directory")?;
    let checked = Command::new("cargo")
        .args(["check", "--workspace", "--lib", "--bin", "openclaw"])
        // A small example, so that crates from outside the workspace have the features that they have
        // with tests: these are checked already.
        .args(["--example", "demo", "--locked", "--message-format", "short"])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .context("cannot start cargo")?;
    let told = String::from_utf8_lossy(&checked.stderr);
    if !checked.status.success() {
        bail!("the marked copy does not compile:\n{told}");
    }
    let reads: BTreeSet<Place> = told.lines().filter_map(read_of).collect();
    if reads.is_empty() {
        bail!("the compiler names no read of any field: the marks have no effect");
    }
    Ok(reads)
}

/// `…/x.rs:1:2: warning: use of deprecated field `openclaw_config::settings::Session::scope``
fn read_of(line: &str) -> Option<Place> {
    let (_, path) = line.split_once("use of deprecated field `")?;
    let mut parts = path.split('`').next()?.rsplit("::");
    let field = parts.next()?.to_owned();
    Some((parts.next()?.to_owned(), field))
}

/// The product's part of a file, without its tests.
fn product(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

/// The name of the type that begins with this line.
fn opened(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub struct ")?.strip_suffix('{')?;
    rest.split(|c: char| !c.is_alphanumeric()).next()
}

/// Name and type of the field in this line.
fn field(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("    ")?;
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let (name, kind) = line.strip_suffix(',')?.split_once(": ")?;
    name.chars().all(|c| c.is_ascii_lowercase() || c == '_').then_some((name, kind))
}

fn types_of(text: &str) -> Types {
    let mut types = Types::new();
    let (mut inside, mut attributes) = (None, String::new());
    for line in product(text).lines() {
        if let Some(name) = opened(line) {
            inside = Some(name);
            types.insert(name.to_owned(), Vec::new());
        } else if line == "}" {
            inside = None;
        } else if line.trim_start().starts_with("#[") {
            attributes.push_str(line);
            continue;
        } else if let (Some(owner), Some((name, kind))) = (inside, field(line)) {
            let key = key(name, &attributes);
            let fields = types.entry(owner.to_owned()).or_default();
            fields.push(Field { name: name.to_owned(), kind: kind.to_owned(), key });
        } else {
            continue;
        }
        attributes.clear();
    }
    types
}

fn key(name: &str, attributes: &str) -> Key {
    if attributes.contains("skip") {
        return Key::None;
    }
    if attributes.contains("flatten") {
        return Key::Flattened;
    }
    if let Some((_, renamed)) = attributes.split_once("rename = \"") {
        return Key::Own(renamed.split('"').next().unwrap_or_default().to_owned());
    }
    let mut parts = name.split('_');
    let mut key = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(part.len().min(1));
        key.push_str(&first.to_uppercase());
        key.push_str(rest);
    }
    Key::Own(key)
}

/// The file with every field marked.
fn marked(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in product(text).lines() {
        inside = opened(line).is_some() || inside && line != "}";
        if inside && field(line).is_some() {
            out.push_str("    #[deprecated]\n");
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Keys of the file that have a type, each with the field that holds it.
fn keys(types: &Types) -> Vec<(Vec<String>, Place)> {
    let mut found = Vec::new();
    walk(types, ROOT, &[], &mut found);
    found
}

fn walk(types: &Types, owner: &str, path: &[String], found: &mut Vec<(Vec<String>, Place)>) {
    for field in types.get(owner).into_iter().flatten() {
        let mut path = path.to_vec();
        match &field.key {
            Key::None => continue,
            Key::Flattened => {}
            Key::Own(key) => path.push(key.clone()),
        }
        let (kind, is_many) = inner(&field.kind);
        if types.contains_key(kind) {
            if is_many {
                path.push("*".to_owned());
            }
            walk(types, kind, &path, found);
        } else {
            found.push((path, (owner.to_owned(), field.name.clone())));
        }
    }
}

/// The type of a value, and whether there are several by name or place.
fn inner(kind: &str) -> (&str, bool) {
    let within = |start: &str| kind.strip_prefix(start)?.strip_suffix('>');
    if let Some(kind) = within("Option<") {
        return inner(kind);
    }
    match within("Vec<").or_else(|| within("BTreeMap<String, ")) {
        Some(kind) => (inner(kind).0, true),
        None => (kind, false),
    }
}

/// Complaints: keys said to be acted on and not read, read and not said, or made for nobody.
fn complaints(types: &Types, reads: &BTreeSet<Place>, acts_on: &dyn Fn(&[String]) -> bool) -> Vec<String> {
    let excused =
        |path: &str| path == CHANNELS || NOT_ACTED_ON.iter().any(|(start, _)| path.starts_with(start));
    let judge = |(path, place): (Vec<String>, Place)| {
        let shown = path.join(".");
        match (acts_on(&path), reads.contains(&place)) {
            (true, false) => {
                Some(format!("{shown}: said to be acted on, but {}::{} is not read", place.0, place.1))
            }
            (false, true) if !excused(&shown) => Some(format!("{shown}: read, but not said to be acted on")),
            (true, true) | (false, false | true) => None,
        }
    };
    let unused = types
        .get(RESOLVED)
        .into_iter()
        .flatten()
        .filter(|field| !reads.contains(&(RESOLVED.to_owned(), field.name.clone())));
    let unused = unused.map(|field| format!("{RESOLVED}::{} is read by nobody", field.name));
    keys(types).into_iter().filter_map(judge).chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTION: &str = "\
/// Root.
pub struct Config {
    /// Agents.
    pub agents: Vec<Agent>,
    /// Both.
    #[serde(default, rename = \"match\")]
    pub matches: Option<String>,
    #[serde(skip)]
    document: Value,
}

pub struct Agent {
    #[serde(flatten)]
    pub policy: Policy,
    pub max_runs: Option<u64>,
}

pub struct Policy {
    pub tools: BTreeMap<String, Tool>,
}

pub struct Tool {
    pub allow: bool,
}

pub struct ResolvedAgent {
    pub max_runs: u64,
}
#[cfg(test)]
mod tests {}
";

    fn place(owner: &str, name: &str) -> Place {
        (owner.to_owned(), name.to_owned())
    }

    #[test]
    fn keys_are_those_of_the_file() {
        let keys: Vec<String> = keys(&types_of(SECTION)).iter().map(|(path, _)| path.join(".")).collect();
        assert_eq!(keys, ["agents.*.tools.*.allow", "agents.*.maxRuns", "match"]);
        assert_eq!(marked(SECTION).matches("#[deprecated]\n").count(), 8);
    }

    #[test]
    fn a_read_is_found_in_what_the_compiler_says() {
        let line =
            "crates/x.rs:1:2: warning: use of deprecated field `openclaw_config::settings::Agent::max_runs`";
        assert_eq!(read_of(line), Some(place("Agent", "max_runs")));
        assert_eq!(read_of("crates/x.rs:1:2: warning: unused import: `x`"), None);
    }

    #[test]
    fn what_is_said_and_not_read_and_what_is_read_and_not_said_is_complained_of() {
        let types = types_of(SECTION);
        let reads =
            [("Tool", "allow"), ("Agent", "max_runs"), ("Config", "matches"), ("ResolvedAgent", "max_runs")];
        let all: BTreeSet<Place> = reads.into_iter().map(|(owner, name)| place(owner, name)).collect();
        let says_all = |_: &[String]| true;
        assert_eq!(complaints(&types, &all, &says_all), [""; 0]);
        let mut less = all.clone();
        less.remove(&place("Agent", "max_runs"));
        less.remove(&place("ResolvedAgent", "max_runs"));
        assert_eq!(
            complaints(&types, &less, &says_all),
            [
                "agents.*.maxRuns: said to be acted on, but Agent::max_runs is not read",
                "ResolvedAgent::max_runs is read by nobody"
            ]
        );
        let says_less = |path: &[String]| path != ["match"];
        assert_eq!(complaints(&types, &all, &says_less), ["match: read, but not said to be acted on"]);
    }

    #[test]
    fn the_types_of_the_product_are_seen() {
        let root = root();
        let mut types = Types::new();
        for file in tracked(root).unwrap().iter().filter(|file| file.starts_with(SETTINGS)) {
            types.extend(types_of(&std::fs::read_to_string(root.join(file)).unwrap()));
        }
        let keys: Vec<String> = keys(&types).iter().map(|(path, _)| path.join(".")).collect();
        for known in
            ["gateway.controlUi.root", "agents.list.*.id", "session.mainKey", "bindings.*.match.channel"]
        {
            assert!(keys.iter().any(|key| key == known), "{known}");
        }
        assert!(keys.len() > 200, "{}", keys.len());
    }
}
