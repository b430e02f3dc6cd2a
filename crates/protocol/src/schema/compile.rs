//! JSON Schema to [`Rule`]s.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::rule::{Additional, Keyword, LengthLimit, NumberLimit, ObjectRule, Pattern};
use super::{Dialect, Rule, Schema, Type};

impl Schema {
    /// Compiles a schema document, to be read as AJV does. Never fails: what it does not understand it does not check.
    pub fn compile(document: &Value) -> Self {
        Self::compile_as(Dialect::Ajv, document)
    }

    /// Compiles a schema document, to be read as one of OpenClaw's validators does.
    pub fn compile_as(dialect: Dialect, document: &Value) -> Self {
        let mut compiler = Compiler { document, definitions: BTreeMap::new(), dialect };
        let root = compiler.rule(document);
        Self { root, definitions: compiler.definitions, dialect }
    }
}

struct Compiler<'a> {
    document: &'a Value,
    definitions: BTreeMap<String, Rule>,
    dialect: Dialect,
}

impl Compiler<'_> {
    fn rule(&mut self, schema: &Value) -> Rule {
        let Value::Object(schema) = schema else {
            let is_never = schema == &Value::Bool(false);
            return Rule(is_never.then_some(Keyword::Never).into_iter().collect());
        };
        let mut keywords: Vec<(u8, Keyword)> =
            schema.iter().filter_map(|(name, value)| self.keyword(name, value)).collect();
        keywords.sort_by_key(|(rank, _)| *rank);
        let mut rule = Rule(keywords.into_iter().map(|(_, keyword)| keyword).collect());
        if let Some(object) = self.object(schema) {
            rule.0.push(Keyword::Object(Box::new(object)));
        }
        rule.0.shrink_to_fit();
        rule
    }

    /// A keyword with its place in the order in which AJV checks them.
    fn keyword(&mut self, name: &str, value: &Value) -> Option<(u8, Keyword)> {
        let bound = |bound| Some(Keyword::NumberLimit(bound, value.as_number()?.clone()));
        let count = |count| Some(Keyword::LengthLimit(count, value.as_u64()?));
        let ranked = match name {
            "$ref" => (1, Keyword::Reference(self.definition(value.as_str()?))),
            "type" => (2, Some(types(value)).filter(|types| !types.is_empty()).map(Keyword::Types)?),
            "maximum" => (3, bound(NumberLimit::Maximum)?),
            "minimum" => (4, bound(NumberLimit::Minimum)?),
            "exclusiveMaximum" => (5, bound(NumberLimit::ExclusiveMaximum)?),
            "exclusiveMinimum" => (6, bound(NumberLimit::ExclusiveMinimum)?),
            "multipleOf" => (7, bound(NumberLimit::MultipleOf)?),
            "maxLength" => (8, count(LengthLimit::MaxLength)?),
            "minLength" => (9, count(LengthLimit::MinLength)?),
            "pattern" => (10, Keyword::Pattern(Pattern::new(value.as_str()?))),
            "const" => (11, Keyword::Constant(Box::new(value.clone()))),
            "enum" => (12, Keyword::Choices(value.as_array()?.clone())),
            "not" => (13, Keyword::Not(Box::new(self.rule(value)))),
            "anyOf" => (14, Keyword::AnyOf(self.list(value)?)),
            "oneOf" if self.dialect == Dialect::Zod => (14, Keyword::AnyOf(self.list(value)?)),
            "oneOf" => (15, Keyword::OneOf(self.list(value)?)),
            "allOf" => (16, Keyword::AllOf(self.list(value)?)),
            "maxItems" => (17, count(LengthLimit::MaxItems)?),
            "minItems" => (18, count(LengthLimit::MinItems)?),
            "uniqueItems" => (19, (value == &Value::Bool(true)).then_some(Keyword::UniqueItems)?),
            "items" => (20, Keyword::Items(Box::new(self.rule(value)))),
            "maxProperties" => (21, count(LengthLimit::MaxProperties)?),
            "minProperties" => (22, count(LengthLimit::MinProperties)?),
            _ => return None,
        };
        Some(ranked)
    }

    /// The keywords about keys, if there are any.
    fn object(&mut self, schema: &Map<String, Value>) -> Option<ObjectRule> {
        let properties = schema.get("properties");
        let property = |name: &str| properties.and_then(|all| all.get(name));
        let has_default = |name: &str| property(name).is_some_and(|schema| schema.get("default").is_some());
        let mut required = strings(schema.get("required"));
        if self.dialect == Dialect::Zod {
            required.retain(|name| !has_default(name));
        }
        let names = schema.get("propertyNames").and_then(|names| names.get("pattern")?.as_str());
        let additional = match schema.get("additionalProperties") {
            None | Some(Value::Bool(true)) => Additional::Allowed,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(other) => Additional::Checked(self.rule(other)),
        };
        let is_empty = properties.is_none()
            && required.is_empty()
            && names.is_none()
            && matches!(additional, Additional::Allowed);
        (!is_empty).then(|| ObjectRule {
            required,
            properties: self.properties(properties),
            additional,
            names: names.map(Pattern::new),
        })
    }

    fn properties(&mut self, value: Option<&Value>) -> Vec<(String, Rule)> {
        let Some(Value::Object(fields)) = value else { return Vec::new() };
        fields.iter().map(|(name, schema)| (name.clone(), self.rule(schema))).collect()
    }

    fn list(&mut self, value: &Value) -> Option<Vec<Rule>> {
        let schemas = value.as_array().filter(|schemas| !schemas.is_empty())?;
        Some(schemas.iter().map(|schema| self.rule(schema)).collect())
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

fn types(value: &Value) -> Vec<Type> {
    match value {
        Value::String(name) => Type::parse(name).into_iter().collect(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).filter_map(Type::parse).collect(),
        _ => Vec::new(),
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let Some(Value::Array(names)) = value else { return Vec::new() };
    names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
