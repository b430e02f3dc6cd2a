//! The keys that a type reads, asked of its own `Deserialize`.
//!
//! The table of keys that are acted on is generated with this, see `support`. The product itself does not call it.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::NOT_ACTED_ON;
use crate::check::schema::accepted;

/// Name for any key of a map and any entry of a list.
const ANY: &str = "*";

/// Returns the keys that a type reads of the section at `root`, as paths with `*` for any name or
/// entry. Only keys that a file may have are among them, and none of [`NOT_ACTED_ON`]. Where
/// everything below a key is read, the key stands for it.
///
/// Keys of a type that is flattened into another are not found: serde does not tell them.
pub fn keys_of<T: DeserializeOwned>(root: &str) -> BTreeSet<String> {
    let root: Vec<String> = root.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let mut search = KeySearch { schema: accepted(|_| true), root, found: BTreeSet::new() };
    search.explore::<T>(&mut Vec::new());
    search.found
}

/// Returns a table of keys, one a line, without those that another one covers.
pub fn lines(keys: impl IntoIterator<Item = String>) -> String {
    let keys: BTreeSet<String> = keys.into_iter().filter(|key| !is_of_account(key)).collect();
    let is_covered = |key: &&String| keys.iter().any(|other| is_below(key, other));
    keys.iter().filter(|key| !is_covered(key)).map(|key| format!("{key}\n")).collect()
}

fn is_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

/// True for a key of an account, which is one of its channel too.
fn is_of_account(key: &str) -> bool {
    key.starts_with("channels.") && key.split('.').nth(2) == Some("accounts")
}

struct KeySearch {
    schema: Value,
    root: Vec<String>,
    found: BTreeSet<String>,
}

impl KeySearch {
    /// Looks below a path. Returns true if everything that a file may have there is read.
    fn explore<T: DeserializeOwned>(&mut self, path: &mut Vec<String>) -> bool {
        let below = match probe::<T>(path) {
            KeyForm::Buffered => return false,
            KeyForm::Plain => Vec::new(),
            KeyForm::Keys(keys) => keys,
            KeyForm::Many => vec![ANY.to_owned()],
            KeyForm::Open => self.names(path),
        };
        let known: Vec<String> = below.into_iter().filter(|key| self.is_known(&joined(path, key))).collect();
        let mut is_whole = self.names(path).iter().all(|name| known.contains(name));
        for key in &known {
            path.push(key.clone());
            is_whole &= !self.is_left_out(path) && self.explore::<T>(path);
            path.pop();
        }
        if known.is_empty() || is_whole {
            let whole = self.dotted(path);
            self.found.retain(|key| !is_below(key, &whole));
            self.found.insert(whole);
        }
        known.is_empty() || is_whole
    }

    fn dotted(&self, path: &[String]) -> String {
        self.root.iter().chain(path).map(String::as_str).collect::<Vec<_>>().join(".")
    }

    fn is_left_out(&self, path: &[String]) -> bool {
        let key = self.dotted(path);
        NOT_ACTED_ON.iter().any(|(left_out, _)| key == *left_out)
    }

    /// The schemas at a path, one for each member of a union.
    fn schemas(&self, path: &[String]) -> Vec<&Value> {
        let mut nodes = members(&self.schema);
        for part in self.root.iter().chain(path) {
            nodes = nodes.into_iter().flat_map(|node| children(node, part)).flat_map(members).collect();
        }
        nodes
    }

    fn is_known(&self, path: &[String]) -> bool {
        !self.schemas(path).is_empty()
    }

    /// Keys that a file may have below a path, with [`ANY`] where others may be.
    fn names(&self, path: &[String]) -> Vec<String> {
        let of_node = |node: &Value| -> Vec<String> {
            let properties = node.get("properties").and_then(Value::as_object);
            let named = properties.into_iter().flat_map(|properties| properties.keys().cloned());
            named.chain(others(node).next().map(|_| ANY.to_owned())).collect()
        };
        self.schemas(path).into_iter().flat_map(of_node).collect()
    }
}

fn joined(path: &[String], key: &str) -> Vec<String> {
    path.iter().cloned().chain([key.to_owned()]).collect()
}

fn members(schema: &Value) -> Vec<&Value> {
    let union = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
    union.map_or_else(|| vec![schema], |members| members.iter().flat_map(self::members).collect())
}

/// The schemas of a key. A map reads the named keys too.
fn children<'a>(schema: &'a Value, part: &str) -> Vec<&'a Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if part != ANY {
        return properties.and_then(|properties| properties.get(part)).into_iter().collect();
    }
    let named = properties.into_iter().flat_map(|properties| properties.values());
    others(schema).chain(named).collect()
}

/// The schemas of entries and of keys without a name.
fn others(schema: &Value) -> impl Iterator<Item = &Value> {
    let found = ["additionalProperties", "items"].into_iter().filter_map(|keyword| schema.get(keyword));
    found.filter(|schema| schema.is_object())
}

/// Form in which a type reads the value at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyForm {
    /// One value, or one in several forms.
    Plain,
    /// An object with these keys.
    Keys(Vec<String>),
    /// A list, or an object with any keys.
    Many,
    /// An object whose other keys go to a flattened type.
    Open,
    /// Kept for a flattened type, which may read it or not.
    Buffered,
}

/// Reads a document that has nothing but this path, and notes what is read at its end.
fn probe<T: DeserializeOwned>(path: &[String]) -> KeyForm {
    let found = RefCell::new(KeyForm::Plain);
    // It always fails: there is no value at the end.
    let _ = T::deserialize(PathProbe { path, found: &found });
    found.into_inner()
}

#[derive(Clone, Copy)]
struct PathProbe<'p> {
    path: &'p [String],
    found: &'p RefCell<KeyForm>,
}

impl PathProbe<'_> {
    fn note<V>(&self, node: KeyForm) -> Result<V, PathEnd> {
        self.found.replace(node);
        Err(PathEnd)
    }
}

/// The end of the path.
#[derive(Debug)]
struct PathEnd;

impl fmt::Display for PathEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path ends")
    }
}

impl std::error::Error for PathEnd {}

impl serde::de::Error for PathEnd {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'de> Deserializer<'de> for PathProbe<'_> {
    type Error = PathEnd;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PathEnd> {
        self.note(KeyForm::Plain)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PathEnd> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, PathEnd> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PathEnd> {
        match self.path {
            [] => self.note(KeyForm::Many),
            [_, rest @ ..] => visitor.visit_seq(Inside { key: ANY, probe: PathProbe { path: rest, ..self } }),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PathEnd> {
        let (key, rest) =
            self.path.split_first().map_or((ANY, self.path), |(key, rest)| (key.as_str(), rest));
        if self.path.is_empty() {
            self.found.replace(KeyForm::Many);
            return visitor.visit_map(FirstKey(self.found));
        }
        visitor.visit_map(Inside { key, probe: PathProbe { path: rest, ..self } })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PathEnd> {
        match self.path {
            [] => self.note(KeyForm::Keys(fields.iter().map(|field| (*field).to_owned()).collect())),
            [key, rest @ ..] => visitor.visit_map(Inside { key, probe: PathProbe { path: rest, ..self } }),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct enum identifier ignored_any
    }
}

/// The one entry of an object or list.
struct Inside<'p> {
    key: &'p str,
    probe: PathProbe<'p>,
}

impl<'de> MapAccess<'de> for Inside<'_> {
    type Error = PathEnd;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, PathEnd> {
        seed.deserialize(StrDeserializer::new(self.key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, PathEnd> {
        // Serde keeps the values for a flattened type in a type of its own.
        if type_name::<S>().contains("::Content") {
            return self.probe.note(KeyForm::Buffered);
        }
        seed.deserialize(self.probe)
    }
}

impl<'de> SeqAccess<'de> for Inside<'_> {
    type Error = PathEnd;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, PathEnd> {
        seed.deserialize(self.probe).map(Some)
    }
}

/// Finds out whether keys are those of a struct.
struct FirstKey<'p>(&'p RefCell<KeyForm>);

impl<'de> MapAccess<'de> for FirstKey<'_> {
    type Error = PathEnd;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, PathEnd> {
        seed.deserialize(KeyProbe(self.0)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, _: S) -> Result<S::Value, PathEnd> {
        Err(PathEnd)
    }
}

struct KeyProbe<'p>(&'p RefCell<KeyForm>);

impl<'de> Deserializer<'de> for KeyProbe<'_> {
    type Error = PathEnd;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PathEnd> {
        Err(PathEnd)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PathEnd> {
        self.0.replace(KeyForm::Open);
        Err(PathEnd)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        tuple tuple_struct enum ignored_any option newtype_struct seq map struct
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its keys are looked at")]
    struct Section {
        main_key: String,
        /// Not a key that a file may have.
        colour: Option<String>,
        #[serde(rename = "store")]
        file: Option<String>,
        #[serde(skip)]
        document: Value,
        reset_triggers: Vec<String>,
        identity_links: BTreeMap<String, Vec<String>>,
        reset_by_channel: BTreeMap<String, Option<Reset>>,
        /// Read in several forms.
        maintenance: Value,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its keys are looked at")]
    struct Reset {
        at_hour: u8,
        #[serde(flatten)]
        rest: Rest,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its keys are looked at")]
    struct Rest {
        idle_minutes: u8,
    }

    #[test]
    fn the_keys_of_a_type_are_those_that_serde_reads() {
        let keys =
            keys_of::<Section>("session").into_iter().chain(keys_of::<Rest>("session.resetByChannel.*"));
        let expect = [
            "session.identityLinks",
            "session.mainKey",
            "session.maintenance",
            "session.resetByChannel.*.atHour",
            "session.resetByChannel.*.idleMinutes",
            "session.resetTriggers",
            "session.store",
        ];
        assert_eq!(lines(keys).lines().collect::<Vec<_>>(), expect);
    }

    #[test]
    fn a_table_has_no_key_twice() {
        let keys = ["a", "a.b", "ab", "channels.x.token", "channels.x.accounts.*.token"];
        assert_eq!(lines(keys.map(str::to_owned)), "a\nab\nchannels.x.token\n");
    }
}
