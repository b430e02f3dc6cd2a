use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use openclaw_config::Environment;

use super::*;

struct World {
    dir: tempfile::TempDir,
    book: SkillBook,
    config: Arc<Config>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        let mut world = Self { dir, book: SkillBook::default(), config: Arc::default() };
        world.configure("{}");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn configure(&mut self, config: &str) {
        let home = self.path("home").display().to_string();
        let bin = self.path("bin").display().to_string();
        let env = Environment::new([("HOME", home), ("PATH", bin)], "/");
        self.config = Config::from_json5(config, &env).unwrap();
    }

    fn write(&self, name: &str, more: &str) {
        let dir = self.path("ws/skills").join(name);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("SKILL.md"), format!("---\nname: {name}\ndescription: d\n{more}\n---\n")).unwrap();
    }

    fn add_program(&self, name: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn turn(&self, occasion: Occasion<'_>) -> Arc<Snapshot> {
        let (agent, workspace) = (AgentId::default(), self.path("ws"));
        let wanted = Wanted { config: &self.config, agent: &agent, workspace: &workspace };
        self.book.for_turn(wanted, occasion).await
    }

    async fn first(&self) -> Arc<Snapshot> {
        self.turn(Occasion::Begins).await
    }

    async fn next(&self, after: &Snapshot) -> Arc<Snapshot> {
        self.turn(Occasion::GoesOn(after.mark.as_ref())).await
    }

    /// Reads changed libraries again, as the watcher does.
    fn read_again(&self) {
        for (workspace, roots, library) in self.book.libraries() {
            assert!(library.is_outdated(now_ms()), "nothing to read again");
            self.book.put(&workspace, &roots, Library::read(&roots));
        }
    }
}

fn names(snapshot: &Snapshot) -> String {
    let names: Vec<&str> = snapshot.skills.iter().map(|skill| skill.name.as_str()).collect();
    names.join(" ")
}

#[tokio::test]
async fn a_watched_library_is_read_once_and_again_when_it_changes() {
    let world = World::new();
    world.book.watch();
    world.write("one", "");
    let first = world.first().await;
    assert_eq!(names(&first), "one");
    assert!(Arc::ptr_eq(&first, &world.next(&first).await));
    assert!(Arc::ptr_eq(&first, &world.first().await), "another session has the same");
    world.write("two", "");
    assert!(Arc::ptr_eq(&first, &world.next(&first).await), "nobody has looked yet");
    world.read_again();
    let second = world.next(&first).await;
    assert_eq!(names(&second), "one two");
    assert!(second.version > first.version && second.mark != first.mark);
    // A change that says nothing new changes nothing.
    fs::write(world.path("ws/skills/one/notes.txt"), "").unwrap();
    world.read_again();
    assert!(Arc::ptr_eq(&second, &world.next(&second).await));
    fs::remove_dir_all(world.path("ws/skills")).unwrap();
    world.read_again();
    let none = world.next(&second).await;
    assert_eq!(names(&none), "");
    assert!(none.mark.is_some() && none.mark != second.mark, "as OpenClaw 2026.2.9 writes it");
    assert!(Arc::ptr_eq(&none, &world.first().await));
}

#[tokio::test]
async fn without_a_watcher_a_session_that_begins_reads() {
    let world = World::new();
    let first = world.first().await;
    assert_eq!(names(&first), "");
    world.write("one", "");
    assert_eq!(names(&*world.next(&first).await), "", "a session that goes on keeps what it has");
    let second = world.first().await;
    assert_eq!(names(&second), "one");
    assert!(
        Arc::ptr_eq(&second, &world.next(&first).await),
        "and then the other as well: the skills changed"
    );
}

#[tokio::test]
async fn a_program_that_comes_is_for_sessions_that_begin() {
    let world = World::new();
    world.book.watch();
    world.write("needy", "metadata: {\"openclaw\":{\"requires\":{\"bins\":[\"fakebin\"]}}}");
    world.write("plain", "");
    let old = world.first().await;
    assert_eq!(names(&old), "plain");
    world.add_program("fakebin");
    assert!(Arc::ptr_eq(&old, &world.next(&old).await));
    let new = world.first().await;
    assert_eq!(names(&new), "needy plain");
    assert!(Arc::ptr_eq(&old, &world.next(&old).await), "its prompt stays as it is");
    assert!(Arc::ptr_eq(&new, &world.next(&new).await));
    let row_of_2_9 = Json::new(&serde_json::json!({"prompt": "p", "skills": [], "version": 0})).unwrap();
    assert!(Arc::ptr_eq(&new, &world.turn(Occasion::GoesOn(Some(&row_of_2_9))).await));
}

#[tokio::test]
async fn other_settings_are_for_all_sessions_and_the_same_ones_for_none() {
    let mut world = World::new();
    world.book.watch();
    world.write("one", "");
    let first = world.first().await;
    world.configure("{logging: {level: 'debug'}}");
    assert!(Arc::ptr_eq(&first, &world.next(&first).await), "nothing that skills depend on");
    world.configure("{skills: {entries: {one: {enabled: false}}}}");
    let second = world.next(&first).await;
    assert_eq!(names(&second), "");
    assert!(second.version > first.version);
    world.configure("{skills: {entries: {one: {env: {A: 'b'}}}}}");
    let third = world.next(&second).await;
    assert_eq!(names(&third), "one");
    assert!(!third.overlay.is_empty());
    let dir = world.path("more");
    fs::create_dir_all(dir.join("extra")).unwrap();
    fs::write(dir.join("extra/SKILL.md"), "---\ndescription: d\n---\n").unwrap();
    world.configure(&format!("{{skills: {{load: {{extraDirs: ['{}']}}}}}}", dir.display()));
    assert_eq!(names(&*world.next(&third).await), "extra one");
}
