use std::fs;

use openclaw_config::Environment;
use serde_json::json;

use super::*;

struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn hook(&self, path: &str, name: &str, description: &str) {
        let events = "metadata: {openclaw: {events: ['command']}}";
        self.put(
            &format!("{path}/HOOK.md"),
            &format!("---\nname: {name}\ndescription: {description}\n{events}\n---\n"),
        );
    }

    fn places(&self) -> Places {
        Places {
            extra: vec![self.path("extra1"), self.path("extra2")],
            bundled: None,
            managed: self.path("state/hooks"),
            workspace: self.path("ws"),
            sandboxes: SandboxWritable::default(),
        }
    }

    fn found(&self) -> (Vec<String>, Vec<String>) {
        let found = discover(&self.places());
        let line =
            |hook: &Hook| format!("{} {} {}", hook.about.name, hook.source.as_str(), hook.about.description);
        let root = format!("{}/", self.dir.path().display());
        let problem =
            |problem: &Problem| format!("{}: {}", problem.path.display(), problem.text).replace(&root, "");
        let own = |hook: &&Hook| !matches!(hook.home, Home::BuiltIn(_));
        (found.hooks.iter().filter(own).map(line).collect(), found.problems.iter().map(problem).collect())
    }
}

#[test]
fn the_strongest_place_wins_where_the_weakest_stood() {
    let tree = Tree::new();
    tree.hook("extra1/a", "a", "1");
    tree.hook("extra2/b", "b", "2");
    tree.hook("extra2/a", "a", "2");
    tree.hook("state/hooks/b", "b", "3");
    tree.hook("state/hooks/log", "command-logger", "3");
    tree.hook("ws/hooks/a", "a", "4");
    tree.put("ws/hooks/notes/README.md", "no hook");
    let (hooks, problems) = tree.found();
    assert_eq!(
        hooks,
        ["a openclaw-workspace 4", "b openclaw-managed 3", "command-logger openclaw-managed 3"]
    );
    assert!(problems.is_empty(), "{problems:?}");
    let names: Vec<String> = discover(&tree.places()).hooks.into_iter().map(|hook| hook.about.name).collect();
    assert_eq!(names, ["a", "b", "boot-md", "command-logger", "session-memory", "soul-evil"]);
}

#[test]
fn a_directory_for_the_bundled_ones_takes_their_place() {
    let tree = Tree::new();
    tree.hook("ours/boot-md", "boot-md", "5");
    let found = discover(&Places { bundled: Some(tree.path("ours")), ..tree.places() });
    assert_eq!(found.hooks.len(), 1);
    assert_eq!(
        (found.hooks[0].source, &found.hooks[0].home),
        (HookOrigin::Bundled, &Home::Directory(tree.path("ours/boot-md")))
    );
}

#[test]
fn a_pack_names_hooks_within_it() {
    let tree = Tree::new();
    tree.hook("ws/hooks/pack/one", "one", "in");
    tree.hook("ws/outside", "outside", "out");
    tree.hook("ws/hooks/pack/deep/two", "two", "in");
    std::os::unix::fs::symlink(tree.path("ws/outside"), tree.path("ws/hooks/pack/link")).unwrap();
    tree.put(
        "ws/hooks/pack/package.json",
        r#"{"openclaw": {"hooks": ["./one", "deep/../deep/two", "../../outside", "/etc", "link", "none", 5, " "]}}"#,
    );
    tree.put("ws/hooks/plain/package.json", "{}");
    tree.hook("ws/hooks/plain", "plain", "no pack");
    tree.put("ws/hooks/zbad/package.json", "{");
    let (hooks, problems) = tree.found();
    assert_eq!(
        hooks,
        ["one openclaw-workspace in", "two openclaw-workspace in", "plain openclaw-workspace no pack"]
    );
    assert_eq!(
        problems[..4],
        [
            "ws/hooks/pack: package.json names ../../outside, which is outside of the pack",
            "ws/hooks/pack: package.json names /etc, which is outside of the pack",
            "ws/hooks/pack: package.json names link, which is outside of the pack",
            "ws/hooks/pack: package.json names none, which has no HOOK.md",
        ]
    );
    assert!(problems[4].starts_with("ws/hooks/zbad: package.json is no JSON"), "{problems:?}");
}

#[test]
fn files_that_are_no_hooks_are_named_and_nothing_hangs() {
    let tree = Tree::new();
    fs::create_dir_all(tree.path("ws/hooks/pipe")).unwrap();
    nix::unistd::mkfifo(&tree.path("ws/hooks/pipe/HOOK.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    tree.put("ws/hooks/long/HOOK.md", "");
    fs::File::create(tree.path("ws/hooks/long/HOOK.md")).unwrap().set_len(50 << 20).unwrap();
    tree.put("ws/hooks/silent/HOOK.md", "---\nname: x\n---\n");
    tree.put("ws/hooks/a-file", "");
    let (hooks, problems) = tree.found();
    assert!(hooks.is_empty());
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].contains("is longer than 262144 bytes"), "{problems:?}");
    assert!(problems[1].contains("is a pipe"), "{problems:?}");
    assert_eq!(problems[2], "ws/hooks/silent: it names no events (metadata.openclaw.events)");
}

#[test]
fn nothing_is_run_that_a_sandbox_may_have_written() {
    let tree = Tree::new();
    tree.hook("ws/hooks/evil", "evil", "1");
    tree.hook("ws/linked/evil2", "evil2", "2");
    tree.hook("extra1/fine", "fine", "3");
    tree.hook("bound/evil3", "evil3", "4");
    fs::create_dir_all(tree.path("state")).unwrap();
    std::os::unix::fs::symlink(tree.path("ws/linked"), tree.path("state/hooks")).unwrap();
    std::os::unix::fs::symlink(tree.path("bound/evil3"), tree.path("extra1/evil3")).unwrap();
    let document = json!({"agents": {
        "defaults": {"workspace": tree.path("ws"), "sandbox": {"docker": {"binds": [format!("{}:/b", tree.path("bound").display())]}}},
        "list": [{"id": "main"}, {"id": "b", "workspace": tree.path("ws"), "sandbox": {"mode": "all", "workspaceAccess": "rw"}}],
    }});
    let environment = Environment::new([("HOME", "/nonexistent")], "/");
    let config = Config::from_json5(&document.to_string(), &environment).unwrap();
    let places = Places { sandboxes: config.sandbox_writable(), ..tree.places() };
    let found = discover(&places);
    let own = found.hooks.iter().filter(|hook| !matches!(hook.home, Home::BuiltIn(_)));
    assert_eq!(own.map(|hook| hook.about.name.as_str()).collect::<Vec<_>>(), ["fine"]);
    let named: Vec<_> = found.problems.iter().map(|problem| problem.path.clone()).collect();
    assert_eq!(named, ["extra1/evil3", "state/hooks", "ws/hooks"].map(|path| tree.path(path)));
    assert!(found.problems.iter().all(|problem| problem.text.contains("a sandbox may write there")));
}
