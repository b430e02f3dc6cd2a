use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

struct Tree {
    dir: TempDir,
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

    fn hook(&self, dir: &str, settings: &str) {
        let events = "metadata: {openclaw: {events: [command], hookKey: k}}";
        self.put(&format!("{dir}/HOOK.md"), &format!("---\n{settings}{events}\n---\n"));
        self.put(&format!("{dir}/handler"), "#!/bin/sh\n");
        fs::set_permissions(self.path(dir).join("handler"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A pack of two hooks.
    fn pack(&self, dir: &str, version: &str) {
        self.hook(&format!("{dir}/a"), "name: first\n");
        self.hook(&format!("{dir}/nested/b"), "");
        let package = format!(
            "{{\"name\": \"@acme/pack\", \"version\": \"{version}\", \"openclaw\": {{\"hooks\": [\"./a\", \"nested/b\"]}}}}"
        );
        self.put(&format!("{dir}/package.json"), &package);
    }

    fn hooks(&self) -> PathBuf {
        self.path("state/hooks")
    }

    fn install(&self, from: &str, mode: &Mode) -> Result<Installed, String> {
        let staged = stage(&self.path(from), &self.hooks()).map_err(|error| self.shown(&error))?;
        staged.install(&self.hooks(), mode).map_err(|error| self.shown(&error))
    }

    fn shown(&self, error: &InstallError) -> String {
        error.to_string().replace(&format!("{}/", self.dir.path().display()), "")
    }

    /// Lists the state directory and the hooks in it.
    fn state(&self) -> Vec<String> {
        let entries = |dir: PathBuf| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries(self.path("state"))
            .chain(entries(self.hooks()))
            .map(|name| name.into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_hook_and_a_pack_are_installed_under_their_names() {
    let tree = Tree::new();
    tree.hook("src/one", "");
    tree.put("src/one/.git/config", "left out");
    tree.put("src/one/lib/data", "taken");
    symlink("lib/data", tree.path("src/one/link")).unwrap();
    tree.pack("src/two", "1.2.3");
    let one = tree.install("src/one", &Mode::New).unwrap();
    assert_eq!((one.directory, one.pack.id.as_str()), (tree.hooks().join("one"), "one"));
    let at = |path: &str| tree.hooks().join("one").join(path);
    assert_eq!(fs::read_to_string(at("link")).unwrap(), "taken");
    assert!(at("link").is_symlink() && !at(".git").exists());
    assert_ne!(at("handler").metadata().unwrap().permissions().mode() & 0o111, 0);
    let two = tree.install("src/two", &Mode::New).unwrap().pack;
    assert_eq!(
        (two.id.as_str(), two.names(), two.version.as_deref()),
        ("pack", vec!["first", "b"], Some("1.2.3"))
    );
    assert_eq!(two.hooks[0].key, "k");
    assert_eq!(installed_version(&tree.hooks().join("pack")).as_deref(), Some("1.2.3"));
    assert_eq!(tree.state(), ["hooks", "one", "pack"]);
}

#[test]
fn what_is_there_is_replaced_only_by_what_has_its_id() {
    let tree = Tree::new();
    tree.pack("one", "1.0.0");
    tree.pack("two", "2.0.0");
    tree.hook("other", "");
    let version = || installed_version(&tree.hooks().join("pack"));
    tree.install("one", &Mode::New).unwrap();
    let again = tree.install("two", &Mode::New).unwrap_err();
    assert_eq!(
        again,
        "state/hooks/pack is there already; `openclaw hooks update` replaces what came from npm, else delete it first"
    );
    let replace = Mode::Replace("pack".to_owned());
    assert_eq!(tree.install("other", &replace).unwrap_err(), "it is \"other\", not \"pack\"");
    assert_eq!(version().as_deref(), Some("1.0.0"));
    tree.install("two", &replace).unwrap();
    assert_eq!(version().as_deref(), Some("2.0.0"));
    assert_eq!(tree.state(), ["hooks", "pack"], "nothing is left beside it");
}

#[test]
fn archives_are_opened_wherever_their_hooks_are() {
    let tree = Tree::new();
    tree.hook("src/package", "name: packed\n");
    for (name, top) in [("deep.tgz", "package"), ("flat.tar.gz", ".")] {
        let file = File::create(tree.path(name)).unwrap();
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(file, flate2::Compression::fast()));
        tar.append_dir_all(top, tree.path("src/package")).unwrap();
        tar.into_inner().unwrap().finish().unwrap();
        assert_eq!(stage(&tree.path(name), &tree.hooks()).unwrap().pack.names(), ["packed"], "{name}");
    }
    tree.put("bad.zip", "no archive");
    assert!(
        tree.install("bad.zip", &Mode::New).unwrap_err().starts_with("the archive could not be unpacked: ")
    );
    tree.put("x.txt", "");
    assert!(
        tree.install("x.txt", &Mode::New)
            .unwrap_err()
            .starts_with("x.txt is neither a directory nor an archive")
    );
    assert!(tree.install("gone", &Mode::New).is_err());
    assert_eq!(tree.state(), ["hooks"], "nothing is left behind");
}

#[test]
fn what_is_no_hook_is_named() {
    let tree = Tree::new();
    let package = |hooks: &str| format!("{{\"name\": \"p\", \"openclaw\": {{\"hooks\": {hooks}}}}}");
    tree.put("empty/README.md", "");
    tree.put("outside/package.json", &package("[\"../one\"]"));
    tree.hook("one", "");
    tree.put("member/package.json", &package("[\"./gone\"]"));
    tree.hook("unhandled", "");
    fs::remove_file(tree.path("unhandled/handler")).unwrap();
    tree.hook("named", "name: ../up\n");
    tree.hook("hidden", "name: .x\n");
    tree.put("json/package.json", "{");
    tree.put("silent/HOOK.md", "---\nname: silent\n---\n");
    tree.hook("away", "");
    symlink("../one", tree.path("away/link")).unwrap();
    tree.hook("pipe", "");
    nix::unistd::mkfifo(&tree.path("pipe/p"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let rows = [
        ("empty", "it has neither a HOOK.md nor a package.json with openclaw.hooks; is it a pack of hooks?"),
        ("outside", "outside: package.json names ../one, which is outside of the pack"),
        ("member", "member: package.json names ./gone, which has no HOOK.md"),
        ("unhandled", "unhandled has no handler"),
        ("named", "\"../up\" cannot be the name of a directory of hooks"),
        ("hidden", "\".x\" cannot be the name of a directory of hooks"),
        ("json", "json: package.json is no JSON: EOF while parsing an object at line 1 column 1"),
        ("silent", "silent: it names no events (metadata.openclaw.events)"),
        ("away", "away/link is neither a file nor a directory nor a link within the pack"),
        ("pipe", "pipe/p is neither a file nor a directory nor a link within the pack"),
    ];
    for (from, expect) in rows {
        assert_eq!(tree.install(from, &Mode::New).unwrap_err(), expect);
    }
    assert_eq!(tree.state(), ["hooks"]);
}
