//! Objects of a user's file: typed fields, unknown ones kept, and all of them written back in the order they were read.

/// Place in a field order that stands for "the next field this version does not know".
pub(crate) const EXTRA: u8 = u8::MAX;

/// Defines a struct of optional typed fields that reads and writes a JSON object without losing anything: fields it does
/// not know, and known ones of a wrong type, live in `extra`; the order of the file is kept.
macro_rules! ordered_object {
    (
        $(#[$meta:meta])*
        pub struct $name:ident : $tag:ident {
            $( $(#[$field_meta:meta])* $field:ident : $ty:ty => $wire:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: Option<$ty>, )*
            /// Fields this version does not know, and known ones of a wrong type, as they stand in the file.
            pub extra: serde_json::Map<String, serde_json::Value>,
            /// Order of the fields in the file. Public only so that `..Default::default()` works everywhere.
            #[doc(hidden)]
            pub order: Vec<u8>,
        }

        #[allow(non_camel_case_types, reason = "one variant a field, named as the field")]
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        enum $tag { $( $field, )* }

        impl $tag {
            const ALL: &'static [Self] = &[ $( Self::$field, )* ];

            fn of(name: &str) -> Option<Self> {
                match name { $( $wire => Some(Self::$field), )* _ => None }
            }

            fn name(self) -> &'static str {
                match self { $( Self::$field => $wire, )* }
            }
        }

        impl $name {
            /// Sets a field by its name in the file; a value of a wrong type is kept as it is. `null` is such a value.
            pub fn set_field(&mut self, name: &str, value: serde_json::Value) {
                use serde::Deserialize as _;
                let typed = match $tag::of(name) {
                    $( Some($tag::$field) => match <$ty>::deserialize(&value) {
                        Ok(typed) => { self.$field = Some(typed); true }
                        Err(_) => { self.$field = None; false }
                    }, )*
                    None => false,
                };
                if typed {
                    self.extra.shift_remove(name);
                } else {
                    self.extra.insert(name.to_owned(), value);
                }
            }

            /// Removes a field by its name in the file.
            pub fn clear_field(&mut self, name: &str) {
                match $tag::of(name) {
                    $( Some($tag::$field) => self.$field = None, )*
                    None => {}
                }
                self.extra.shift_remove(name);
            }

            /// Known fields whose value is of another type than they can have; it is kept and not used.
            pub fn mistyped(&self) -> impl Iterator<Item = &str> {
                self.extra.keys().map(String::as_str).filter(|name| $tag::of(name).is_some())
            }

            /// Difference from `self` to `new`: fields to set and fields to remove, by their names
            /// in the file.
            pub fn changes_to(&self, new: &Self) -> $crate::ordered::FieldChanges {
                let mut changes = $crate::ordered::FieldChanges::default();
                $( if self.$field != new.$field {
                    match &new.$field {
                        Some(value) => changes.put($wire, serde_json::to_value(value).unwrap_or_default()),
                        None => changes.unset.push($wire.to_owned()),
                    }
                } )*
                for (name, value) in &new.extra {
                    if self.extra.get(name) != Some(value) {
                        changes.put(name, value.clone());
                    }
                }
                for name in self.extra.keys().filter(|name| !new.extra.contains_key(*name)) {
                    if !changes.set.contains_key(name) {
                        changes.unset.push(name.clone());
                    }
                }
                changes
            }

            /// Performs changes made by [`Self::changes_to`], perhaps on another version of the object.
            pub fn apply(&mut self, changes: &$crate::ordered::FieldChanges) {
                for name in &changes.unset {
                    self.clear_field(name);
                }
                for (name, value) in &changes.set {
                    self.set_field(name, value.clone());
                }
            }

            /// Drops the untyped remains of fields that have a typed value by now.
            pub fn tidy(&mut self) {
                $( if self.$field.is_some() && !self.extra.is_empty() { self.extra.shift_remove($wire); } )*
            }

            fn write_field<M: serde::ser::SerializeMap>(&self, tag: $tag, map: &mut M) -> Result<(), M::Error> {
                match tag {
                    $( $tag::$field => match &self.$field {
                        Some(value) => map.serialize_entry($wire, value),
                        None => Ok(()),
                    }, )*
                }
            }
        }

        impl PartialEq for $name {
            /// Compares content, not the order of the fields.
            fn eq(&self, other: &Self) -> bool {
                $( self.$field == other.$field && )* self.extra == other.extra
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                let mut extra = self.extra.iter();
                for place in &self.order {
                    match $tag::ALL.get(usize::from(*place)) {
                        Some(tag) => self.write_field(*tag, &mut map)?,
                        None => if let Some((name, value)) = extra.next() { map.serialize_entry(name, value)?; },
                    }
                }
                for tag in $tag::ALL.iter().filter(|tag| !self.order.contains(&(**tag as u8))) {
                    self.write_field(*tag, &mut map)?;
                }
                for (name, value) in extra {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct OrderedVisitor;
                impl<'de> serde::de::Visitor<'de> for OrderedVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut out = $name::default();
                        while let Some(name) = map.next_key::<String>()? {
                            let value = map.next_value::<serde_json::Value>()?;
                            out.set_field(&name, value);
                            let place = match $tag::of(&name) {
                                Some(tag) if !out.extra.contains_key(tag.name()) => tag as u8,
                                Some(_) | None => $crate::ordered::EXTRA,
                            };
                            if place == $crate::ordered::EXTRA || !out.order.contains(&place) {
                                out.order.push(place);
                            }
                        }
                        out.order.shrink_to_fit();
                        Ok(out)
                    }
                }
                deserializer.deserialize_map(OrderedVisitor)
            }
        }
    };
}

pub(crate) use ordered_object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Changes of some fields of an object, by their names in the file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FieldChanges {
    /// Fields that get a value.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Fields that go away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
}

impl FieldChanges {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.unset.is_empty()
    }

    pub(crate) fn put(&mut self, name: &str, value: Value) {
        self.set.insert(name.to_owned(), value);
    }
}

/// A closed set of texts, as stored in a row.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident => $text:literal $(| $alias:literal)*, )* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$variant_meta])* $variant, )* }

        impl $name {
            /// The text in the file and on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text, )* }
            }

            /// Reads the text, trimmed and without regard to case.
            pub fn parse(text: &str) -> Option<Self> {
                match text.trim().to_lowercase().as_str() {
                    $( $text $(| $alias)* => Some(Self::$variant), )*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                match &*text {
                    $( $text $(| $alias)* => Ok(Self::$variant), )*
                    other => Err(serde::de::Error::custom(format!("unknown value \"{other}\""))),
                }
            }
        }
    };
}

pub(crate) use text_enum;

/// Reads the name of a field as what it stands for, without storing it.
pub(crate) fn by_name<'de, D, T>(deserializer: D, of: fn(&str) -> T) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
{
    struct NameVisitor<T>(fn(&str) -> T);
    impl<T> serde::de::Visitor<'_> for NameVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a field name")
        }

        fn visit_str<E>(self, name: &str) -> Result<T, E> {
            Ok((self.0)(name))
        }
    }
    deserializer.deserialize_identifier(NameVisitor(of))
}
