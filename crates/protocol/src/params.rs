//! Params and results, one type each per method, by family (spec `gateway-protocol.md` §6), and the
//! reading of params.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::ErrorShape;
use crate::json_schema::schema_of;
use crate::schema::{Schema, whole_numbers};

pub mod agent;
pub mod agents;
pub mod approvals;
pub mod channels;
pub mod chat;
pub mod config;
pub mod connect;
pub mod health;
pub mod heartbeat;
pub mod logs;
pub mod memory;
pub mod models;
pub mod sessions;
pub mod skills;
pub mod status;
pub mod system;
pub mod usage;

/// Treatment of params that a method does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Params must match the schema; unknown keys are refused.
    Strict,
    /// Unknown keys and values of wrong types are ignored.
    Loose,
}

/// A method this version has: its name and its types. Implemented by one empty type a method.
pub trait Call {
    /// The name on the wire.
    const NAME: &'static str;
    /// Treatment of unknown params.
    const STRICTNESS: Strictness;
    /// Params that the client sends.
    type Params: Serialize + DeserializeOwned + JsonSchema;
    /// Result that it gets.
    type Output: Serialize + DeserializeOwned + JsonSchema;

    /// The compiled schema of [`Self::Params`].
    fn schema() -> &'static Schema;

    /// Checks and reads params; absent ones read as `{}`.
    ///
    /// # Errors
    /// `invalid <method> params: …` with every violation (spec §2.2).
    fn read(params: Option<Value>) -> Result<Self::Params, ErrorShape> {
        let value = params.unwrap_or_else(|| Value::Object(Map::new()));
        if Self::STRICTNESS == Strictness::Strict {
            let violations = Self::schema().validate(&value);
            if !violations.is_empty() {
                return Err(ErrorShape::invalid_params(Self::NAME, &violations.text()));
            }
        }
        Self::decode(value)
    }

    /// Reads params that were checked by [`crate::method::Method::check`].
    ///
    /// # Errors
    /// `invalid <method> params: …` for what the schema lets through and no type can hold, such as an integer of 1e300.
    fn decode(mut value: Value) -> Result<Self::Params, ErrorShape> {
        if Self::STRICTNESS == Strictness::Loose && !value.is_object() {
            value = Value::Object(Map::new());
        }
        whole_numbers(&mut value);
        serde_json::from_value(value)
            .map_err(|error| ErrorShape::invalid_params(Self::NAME, &in_plain_words(&error)))
    }
}

/// The names that serde gives to whole numbers, and what a client can make of them.
const WHOLE_NUMBERS: [(&str, &str); 5] = [
    ("u64", "a whole number from 0 to 18446744073709551615"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u16", "a whole number from 0 to 65535"),
    ("i64", "a whole number from -9223372036854775808 to 9223372036854775807"),
    ("i32", "a whole number from -2147483648 to 2147483647"),
];

/// Description of an error for a value that no type can hold, without the names of our types.
fn in_plain_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let fault = WHOLE_NUMBERS.iter().find_map(|(name, words)| {
        let found = text.strip_suffix(name)?.strip_suffix(", expected ")?;
        // Serde puts the value between backticks.
        Some(format!("{} must be {words}", found.split('`').nth(1)?))
    });
    fault.unwrap_or(text)
}

/// Declares the empty types of a family's methods.
macro_rules! calls {
    ($($(#[$doc:meta])* $kind:ident: $name:literal as $strictness:ident, $params:ty => $output:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub enum $kind {}

        impl $crate::params::Call for $kind {
            const NAME: &'static str = $name;
            const STRICTNESS: $crate::params::Strictness = $crate::params::Strictness::$strictness;
            type Params = $params;
            type Output = $output;

            fn schema() -> &'static $crate::schema::Schema {
                static SCHEMA: $crate::params::Compiled = $crate::params::compiled::<$params>();
                &SCHEMA
            }
        }
    )+};
}
pub(crate) use calls;

/// A schema that is compiled when it is first needed.
pub(crate) type Compiled = LazyLock<Schema>;

pub(crate) const fn compiled<P: JsonSchema>() -> Compiled {
    LazyLock::new(|| Schema::compile(&schema_of::<P>()))
}

/// Params of a method that takes none: `{}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Params of a method that ignores what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Ignored {}

/// A field of a patch: absent leaves it, `null` clears it, a value sets it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// The field was absent.
    #[default]
    Keep,
    /// The field was `null`.
    Clear,
    /// The field had a value.
    Set(T),
}

impl<T> Change<T> {
    /// True if the field was absent.
    pub const fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

impl<T: Serialize> Serialize for Change<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keep | Self::Clear => serializer.serialize_none(),
            Self::Set(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

impl<T: JsonSchema> JsonSchema for Change<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Change_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let inner = generator.subschema_for::<T>();
        schemars::json_schema!({ (crate::json_schema::CLEARS): true, "anyOf": [inner, {"type": "null"}] })
    }
}

/// Text of at least one character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct NonEmpty(#[schemars(length(min = 1))] pub String);

/// Identifies a message; every event of its run carries it, so it is short: 1 to 256 characters (the bound is ours).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct IdempotencyKey(#[schemars(length(min = 1, max = 256))] pub String);

/// A label of a session: 1 to 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Label(#[schemars(length(min = 1, max = 64))] pub String);

/// Reads a value of the wrong type as absent, for methods that ignore what they can't use.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}
