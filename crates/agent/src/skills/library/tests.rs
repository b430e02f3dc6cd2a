use std::fs;
use std::path::Path;

use super::*;
use crate::skills::source::SkillSource;

fn write(dir: &Path, name: &str, description: &str) {
    let path = dir.join(name);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("SKILL.md"), format!("---\nname: {name}\ndescription: {description}\n---\n"))
        .unwrap();
}

fn root(source: SkillSource, dir: &Path) -> Root {
    Root { source, dir: dir.to_owned() }
}

#[test]
fn the_last_of_a_name_wins_and_has_the_place_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let [extra, bundled, managed, own] =
        ["extra", "bundled", "managed", "own"].map(|name| dir.path().join(name));
    write(&extra, "only-extra", "e");
    write(&extra, "shared", "e");
    write(&bundled, "peekaboo", "b");
    write(&bundled, "shared", "b");
    write(&managed, "demo", "m");
    write(&own, "demo", "w");
    write(&own, "shared", "w");
    write(&own, "own", "w");
    fs::write(own.join("README.md"), "# What these are\n").unwrap();
    fs::write(own.join("single.md"), "---\nname: single\ndescription: One file\n---\n").unwrap();
    fs::create_dir_all(own.join("empty")).unwrap();
    fs::write(own.join("empty/SKILL.md"), "nothing").unwrap();
    let roots = [
        root(SkillSource::Extra, &extra),
        root(SkillSource::Bundled, &bundled),
        root(SkillSource::Managed, &managed),
        root(SkillSource::Workspace, &own),
    ];
    let library = Library::read(&roots);
    let found: Vec<_> = library.skills.iter().map(|skill| (skill.name.as_str(), skill.source)).collect();
    let expect = [
        ("only-extra", SkillSource::Extra),
        ("shared", SkillSource::Workspace),
        ("peekaboo", SkillSource::Bundled),
        ("demo", SkillSource::Workspace),
        ("own", SkillSource::Workspace),
        ("single", SkillSource::Workspace),
    ];
    assert_eq!(found, expect);
    assert_eq!(library.find("demo").unwrap().file_path, own.join("demo/SKILL.md"));
    assert_eq!(library.find("single").unwrap().base_dir, own);
    let left: Vec<_> = library.problems.iter().filter(|problem| problem.weight == Weight::Left).collect();
    assert_eq!(left.len(), 1, "a README is no problem: {left:?}");
    assert_eq!(left[0].path, own.join("empty/SKILL.md"));
}

#[test]
fn each_of_two_thousand_skills_is_looked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..2_000 {
        write(dir.path(), &format!("skill-{number:04}"), "One of very many");
    }
    let library = Library::read(&[root(SkillSource::Managed, dir.path())]);
    assert_eq!(library.skills.len(), 2_000);
    let mut places: Vec<_> = library.places().collect();
    assert_eq!(places.len(), 1 + 2_000 * 2, "the directory, and of each skill its own and its file");
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 1 + 2_000 * 2);
    assert!(!library.is_outdated(0));
}
