//! Import cycles between the modules of one crate.
//!
//! A module is a top-level one, its folder included. It imports another if product code names it by `crate::…`, or by enough `super::`
//! to leave the module.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{SourceFile, code};

/// Modules of a crate, each with those it imports.
pub(super) type Imports = BTreeMap<String, BTreeSet<String>>;

/// Returns the imports between the modules of each crate, by the name of its folder.
pub(super) fn imports(files: &[SourceFile]) -> BTreeMap<String, Imports> {
    let mut crates: BTreeMap<String, Imports> = BTreeMap::new();
    for file in files {
        let modules = crates.entry(file.crate_name.clone()).or_default();
        let Some(module) = file.module() else { continue };
        let named = named(&code(&file.text), file.depth());
        modules.entry(module.to_owned()).or_default().extend(named.into_iter().filter(|name| name != module));
    }
    for modules in crates.values_mut() {
        let known: BTreeSet<String> = modules.keys().cloned().collect();
        modules.values_mut().for_each(|imported| imported.retain(|name| known.contains(name)));
    }
    crates
}

/// Returns the modules of the largest import cycle; empty where there is none.
pub(super) fn largest_cycle(imports: &Imports) -> Vec<&str> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|from| (from.as_str(), reached(imports, from))).collect();
    let cycle_of = |module: &str| -> Vec<&str> {
        let both = |other: &&str| reach[module].contains(*other) && reach[*other].contains(module);
        reach.keys().copied().filter(both).collect()
    };
    let cycles = imports.keys().map(|module| cycle_of(module));
    cycles.max_by_key(Vec::len).unwrap_or_default()
}

/// Returns the modules that can be reached from one by one import or more.
fn reached<'i>(imports: &'i Imports, from: &str) -> BTreeSet<&'i str> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut left: Vec<&str> = imports[from].iter().map(String::as_str).collect();
    while let Some(next) = left.pop() {
        if found.insert(next) {
            left.extend(imports[next].iter().map(String::as_str));
        }
    }
    found
}

/// Returns the top-level modules that code names; `depth` is the number of `super` that leads to the crate's root.
fn named(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let from_root = ["crate::".to_owned(), "super::".repeat(depth)];
    for path in from_root {
        for (at, _) in code.match_indices(&path) {
            let is_longer = code[..at].ends_with(|last: char| last.is_alphanumeric() || "_:".contains(last));
            if !is_longer {
                names.extend(first_names(&code[at + path.len()..]));
            }
        }
    }
    names
}

/// Returns the first segment behind a path, or those of a group in braces.
fn first_names(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else { return vec![first_name(rest)] };
    let mut depth = 0_usize;
    let mut names = Vec::new();
    let mut begins = true;
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            letter if begins && !letter.is_whitespace() => {
                names.push(first_name(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

fn first_name(rest: &str) -> String {
    rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &[&str])]) -> Imports {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(from, to)| ((*from).to_owned(), set(to))).collect()
    }

    #[test]
    fn the_largest_cycle_is_found_through_several_modules() {
        let none = graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])]);
        assert_eq!(largest_cycle(&none), Vec::<&str>::new());
        let some = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &["e"]), ("e", &["d"])]);
        assert_eq!(largest_cycle(&some), ["a", "b", "c"]);
    }

    #[test]
    fn imports_are_read_in_every_form() {
        let code = "use crate::one::A; use crate::{two::{B, C}, three, four::D}; fn f() { crate::five::g() }\n\
                    use super::super::six; use super::inner; pub(in crate::seven) struct S; fn g() { mycrate::x() }";
        let found: Vec<String> = named(code, 2).into_iter().collect();
        assert_eq!(found, ["five", "four", "one", "seven", "six", "three", "two"]);
    }
}
