//! Access by pairing code (spec `channels.md` §2.2): `<channel>-pairing.json` and
//! `<channel>-allowFrom.json` in the credentials directory, as OpenClaw has them; files of an
//! account besides `default` have its name in theirs. All of it blocks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use openclaw_config::private_file::{self, Durability};
use openclaw_sessions::time::{iso, now_ms, parse_iso};
use rand::Rng as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Channel;

mod look;

pub use look::PairingLook;

/// Characters of a code: none that looks like another.
const ALPHABET: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const CODE_LENGTH: usize = 8;
/// Tries to find a code that nobody has.
const CODE_TRIES: usize = 500;
/// Lifetime of a request.
const TTL_MS: i64 = 60 * 60 * 1000;
/// Interval in which a repeated request of the same person is not recorded again.
const SEEN_MS: i64 = 60_000;
/// Requests of an account that wait.
const MAX_PENDING: usize = 3;
/// Waiting for a lock: number of attempts, first pause and longest pause.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(100);
const LOCK_LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A lock of that age was left behind.
const LOCK_STALE: Duration = Duration::from_secs(30);
/// Number of attempts to read a list that can't be read, and the pause between them.
const READ_TRIES: u32 = 5;
const READ_PAUSE: Duration = Duration::from_millis(50);
/// Account whose files have no account in their name.
const DEFAULT_ACCOUNT: &str = "default";

/// Pending request of a person to be let in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairingRequest {
    /// The platform's id of the person.
    pub id: String,
    /// Code that the person was told.
    pub code: String,
    /// ISO 8601.
    pub created_at: String,
    /// ISO 8601.
    pub last_seen_at: String,
    /// Known data of the person, such as `username`; texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
}

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// The request is new: the person is told this code.
    New(String),
    /// The person was told this code before.
    Known(String),
    /// Too many wait: nobody is told anything.
    Full,
}

/// The files of one account.
#[derive(Debug, Clone)]
pub struct PairingStore {
    requests: PathBuf,
    allowed: PathBuf,
    /// The list of `default`. OpenClaw has this one for all accounts, so that who is in it is let in by each of them.
    shared: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Requests {
    version: u32,
    #[serde(default)]
    requests: Vec<PairingRequest>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Content of the allowlist file in OpenClaw's format: people edit it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Allowed {
    #[serde(default)]
    version: Value,
    #[serde(default, deserialize_with = "ids")]
    allow_from: Vec<String>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Ids, also those that were written as numbers.
fn ids<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let written = Vec::<Value>::deserialize(from)?;
    Ok(written
        .into_iter()
        .filter_map(|id| match id {
            Value::String(id) => Some(id),
            Value::Number(id) => Some(id.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        })
        .collect())
}

/// People who were let in by a code.
#[derive(Debug, Default)]
pub struct Guests {
    /// Entries as written: those of the account, and those of the list for all accounts.
    pub entries: Vec<String>,
    /// Error of reading a list: nobody on it is let in.
    pub unreadable: Option<io::Error>,
}

impl PairingStore {
    /// The store of an account of a channel, in the directory of credentials.
    pub fn new(credentials: &Path, channel: &str, account: &str) -> Self {
        let channel = file_part(channel);
        let name = match file_part(account) {
            account if account == DEFAULT_ACCOUNT || account.is_empty() => channel.clone(),
            account => format!("{channel}-{account}"),
        };
        let allowed = credentials.join(format!("{name}-allowFrom.json"));
        let shared = credentials.join(format!("{channel}-allowFrom.json"));
        let shared = (shared != allowed).then_some(shared);
        Self { requests: credentials.join(format!("{name}-pairing.json")), allowed, shared }
    }

    /// Returns the people who were let in. Waits a moment for a file that an editor is just
    /// writing.
    pub fn guests(&self) -> Guests {
        let mut guests = Guests::default();
        for file in self.lists() {
            match read_whole(file) {
                Ok(list) => {
                    // A code never lets everybody in.
                    let is_new = |entry: &String| entry != "*" && !guests.entries.contains(entry);
                    let new: Vec<String> = list.allow_from.into_iter().filter(is_new).collect();
                    guests.entries.extend(new);
                }
                Err(error) => guests.unreadable = Some(error),
            }
        }
        guests
    }

    /// The lists that count for the account, its own first.
    fn lists(&self) -> impl Iterator<Item = &Path> {
        [Some(self.allowed.as_path()), self.shared.as_deref()].into_iter().flatten()
    }

    /// Notes that somebody asks to be let in.
    ///
    /// # Errors
    /// When the file can't be read, locked or written: nothing was noted.
    pub fn request(&self, id: &str, meta: Map<String, Value>) -> io::Result<Requested> {
        self.request_at(id, meta, now_ms())
    }

    fn request_at(&self, id: &str, meta: Map<String, Value>, now: i64) -> io::Result<Requested> {
        // Strangers cost a look at the file: most of what they say changes nothing.
        if let Some(settled) = self.settled(id, now)? {
            return Ok(settled);
        }
        let _lock = Lock::acquire(&self.requests)?;
        let mut file = read::<Requests>(&self.requests)?.unwrap_or_default();
        prune(&mut file.requests, now);
        let meta = tidy(meta);
        let requested = if let Some(known) = file.requests.iter_mut().find(|request| request.id == id) {
            known.last_seen_at = iso(now);
            known.meta = meta.or(known.meta.take());
            Requested::Known(known.code.clone())
        } else if file.requests.len() >= MAX_PENDING {
            Requested::Full
        } else {
            let code = code(&file.requests).ok_or_else(|| io::Error::other("no code is free"))?;
            let at = iso(now);
            file.requests.push(PairingRequest {
                id: id.to_owned(),
                code: code.clone(),
                created_at: at.clone(),
                last_seen_at: at,
                meta,
            });
            Requested::New(code)
        };
        write(&self.requests, &Requests { version: 1, ..file })?;
        Ok(requested)
    }

    /// Returns the result of a request that does not change the file: the person asked within the
    /// last minute, or there is no room for more requests.
    fn settled(&self, id: &str, now: i64) -> io::Result<Option<Requested>> {
        let mut requests = read::<Requests>(&self.requests)?.unwrap_or_default().requests;
        prune(&mut requests, now);
        Ok(match requests.iter().find(|request| request.id == id) {
            Some(known) => recent(known, now).then(|| Requested::Known(known.code.clone())),
            None => (requests.len() >= MAX_PENDING).then_some(Requested::Full),
        })
    }

    /// Returns the pending requests in the order in which they came.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn pending(&self) -> io::Result<Vec<PairingRequest>> {
        let mut requests = read::<Requests>(&self.requests)?.unwrap_or_default().requests;
        prune(&mut requests, now_ms());
        requests.sort_by(|a, b| a.created_at.cmp(&b.created_at));
        Ok(requests)
    }

    /// Lets in who was told a code. `None`: nobody was, or it is too long ago.
    ///
    /// # Errors
    /// When a file can't be read, locked or written. People who were let in may have to ask again
    /// then.
    pub fn approve(&self, channel: &dyn Channel, code: &str) -> io::Result<Option<PairingRequest>> {
        self.approve_at(channel, code, now_ms())
    }

    fn approve_at(&self, channel: &dyn Channel, code: &str, now: i64) -> io::Result<Option<PairingRequest>> {
        let code = code.trim().to_uppercase();
        let _lock = Lock::acquire(&self.requests)?;
        let mut file = read::<Requests>(&self.requests)?.unwrap_or_default();
        prune(&mut file.requests, now);
        let Some(at) = file.requests.iter().position(|request| request.code == code) else { return Ok(None) };
        let approved = file.requests.remove(at);
        // First the list: a crash in between leaves a request of somebody who is in already.
        self.allow(channel, &approved.id)?;
        write(&self.requests, &Requests { version: 1, ..file })?;
        Ok(Some(approved))
    }

    /// Lets somebody in. `false`: they were in.
    ///
    /// # Errors
    /// As [`Self::approve`].
    pub fn allow(&self, channel: &dyn Channel, id: &str) -> io::Result<bool> {
        let Some(entry) = channel.allow_entry(id).filter(|entry| entry != "*") else { return Ok(false) };
        if self.guests().entries.contains(&entry) {
            return Ok(false);
        }
        edit(&self.allowed, |list| {
            let is_new = !list.contains(&entry);
            if is_new {
                list.push(entry);
            }
            is_new
        })
    }

    /// Lets somebody in no more, by whichever list it was: also by the one for all accounts. `false`: they were not.
    ///
    /// # Errors
    /// As [`Self::approve`].
    pub fn forget(&self, channel: &dyn Channel, id: &str) -> io::Result<bool> {
        let Some(entry) = channel.allow_entry(id) else { return Ok(false) };
        let mut was_in = false;
        for file in self.lists() {
            was_in |= edit(file, |list| {
                let before = list.len();
                list.retain(|known| channel.allow_entry(known).as_ref() != Some(&entry));
                list.len() < before
            })?;
        }
        Ok(was_in)
    }
}

/// Returns true if the person asked within the last minute.
fn recent(request: &PairingRequest, now: i64) -> bool {
    parse_iso(&request.last_seen_at).is_some_and(|at| now - at < SEEN_MS)
}

/// Changes a list. Returns true if it was changed.
fn edit(path: &Path, change: impl FnOnce(&mut Vec<String>) -> bool) -> io::Result<bool> {
    let _lock = Lock::acquire(path)?;
    let mut file = read::<Allowed>(path)?.unwrap_or_default();
    let is_changed = change(&mut file.allow_from);
    if is_changed {
        write(path, &Allowed { version: 1.into(), ..file })?;
    }
    Ok(is_changed)
}

/// A lock as OpenClaw makes it: a directory beside the file.
struct Lock(PathBuf);

impl Lock {
    fn acquire(file: &Path) -> io::Result<Self> {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        if let Some(parent) = path.parent() {
            private_file::make_dir(parent)?;
        }
        let mut pause = LOCK_PAUSE;
        for _ in 0..LOCK_TRIES {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let age = fs::metadata(&path).and_then(|facts| facts.modified());
            let age = age.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_some_and(|age| age > LOCK_STALE) {
                // Another process may be first.
                let _ = fs::remove_dir(&path);
                continue;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LOCK_LONGEST_PAUSE);
        }
        Err(io::Error::other(format!("{} is locked by another program", file.display())))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Left behind, it counts for half a minute.
        let _ = fs::remove_dir(&self.0);
    }
}

/// The list of a file. An editor empties it before it writes it: what can't be read is looked at again.
fn read_whole(path: &Path) -> io::Result<Allowed> {
    let mut tries = READ_TRIES;
    loop {
        match read::<Allowed>(path) {
            Ok(list) => return Ok(list.unwrap_or_default()),
            Err(error) if tries == 0 => return Err(error),
            Err(_) => std::thread::sleep(READ_PAUSE),
        }
        tries -= 1;
    }
}

/// `None`: there is no such file.
fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<Option<T>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let told = |error: serde_json::Error| io::Error::other(format!("{}: {error}", path.display()));
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map(Some).map_err(told)
}

fn write<T: Serialize>(path: &Path, content: &T) -> io::Result<()> {
    let text = serde_json::to_string_pretty(content)? + "\n";
    private_file::replace(path, text.as_bytes(), Durability::Synced)
}

/// Removes expired requests, and of too many those that were seen longest ago.
fn prune(requests: &mut Vec<PairingRequest>, now: i64) {
    requests.retain(|request| parse_iso(&request.created_at).is_some_and(|at| now - at <= TTL_MS));
    if requests.len() > MAX_PENDING {
        requests.sort_by(|a, b| b.last_seen_at.cmp(&a.last_seen_at));
        requests.truncate(MAX_PENDING);
    }
}

fn tidy(meta: Map<String, Value>) -> Option<Map<String, Value>> {
    let texts = meta.into_iter().filter_map(|(key, value)| {
        let text = value.as_str()?.trim().to_owned();
        (!text.is_empty()).then(|| (key, Value::String(text)))
    });
    let tidy: Map<String, Value> = texts.collect();
    (!tidy.is_empty()).then_some(tidy)
}

fn code(taken: &[PairingRequest]) -> Option<String> {
    let mut random = rand::rng();
    let mut draw = || {
        let letters = (0..CODE_LENGTH).filter_map(|_| ALPHABET.get(random.random_range(0..ALPHABET.len())));
        letters.map(|letter| char::from(*letter)).collect::<String>()
    };
    (0..CODE_TRIES).map(|_| draw()).find(|code| taken.iter().all(|request| request.code != *code))
}

fn file_part(name: &str) -> String {
    let lower = name.trim().to_lowercase();
    let plain = lower.replace(['\\', '/', ':', '*', '?', '"', '<', '>', '|'], "_");
    plain.replace("..", "_")
}

/// Returns the message for a person who has to be let in first (spec `channels.md` §2.2).
pub fn reply(channel: &str, id_line: &str, code: &str) -> String {
    format!(
        "OpenClaw: access not configured.\n\n{id_line}\n\nPairing code: {code}\n\n\
         Ask the bot owner to approve with:\nopenclaw pairing approve {channel} <code>"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Numbered;

    const MINUTE: i64 = 60_000;

    /// The table of spec `channels.md` §2.2.
    #[test]
    fn a_code_is_given_once_and_lets_one_in() {
        let dir = tempfile::tempdir().unwrap();
        let store = PairingStore::new(dir.path(), "telegram", "default");
        let start = now_ms();
        let ask = |id: &str, minute: i64| store.request_at(id, Map::new(), start + minute * MINUTE).unwrap();
        let Requested::New(first) = ask("1", 0) else { panic!("it is new") };
        assert_eq!(ask("1", 10), Requested::Known(first.clone()));
        assert_eq!(store.pending().unwrap()[0].last_seen_at, iso(start + 10 * MINUTE));
        assert!(matches!(ask("2", 10), Requested::New(_)) && matches!(ask("3", 10), Requested::New(_)));
        assert_eq!(ask("4", 10), Requested::Full);
        let approved =
            store.approve_at(&Numbered, &format!(" {} ", first.to_lowercase()), start + 30 * MINUTE);
        assert_eq!(approved.unwrap().unwrap().id, "1");
        assert_eq!(store.guests().entries, ["1"]);
        assert_eq!(store.approve_at(&Numbered, &first, start + 30 * MINUTE).unwrap(), None);
        assert!(matches!(ask("1", 61), Requested::New(code) if code != first), "an old one is forgotten");
        assert!(store.forget(&Numbered, "tg:1").unwrap() && store.guests().entries.is_empty());
    }

    #[test]
    fn a_request_is_forgotten_after_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let store = PairingStore::new(dir.path(), "telegram", "default");
        let start = now_ms();
        let ask = |id: &str, minute: i64| store.request_at(id, Map::new(), start + minute * MINUTE).unwrap();
        let Requested::New(first) = ask("1", 0) else { panic!("it is new") };
        assert_eq!(ask("1", 10), Requested::Known(first.clone()));
        assert!(matches!(ask("2", 30), Requested::New(_)) && matches!(ask("3", 30), Requested::New(_)));
        assert_eq!(ask("4", 30), Requested::Full);
        // To ask again does not make it last longer.
        assert_eq!(ask("1", 60), Requested::Known(first.clone()));
        assert!(matches!(ask("1", 61), Requested::New(code) if code != first));
        let (before, at) = (&first, start + 61 * MINUTE);
        assert_eq!(store.approve_at(&Numbered, before, at).unwrap(), None, "its code says nothing any more");
    }

    #[test]
    fn a_request_tells_what_is_known_of_its_sender() {
        let dir = tempfile::tempdir().unwrap();
        let store = PairingStore::new(dir.path(), " Tele/gram..", "default");
        let meta = |value: Value| value.as_object().unwrap().clone();
        let told = meta(json!({"username": " ada ", "name": " ", "age": 5}));
        let Requested::New(code) = store.request("1", told).unwrap() else { panic!("it is new") };
        store.request("1", Map::new()).unwrap();
        let file = dir.path().join("tele_gram_-pairing.json");
        let text = fs::read_to_string(&file).unwrap();
        let kept: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(kept["version"], 1);
        assert_eq!((&kept["requests"][0]["id"], &kept["requests"][0]["code"]), (&json!("1"), &json!(code)));
        assert_eq!(kept["requests"][0]["meta"], json!({"username": "ada"}), "nothing takes it away");
        assert!(text.starts_with("{\n  ") && text.ends_with("}\n"));
        assert!(code.len() == CODE_LENGTH && code.bytes().all(|letter| ALPHABET.contains(&letter)));
    }

    #[test]
    fn files_are_those_of_openclaw_and_accounts_have_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let shared = dir.path().join("telegram-allowFrom.json");
        let kept = |file: &str| -> Value {
            serde_json::from_slice(&fs::read(dir.path().join(file)).unwrap()).unwrap()
        };
        fs::write(&shared, r#"{"version":1,"allowFrom":["7"],"x":1}"#).unwrap();
        let (main, work) = (
            PairingStore::new(dir.path(), "telegram", "default"),
            PairingStore::new(dir.path(), "telegram", "work"),
        );
        assert_eq!((main.guests().entries, work.guests().entries), (names(&["7"]), names(&["7"])));
        assert!(work.allow(&Numbered, "telegram:8").unwrap() && !work.allow(&Numbered, "*").unwrap());
        assert!(!work.allow(&Numbered, "7").unwrap(), "they are in by the list for all");
        assert_eq!((main.guests().entries, work.guests().entries), (names(&["7"]), names(&["8", "7"])));
        assert_eq!(kept("telegram-work-allowFrom.json"), json!({"version": 1, "allowFrom": ["8"]}));
        main.allow(&Numbered, "9").unwrap();
        assert_eq!(kept("telegram-allowFrom.json"), json!({"version": 1, "allowFrom": ["7", "9"], "x": 1}));
        fs::write(&shared, "{oops").unwrap();
        assert!(
            main.guests().unreadable.is_some() && main.guests().entries.is_empty(),
            "nobody of a torn file"
        );
        assert_eq!(work.guests().entries, names(&["8"]), "but those of the other");
        assert!(work.guests().unreadable.is_some() && main.allow(&Numbered, "10").is_err());
        for (written, expect) in [
            (r#"{"allowFrom":[7, "8", null]}"#, ["7", "8"].as_slice()),
            ("\u{feff}{\"version\":1,\"allowFrom\":[\"7\"]}", &["7"]),
            (r#"{"version":"2"}"#, &[]),
            (r#"{"allowFrom":["*", "7"]}"#, &["7"]),
        ] {
            fs::write(&shared, written).unwrap();
            assert_eq!(main.guests().entries, names(expect), "{written}");
            assert!(main.guests().unreadable.is_none(), "{written}");
        }
    }

    /// OpenClaw knows one list for all accounts of a platform: what it changes there counts for those with a list of their own too.
    #[test]
    fn an_account_with_guests_of_its_own_follows_the_list_of_all() {
        let dir = tempfile::tempdir().unwrap();
        let shared = dir.path().join("telegram-allowFrom.json");
        let work = PairingStore::new(dir.path(), "telegram", "work");
        work.allow(&Numbered, "8").unwrap();
        fs::write(&shared, r#"{"version":1,"allowFrom":["7","telegram:77"]}"#).unwrap();
        assert_eq!(work.guests().entries, names(&["8", "7", "telegram:77"]), "let in there");
        fs::write(&shared, r#"{"version":1,"allowFrom":["telegram:77"]}"#).unwrap();
        assert_eq!(work.guests().entries, names(&["8", "telegram:77"]), "put out there");
        assert!(work.forget(&Numbered, "77").unwrap() && !work.forget(&Numbered, "77").unwrap());
        assert_eq!(work.guests().entries, names(&["8"]), "who is put out is in by no list");
    }

    fn names(ids: &[&str]) -> Vec<String> {
        ids.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_reply_says_what_to_do() {
        assert_eq!(
            reply("telegram", "Your Telegram user id: 7", "ABCD2345"),
            "OpenClaw: access not configured.\n\nYour Telegram user id: 7\n\nPairing code: ABCD2345\n\n\
             Ask the bot owner to approve with:\nopenclaw pairing approve telegram <code>"
        );
    }
}
