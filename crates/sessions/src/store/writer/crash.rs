//! The crash test: a writer, step by step and by a seed alone, on a disk that fails and ends at any
//! operation; then a store on the remains. `OPENCLAW_CRASH_RUNS` makes for more runs,
//! `OPENCLAW_CRASH_SEED` for one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::*;
use crate::disk::faulty::{End, FaultyDisk, with_meanwhile};
use crate::store::{FileStore, SessionStore};
use crate::{KeyRules, Layout};

/// Unless `OPENCLAW_CRASH_RUNS` says otherwise, as the gate does.
const RUNS: u64 = 400;
const THREADS: u64 = 4;
const LIVES: usize = 2;
const STEPS: usize = 25;
const AGENTS: [&str; 2] = ["main", "ops"];
const KEYS: usize = 4;

/// Fields of a row that the test looks at. `n` comes with a text made from it, so that half a row
/// is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SeenRow {
    n: Option<i64>,
    x: Option<i64>,
    /// Set by others only.
    f: Option<i64>,
}

type RowState = Option<SeenRow>;

#[derive(Debug, Clone, Copy)]
enum RowOperation {
    SetN(i64),
    SetX(i64),
    ClearX,
    Delete,
}

impl RowOperation {
    fn apply(self, state: RowState) -> RowState {
        let old = state.unwrap_or_default();
        match self {
            Self::SetN(n) => Some(SeenRow { n: Some(n), ..old }),
            Self::SetX(x) => Some(SeenRow { x: Some(x), ..old }),
            Self::ClearX => Some(SeenRow { x: None, ..old }),
            Self::Delete => None,
        }
    }

    fn change(self) -> Change {
        Box::new(move |edit| {
            match self {
                Self::SetN(n) => {
                    edit.entry.set_field("n", json!(n));
                    edit.entry.set_field("pad", json!(pad(n)));
                }
                Self::SetX(x) => edit.entry.set_field("x", json!(x)),
                Self::ClearX => edit.entry.clear_field("x"),
                Self::Delete => unreachable!("a row is deleted by another command"),
            }
            Ok(())
        })
    }
}

/// Mostly short, at times long.
fn pad(n: i64) -> String {
    let len = if n % 23 == 0 { 5_000 } else { (n % 40) as usize };
    n.to_string().repeat(len / n.to_string().len() + 1)
}

fn seen(row: &Value) -> SeenRow {
    let number = |name: &str| row.get(name).and_then(Value::as_i64);
    let n = number("n");
    assert_eq!(row.get("pad").and_then(Value::as_str).map(str::to_owned), n.map(pad), "half a row");
    SeenRow { n, x: number("x"), f: number("f") }
}

fn seen_row(row: &Row) -> SeenRow {
    seen(&serde_json::to_value(&*row.entry).unwrap())
}

/// Known states of one row.
#[derive(Debug, Default)]
struct KnownStates {
    acknowledged: RowState,
    /// Refused changes since: they may be found after a crash, but only instead of what was
    /// acknowledged before.
    perhaps: Vec<RowState>,
    /// States since the file's journal was synced: after a power cut the row may be in one of them
    /// again.
    unsynced: Vec<RowState>,
    /// True if the row was deleted. Other programs keep off such a row: nobody could tell if they
    /// mean the old one or the new one.
    was_deleted: bool,
}

impl KnownStates {
    fn on_answer(&mut self, step: RowOperation, durability: LineDurability, acknowledged: Option<RowState>) {
        let next = step.apply(self.acknowledged);
        self.was_deleted |= matches!(step, RowOperation::Delete);
        match acknowledged {
            Some(found) => {
                assert_eq!(found, next);
                // Of what was written before a sync that failed, nobody knows: it may be lost without what came later.
                let without: Vec<RowState> = self.unsynced.iter().map(|state| step.apply(*state)).collect();
                self.unsynced.extend(without);
                if durability == LineDurability::Written {
                    self.unsynced.append(&mut self.perhaps);
                    self.unsynced.push(self.acknowledged);
                }
                self.acknowledged = next;
                self.perhaps.clear();
            }
            None => {
                let further: Vec<RowState> = self.perhaps.iter().map(|state| step.apply(*state)).collect();
                self.perhaps.extend(further);
                self.perhaps.push(next);
                self.perhaps.dedup();
            }
        }
    }
}

struct World {
    random: StdRng,
    disk: FaultyDisk,
    options: FileStoreOptions,
    writer: StoreWriter,
    known: BTreeMap<String, KnownStates>,
    others: BTreeMap<String, i64>,
    count: i64,
    /// True if the disk fails in this life.
    has_faults: bool,
}

fn rules() -> KeyRules {
    KeyRules::default()
}

impl World {
    fn new(seed: u64) -> Self {
        // A path of its own: what a process claims it claims by path.
        let root = PathBuf::from(format!("/crash-{seed}"));
        let disk = FaultyDisk::new(seed, &root);
        let agents = AGENTS.map(AgentId::normalize).to_vec();
        let mut options = FileStoreOptions::new(Layout::new(&root, &root, None), rules(), agents);
        options.disk = Arc::new(disk.clone());
        let writer = StoreWriter::new(options.clone(), Arc::default());
        let random = StdRng::seed_from_u64(seed);
        let (known, others) = (BTreeMap::new(), BTreeMap::new());
        Self { random, disk, options, writer, known, others, count: 0, has_faults: false }
    }

    fn path(&self, agent: &str) -> PathBuf {
        self.options.layout.store_path(&AgentId::normalize(agent))
    }

    fn target(&self, agent: &str) -> StoreTarget {
        StoreTarget { path: self.path(agent), agent: AgentId::normalize(agent) }
    }

    fn number(&mut self) -> i64 {
        self.count += 1;
        self.count
    }

    /// Sends the requests of several tasks at the same moment.
    fn batch(&mut self) {
        let mut asked = Vec::new();
        let mut commands = Vec::new();
        for _ in 0..self.random.random_range(1..5) {
            let agent = *AGENTS.choose(&mut self.random).unwrap();
            let key = format!("agent:{agent}:k{}", self.random.random_range(0..KEYS));
            let step = match self.random.random_range(0..8) {
                0 => RowOperation::Delete,
                1 => RowOperation::ClearX,
                2 | 3 => RowOperation::SetX(self.number()),
                _ => RowOperation::SetN(self.number()),
            };
            let (target, parsed) = (self.target(agent), rules().canonical(&key).unwrap());
            let durability = match step {
                RowOperation::SetN(_) | RowOperation::SetX(_) if self.random.random_bool(0.4) => {
                    LineDurability::Written
                }
                _ => LineDurability::Synced,
            };
            if matches!(step, RowOperation::Delete) {
                let (reply, answer) = oneshot::channel();
                commands.push(WriterCommand::Delete { target, key: parsed, reply });
                asked.push((key, step, durability, Answered::Deleted(answer)));
            } else {
                let (reply, answer) = oneshot::channel();
                let change = step.change();
                commands.push(WriterCommand::Update { target, key: parsed, change, durability, reply });
                asked.push((key, step, durability, Answered::Updated(answer)));
            }
        }
        self.send(commands);
        let mut synced = Vec::new();
        for (key, step, durability, answer) in asked {
            let answer = answer.get();
            self.disk.note(format!("{key} {step:?} {durability:?}: {answer:?}"));
            if durability == LineDurability::Synced && answer.is_some() {
                synced.push(agent_of(&key).to_owned());
            }
            self.known.entry(key).or_default().on_answer(step, durability, answer);
        }
        for (key, known) in &mut self.known {
            if !self.has_faults && synced.iter().any(|agent| agent == agent_of(key)) {
                known.unsynced.clear();
            }
        }
    }

    fn send(&mut self, commands: Vec<WriterCommand>) {
        let mut commands = commands.into_iter();
        if let Some(first) = commands.next() {
            self.writer.on_batch(first, || commands.next());
        }
    }

    /// Asserts that memory has the acknowledged state, whatever was refused.
    fn look(&mut self) {
        let keys: Vec<String> = self.known.keys().cloned().collect();
        for key in keys {
            let target = self.target(agent_of(&key));
            let found: Arc<parking_lot::Mutex<Option<RowState>>> = Arc::default();
            let slot = Arc::clone(&found);
            let change: Change = Box::new(move |edit| {
                let row = serde_json::to_value(&*edit.entry).unwrap();
                *slot.lock() = Some((!edit.is_new).then(|| seen(&row)));
                Err(crate::store::Refused("only looking".to_owned()))
            });
            let (reply, _answer) = oneshot::channel();
            let (row, durability) = (rules().canonical(&key).unwrap(), LineDurability::Written);
            self.send(vec![WriterCommand::Update { target, key: row, change, durability, reply }]);
            // Nothing when the disk did not let the store see whether the file was changed.
            if let Some(state) = *found.lock() {
                assert_eq!(state, self.known[&key].acknowledged, "{key} in memory");
            }
        }
    }

    /// Changes the file as an OpenClaw command does: under its lock, reading it first, replacing it
    /// as a whole.
    fn someone_else(&mut self) {
        let agent = *AGENTS.choose(&mut self.random).unwrap();
        let path = self.path(agent);
        let (Some(dir), Some(text)) = (path.parent(), self.disk.peek(&path)) else { return };
        if self.disk.names(dir).contains(&"sessions.json.lock".to_owned()) {
            return;
        }
        let mut rows: serde_json::Map<String, Value> = serde_json::from_slice(&text).unwrap();
        let number = self.number();
        let own = format!("agent:{agent}:other{}", self.random.random_range(0..2));
        let ours = format!("agent:{agent}:k{}", self.random.random_range(0..KEYS));
        let known = self.known.get_mut(&ours).filter(|known| !known.was_deleted);
        match (self.random.random_range(0..5), known, rows.get_mut(&ours)) {
            (0, Some(known), Some(row)) => {
                row["f"] = json!(number);
                let older = known.perhaps.iter_mut().chain(&mut known.unsynced);
                let states = older.chain([&mut known.acknowledged]);
                states.flatten().for_each(|state| state.f = Some(number));
            }
            (1, Some(known), Some(_)) => {
                rows.shift_remove(&ours);
                // A crash may bring the rows of a segment back that could not be removed after the
                // file held it.
                let made = format!("\"key\":\"{ours}\",\"new\":true");
                let mut texts = segments(&self.disk, dir);
                let old = known.acknowledged.take();
                // And without what only someone else had written into them.
                let bare = old.map(|state| SeenRow { f: None, ..state });
                known.perhaps =
                    if texts.any(|text| text.contains(&made)) { vec![old, bare] } else { Vec::new() };
            }
            // A turn of its own, later than all of ours, or in a conversation of its own: the row counts whole.
            (2, Some(known), Some(row)) => {
                row["f"] = json!(number);
                if number % 2 == 0 {
                    row["updatedAt"] = json!(row["updatedAt"].as_i64().unwrap().max(now_ms()) + 1);
                } else {
                    row["sessionId"] = json!(format!("theirs-{number}"));
                }
                (known.acknowledged, known.perhaps) = (Some(seen(row)), Vec::new());
                known.unsynced.clear();
            }
            (3, ..) => {
                rows.shift_remove(&own);
                self.others.remove(&own);
            }
            _ => {
                rows.insert(own.clone(), json!({"sessionId": "s", "updatedAt": 1, "f": number}));
                self.others.insert(own, number);
            }
        }
        self.disk.put(&path, serde_json::to_string_pretty(&rows).unwrap().as_bytes());
    }

    /// Checks that after a flush that succeeded the files hold it all.
    fn flushed(&self) {
        for agent in AGENTS {
            let path = self.path(agent);
            let rows: BTreeMap<String, Value> = self
                .disk
                .peek(&path)
                .map_or_else(BTreeMap::new, |text| serde_json::from_slice(&text).unwrap());
            for (key, known) in self.known.iter().filter(|(key, _)| agent_of(key) == agent) {
                assert_eq!(rows.get(key).map(seen), known.acknowledged, "{key} after a flush");
            }
        }
    }
}

enum Answered {
    Updated(oneshot::Receiver<Result<Row, StoreError>>),
    Deleted(oneshot::Receiver<Result<Option<Row>, StoreError>>),
}

impl Answered {
    /// State of the row now, or `None` when the store refused.
    fn get(self) -> Option<RowState> {
        match self {
            Self::Updated(mut answer) => answer.try_recv().unwrap().ok().map(|row| Some(seen_row(&row))),
            Self::Deleted(mut answer) => answer.try_recv().unwrap().ok().map(|_| None),
        }
    }
}

fn agent_of(key: &str) -> &str {
    key.split(':').nth(1).unwrap()
}

fn segments<'a>(disk: &'a FaultyDisk, dir: &'a Path) -> impl Iterator<Item = String> + 'a {
    let names = disk.names(dir).into_iter().filter(|name| name.contains(".journal."));
    names.map(|name| String::from_utf8_lossy(&disk.peek(&dir.join(name)).unwrap()).into_owned())
}

fn live(world: &Rc<RefCell<World>>) {
    for _ in 0..STEPS {
        if world.borrow().disk.is_off() {
            return;
        }
        let choice = world.borrow_mut().random.random_range(0..10);
        match choice {
            0..=4 => world.borrow_mut().batch(),
            5 => world.borrow_mut().look(),
            6 | 7 => world.borrow_mut().someone_else(),
            8 => write_files(world),
            _ => flush(world),
        }
    }
}

/// Runs the helper threads' jobs, with requests that come in meanwhile.
fn write_files(world: &Rc<RefCell<World>>) {
    let much_later = Instant::now() + Duration::from_secs(100_000);
    let jobs = world.borrow_mut().writer.due_snapshots(much_later);
    for job in jobs {
        let busy = Rc::clone(world);
        let meanwhile = move || {
            let mut world = busy.borrow_mut();
            if world.random.random_range(0..6) == 0 {
                world.batch();
            }
        };
        let finished = with_meanwhile(meanwhile, || job.run());
        world.borrow_mut().writer.on_finished(finished);
    }
}

fn flush(world: &Rc<RefCell<World>>) {
    let (reply, mut answer) = oneshot::channel();
    world.borrow_mut().send(vec![WriterCommand::Flush { then_close: false, reply }]);
    for _ in 0..20 {
        world.borrow_mut().writer.answer_flushes(Instant::now());
        match answer.try_recv() {
            Ok(Ok(())) => return world.borrow().flushed(),
            Ok(Err(_)) => return,
            Err(_) => write_files(world),
        }
    }
    panic!("a flush that does not end");
}

/// Opens the remains, compares them with the known state, and goes on from there.
fn recover(world: World, end: End) -> World {
    let World { mut random, disk, options, writer, mut known, others, count, .. } = world;
    disk.end_after(0);
    drop(writer);
    let disk = disk.after(end);
    disk.note(format!("after the end of the {end:?}"));
    let mut options = options;
    options.disk = Arc::new(disk.clone());
    for agent in AGENTS {
        if let Some(text) = disk.peek(&options.layout.store_path(&AgentId::normalize(agent))) {
            serde_json::from_slice::<serde_json::Map<String, Value>>(&text).unwrap();
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let found = runtime.block_on(reopen(&options));
    for (key, known) in &mut known {
        let now = found.get(key).copied();
        let fits = now == known.acknowledged
            || known.perhaps.contains(&now)
            || (end == End::Machine && known.unsynced.contains(&now));
        assert!(fits, "{key} is {now:?}, expected {known:?}");
        known.acknowledged = now;
        known.perhaps.clear();
        known.unsynced.clear();
    }
    for (key, state) in &found {
        let foreign = others.get(key).map(|f| SeenRow { f: Some(*f), ..SeenRow::default() });
        assert!(known.contains_key(key) || foreign == Some(*state), "{key} is {state:?}");
    }
    for key in others.keys() {
        assert!(found.contains_key(key), "{key} is gone");
    }
    if random.random_range(0..4) == 0 {
        let again = runtime.block_on(reopen(&options));
        assert_eq!(again, found, "opened and closed once more");
    }
    for agent in AGENTS {
        let path = options.layout.store_path(&AgentId::normalize(agent));
        let names = disk.names(path.parent().unwrap());
        assert!(names.is_empty() || names == ["sessions.json"], "left behind: {names:?}");
    }
    let writer = StoreWriter::new(options.clone(), Arc::default());
    World { random, disk, options, writer, known, others, count, has_faults: false }
}

/// All rows, after a life of a store on a good disk.
async fn reopen(options: &FileStoreOptions) -> BTreeMap<String, SeenRow> {
    let store = FileStore::open(options.clone()).unwrap();
    let rows = store.rows(crate::store::Rows::All).await.unwrap();
    let found = rows.iter().map(|row| (row.key.to_string(), seen_row(row))).collect();
    store.close().await.unwrap();
    found
}

/// Tells how a failure came about.
struct FailureReport {
    seed: u64,
    disk: FaultyDisk,
}

impl Drop for FailureReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}\nOPENCLAW_CRASH_SEED={}", self.disk.log(), self.seed);
        }
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    let _told = FailureReport { seed, disk: world.disk.clone() };
    for _ in 0..LIVES {
        let end = if world.random.random_bool(0.5) { End::Process } else { End::Machine };
        // Some lives without faults, some that end in the middle of an early operation, some that are long.
        let one_in = [0, 0, 60, 15][world.random.random_range(0..4)];
        world.has_faults = one_in > 0;
        world.disk.fail_one_in(one_in);
        world.disk.end_after(1 << world.random.random_range(0..10));
        let shared = Rc::new(RefCell::new(world));
        live(&shared);
        world = Rc::into_inner(shared).unwrap().into_inner();
        world = recover(world, end);
    }
}

#[test]
fn what_was_acknowledged_survives_every_fault_and_every_end() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("OPENCLAW_CRASH_SEED") {
        Some(seed) => run(seed),
        None => {
            let runs = number("OPENCLAW_CRASH_RUNS").unwrap_or(RUNS);
            std::thread::scope(|scope| {
                for first in 0..THREADS {
                    scope.spawn(move || (first..runs).step_by(THREADS as usize).for_each(run));
                }
            });
        }
    }
}

/// Lives that lost something once: an update that changed nothing was acknowledged behind a refused one, which came up again
/// (5940, 19702); a row that someone removed and that was made again got back what the journal had of the old one (4367).
#[test]
fn lives_that_once_lost_something_do_not() {
    [4367, 5940, 19702].into_iter().for_each(run);
}
