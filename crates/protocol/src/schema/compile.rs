//! JSON Schema to [`Rule`]s.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::{Additional, Rule, Schema, Type};

impl Schema {
    /// Compiles a schema document. Never fails: what it does not understand it does not check.
    pub fn compile(document: &Value) -> Self {
        let mut compiler = Compiler { document, definitions: BTreeMap::new() };
        let root = compiler.rule(document);
        Self { root, definitions: compiler.definitions }
    }
}

struct Compiler<'a> {
    document: &'a Value,
    definitions: BTreeMap<String, Rule>,
}

impl Compiler<'_> {
    fn rule(&mut self, schema: &Value) -> Rule {
        let Value::Object(schema) = schema else {
            return Rule { never: schema == &Value::Bool(false), ..Rule::default() };
        };
        Rule {
            never: false,
            reference: schema.get("$ref").and_then(Value::as_str).map(|pointer| self.definition(pointer)),
            types: types(schema.get("type")),
            constant: schema.get("const").cloned(),
            choices: schema.get("enum").and_then(Value::as_array).cloned(),
            maximum: number(schema, "maximum"),
            minimum: number(schema, "minimum"),
            exclusive_maximum: number(schema, "exclusiveMaximum"),
            exclusive_minimum: number(schema, "exclusiveMinimum"),
            multiple_of: number(schema, "multipleOf"),
            max_length: count(schema, "maxLength"),
            min_length: count(schema, "minLength"),
            pattern: schema.get("pattern").and_then(Value::as_str).and_then(|text| Regex::new(text).ok()),
            max_items: count(schema, "maxItems"),
            min_items: count(schema, "minItems"),
            unique_items: schema.get("uniqueItems") == Some(&Value::Bool(true)),
            items: schema.get("items").map(|items| Box::new(self.rule(items))),
            max_properties: count(schema, "maxProperties"),
            min_properties: count(schema, "minProperties"),
            required: strings(schema.get("required")),
            properties: self.properties(schema.get("properties")),
            additional: match schema.get("additionalProperties") {
                None | Some(Value::Bool(true)) => Additional::Allowed,
                Some(Value::Bool(false)) => Additional::Forbidden,
                Some(other) => Additional::Checked(Box::new(self.rule(other))),
            },
            not: schema.get("not").map(|not| Box::new(self.rule(not))),
            any_of: self.list(schema.get("anyOf")),
            one_of: self.list(schema.get("oneOf")),
            all_of: self.list(schema.get("allOf")),
        }
    }

    fn properties(&mut self, value: Option<&Value>) -> Vec<(String, Rule)> {
        let Some(Value::Object(fields)) = value else { return Vec::new() };
        fields.iter().map(|(name, schema)| (name.clone(), self.rule(schema))).collect()
    }

    fn list(&mut self, value: Option<&Value>) -> Vec<Rule> {
        let Some(Value::Array(schemas)) = value else { return Vec::new() };
        schemas.iter().map(|schema| self.rule(schema)).collect()
    }

    /// Compiles what a `$ref` points at, once; a definition may refer to itself.
    fn definition(&mut self, reference: &str) -> String {
        let key = reference.to_owned();
        if !self.definitions.contains_key(&key) {
            self.definitions.insert(key.clone(), Rule::default());
            let target = reference.strip_prefix('#').and_then(|pointer| self.document.pointer(pointer));
            if let Some(target) = target {
                let rule = self.rule(target);
                self.definitions.insert(key.clone(), rule);
            }
        }
        key
    }
}

fn types(value: Option<&Value>) -> Vec<Type> {
    match value {
        Some(Value::String(name)) => Type::parse(name).into_iter().collect(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).filter_map(Type::parse).collect(),
        _ => Vec::new(),
    }
}

fn number(schema: &Map<String, Value>, key: &str) -> Option<Number> {
    schema.get(key)?.as_number().cloned()
}

fn count(schema: &Map<String, Value>, key: &str) -> Option<u64> {
    schema.get(key)?.as_u64()
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let Some(Value::Array(names)) = value else { return Vec::new() };
    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
