//! A compiled schema object.

use std::sync::OnceLock;

use regex::Regex;
use serde_json::{Number, Value};

use super::Dialect;

/// Compiled schema object: its keywords, in the order in which they are checked.
#[derive(Debug, Clone, Default)]
pub struct Rule(pub(super) Vec<Keyword>);

/// Keyword of a schema with its value.
#[derive(Debug, Clone)]
pub(super) enum Keyword {
    /// The schema `false`.
    Never,
    Reference(String),
    Types(Vec<Type>),
    NumberLimit(NumberLimit, Number),
    LengthLimit(LengthLimit, u64),
    Pattern(Pattern),
    Constant(Box<Value>),
    Choices(Vec<Value>),
    Not(Box<Rule>),
    AnyOf(Vec<Rule>),
    OneOf(Vec<Rule>),
    AllOf(Vec<Rule>),
    UniqueItems,
    Items(Box<Rule>),
    Object(Box<ObjectRule>),
}

/// Keywords about the keys of an object, which are checked together.
#[derive(Debug, Clone, Default)]
pub(super) struct ObjectRule {
    pub(super) required: Vec<String>,
    pub(super) properties: Vec<(String, Rule)>,
    pub(super) additional: Additional,
    /// Pattern of every key.
    pub(super) names: Option<Pattern>,
}

/// Rule for keys outside `properties`.
#[derive(Debug, Clone, Default)]
pub(super) enum Additional {
    #[default]
    Allowed,
    Forbidden,
    Checked(Rule),
}

/// Limit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberLimit {
    /// `maximum`.
    Maximum,
    /// `minimum`.
    Minimum,
    /// `exclusiveMaximum`.
    ExclusiveMaximum,
    /// `exclusiveMinimum`.
    ExclusiveMinimum,
    /// `multipleOf`.
    MultipleOf,
}

impl NumberLimit {
    pub(super) fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Maximum => value <= bound,
            Self::Minimum => value >= bound,
            Self::ExclusiveMaximum => value < bound,
            Self::ExclusiveMinimum => value > bound,
            Self::MultipleOf => (value / bound).fract() == 0.0,
        }
    }
}

/// Limit of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthLimit {
    /// `maxLength`.
    MaxLength,
    /// `minLength`.
    MinLength,
    /// `maxItems`.
    MaxItems,
    /// `minItems`.
    MinItems,
    /// `maxProperties`.
    MaxProperties,
    /// `minProperties`.
    MinProperties,
}

impl LengthLimit {
    /// True if the limit is an upper one.
    pub fn is_most(self) -> bool {
        matches!(self, Self::MaxLength | Self::MaxItems | Self::MaxProperties)
    }
}

/// Regular expression, compiled when it is first needed. One that can't be compiled matches
/// everything.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), regex: OnceLock::new() }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let regex = self.regex.get_or_init(|| Regex::new(&self.text).ok());
        regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

/// The types of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `null`.
    Null,
    /// `true` and `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// Text.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl Type {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Null, "null"),
        (Self::Boolean, "boolean"),
        (Self::Integer, "integer"),
        (Self::Number, "number"),
        (Self::String, "string"),
        (Self::Array, "array"),
        (Self::Object, "object"),
    ];

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, text)| *text == name).map(|(kind, _)| *kind)
    }

    /// Name in a schema.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, text)| text)
    }

    /// True if a value is of this type. For AJV a number without fraction is an integer however it
    /// is spelled.
    pub(super) fn admits(self, value: &Value, dialect: Dialect) -> bool {
        match (self, value) {
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            (Self::Integer, Value::Number(n)) => {
                let is_whole = |f: f64| f.is_finite() && f.fract() == 0.0;
                n.is_i64() || n.is_u64() || dialect == Dialect::Ajv && n.as_f64().is_some_and(is_whole)
            }
            _ => false,
        }
    }
}

impl Rule {
    fn find<'a, T>(&'a self, pick: impl Fn(&'a Keyword) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(pick)
    }

    /// Types that a value may have. Empty if any may.
    pub fn types(&self) -> &[Type] {
        let types = self.find(|keyword| match keyword {
            Keyword::Types(types) => Some(types.as_slice()),
            _ => None,
        });
        types.unwrap_or_default()
    }

    /// The only value allowed, if there is one.
    pub fn constant(&self) -> Option<&Value> {
        self.find(|keyword| match keyword {
            Keyword::Constant(value) => Some(&**value),
            _ => None,
        })
    }

    /// The values allowed, if they are listed.
    pub fn choices(&self) -> Option<&[Value]> {
        self.find(|keyword| match keyword {
            Keyword::Choices(values) => Some(values.as_slice()),
            _ => None,
        })
    }

    /// Members of `anyOf`, or else of `oneOf`.
    pub fn branches(&self) -> &[Self] {
        let any = self.find(|keyword| match keyword {
            Keyword::AnyOf(branches) => Some(branches.as_slice()),
            _ => None,
        });
        let one = || {
            self.find(|keyword| match keyword {
                Keyword::OneOf(branches) => Some(branches.as_slice()),
                _ => None,
            })
        };
        any.or_else(one).unwrap_or_default()
    }

    /// Rules of the named keys, in the schema's order.
    pub fn properties(&self) -> &[(String, Self)] {
        self.object().map_or(&[], |object| &object.properties)
    }

    /// Rule of a named key.
    pub fn property(&self, name: &str) -> Option<&Self> {
        self.object()?.property(name)
    }

    pub(super) fn object(&self) -> Option<&ObjectRule> {
        self.find(|keyword| match keyword {
            Keyword::Object(object) => Some(&**object),
            _ => None,
        })
    }

    pub(super) fn items(&self) -> Option<&Self> {
        self.find(|keyword| match keyword {
            Keyword::Items(each) => Some(&**each),
            _ => None,
        })
    }

    pub(super) fn reference(&self) -> Option<&str> {
        self.find(|keyword| match keyword {
            Keyword::Reference(key) => Some(key.as_str()),
            _ => None,
        })
    }

    pub(super) fn all_of(&self) -> &[Self] {
        let parts = self.find(|keyword| match keyword {
            Keyword::AllOf(parts) => Some(parts.as_slice()),
            _ => None,
        });
        parts.unwrap_or_default()
    }
}

impl ObjectRule {
    pub(super) fn property(&self, name: &str) -> Option<&Rule> {
        self.properties.iter().find(|(property, _)| property == name).map(|(_, rule)| rule)
    }
}
