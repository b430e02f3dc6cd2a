use proptest::prelude::*;
use serde_json::json;

use super::*;

fn text(schema: &Value, value: &Value) -> String {
    Schema::compile(schema).validate(value).text()
}

/// Violations of spec §2.2, one form a row.
#[test]
fn every_violation_has_the_text_clients_know() {
    let literals =
        json!({"anyOf": [{"const": "now", "type": "string"}, {"const": "later", "type": "string"}]});
    let client = json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"],
                        "additionalProperties": false});
    let nested = json!({"type": "object", "properties": {"client": client}});
    let field = |rule: Value| json!({"type": "object", "properties": {"x": rule}});
    let rows = [
        (json!({"type": "object", "required": ["x"]}), json!({}), "must have required property 'x'"),
        (nested.clone(), json!({"client": {}}), "at /client: must have required property 'id'"),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"x": 1}),
            "at root: unexpected property 'x'",
        ),
        (nested, json!({"client": {"id": "a", "x": 1}}), "at /client: unexpected property 'x'"),
        (field(json!({"type": "integer"})), json!({"x": "5"}), "at /x: must be integer"),
        (
            field(json!({"type": "integer", "minimum": 1})),
            json!({"x": 0.5}),
            "at /x: must be integer; at /x: must be >= 1",
        ),
        (field(json!({"type": "integer", "minimum": 1})), json!({"x": 0}), "at /x: must be >= 1"),
        (field(json!({"type": "integer", "maximum": 1000})), json!({"x": 1001}), "at /x: must be <= 1000"),
        (field(json!({"type": "string", "minLength": 1})), json!({"x": 5}), "at /x: must be string"),
        (field(json!({"type": "boolean"})), json!({"x": null}), "at /x: must be boolean"),
        (field(json!({"type": "number"})), json!({"x": "1"}), "at /x: must be number"),
        (field(json!({"type": "array"})), json!({"x": {}}), "at /x: must be array"),
        (field(json!({"type": "object"})), json!({"x": []}), "at /x: must be object"),
        (
            field(json!({"type": "string", "minLength": 1})),
            json!({"x": ""}),
            "at /x: must NOT have fewer than 1 characters",
        ),
        (
            field(json!({"type": "string", "maxLength": 3})),
            json!({"x": "ääää"}),
            "at /x: must NOT have more than 3 characters",
        ),
        (field(json!({"type": "string", "maxLength": 3})), json!({"x": "äöü"}), ""),
        (
            field(json!({"type": "array", "minItems": 2})),
            json!({"x": [1]}),
            "at /x: must NOT have fewer than 2 items",
        ),
        (
            field(json!({"type": "array", "maxItems": 1})),
            json!({"x": [1, 2]}),
            "at /x: must NOT have more than 1 items",
        ),
        (
            field(json!({"const": "a", "type": "string"})),
            json!({"x": "b"}),
            "at /x: must be equal to constant",
        ),
        (
            field(literals),
            json!({"x": "never"}),
            "at /x: must be equal to constant; at /x: must match a schema in anyOf",
        ),
        (
            field(json!({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"})),
            json!({"x": "soon"}),
            r#"at /x: must match pattern "^\d{4}-\d{2}-\d{2}$""#,
        ),
        (json!({"type": "object"}), json!([]), "must be object"),
        (
            field(json!({"type": "array", "items": {"type": "string", "minLength": 1}})),
            json!({"x": ["a", "", 3]}),
            "at /x/1: must NOT have fewer than 1 characters; at /x/2: must be string",
        ),
        (
            field(json!({"type": "object", "additionalProperties": {"type": "boolean"}})),
            json!({"x": {"a/b": 1}}),
            "at /x/a~1b: must be boolean",
        ),
        (
            field(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
            json!({"x": 5}),
            "at /x: must be string; at /x: must be null; at /x: must match a schema in anyOf",
        ),
        (
            field(json!({"enum": ["a", "b"]})),
            json!({"x": "c"}),
            "at /x: must be equal to one of the allowed values",
        ),
        (field(json!({"type": ["string", "null"]})), json!({"x": 5}), "at /x: must be string,null"),
        (
            field(json!({"oneOf": [{"type": "string"}, {"const": "a"}]})),
            json!({"x": "a"}),
            "at /x: must match exactly one schema in oneOf",
        ),
        (field(json!({"not": {"type": "string"}})), json!({"x": "a"}), "at /x: must NOT be valid"),
        (field(json!({"exclusiveMinimum": 0})), json!({"x": 0}), "at /x: must be > 0"),
        (field(json!({"multipleOf": 5})), json!({"x": 7}), "at /x: must be multiple of 5"),
        (
            field(json!({"uniqueItems": true})),
            json!({"x": [1, 2, 1]}),
            "at /x: must NOT have duplicate items (items ## 0 and 2 are identical)",
        ),
        (field(json!(false)), json!({"x": 1}), "at /x: boolean schema is false"),
        (field(json!({"type": "integer"})), json!({"x": 5.0}), ""),
    ];
    for (schema, value, expect) in rows {
        assert_eq!(text(&schema, &value), expect, "{schema} on {value}");
    }
}

#[test]
fn a_union_with_more_violations_than_are_told_is_refused_all_the_same() {
    let lists = json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]});
    let exactly_one = json!({"oneOf": lists["anyOf"]});
    let outer = json!({"anyOf": [{"type": "number"}, lists]});
    let bad = json!(vec![Value::Null; 200]);
    for schema in [lists, exactly_one, outer] {
        assert_ne!(text(&schema, &bad), "", "{schema}");
        assert_eq!(text(&schema, &json!([{}])), "", "{schema}");
    }
}

#[test]
fn missing_comes_before_unexpected_before_properties_in_schema_order() {
    let schema = json!({
        "type": "object",
        "properties": {"b": {"type": "string"}, "a": {"type": "string"}, "c": {}},
        "required": ["b", "c"],
        "additionalProperties": false,
    });
    assert_eq!(
        text(&schema, &json!({"z": 1, "a": 1, "b": 2})),
        "must have required property 'c'; at root: unexpected property 'z'; at /b: must be string; at /a: must be string"
    );
}

#[test]
fn the_configuration_is_read_as_zod_reads_it() {
    let object = json!({
        "type": "object",
        "properties": {"b": {"type": "string"}, "a": {"type": "string"}, "c": {"default": 1}},
        "required": ["a", "b", "c"],
        "additionalProperties": false,
    });
    let choice = json!({"oneOf": [{"type": "string"}, {"const": "a"}]});
    let record = json!({"propertyNames": {"pattern": "^[a-z]$"}, "additionalProperties": {"type": "string"}});
    let rows = [
        (&object, json!({"z": 1, "b": 2}), "/b must be string; must have required property 'a'; z"),
        (&json!({"maxLength": 3}), json!("\u{1F600}\u{1F600}"), "must NOT have more than 3 characters"),
        (&json!({"type": "integer"}), json!(1e300), "must be integer"),
        (&choice, json!("a"), ""),
        (&record, json!({"a": "x", "b": 1, "AB": 1}), "/b must be string; /AB property name must be valid"),
    ];
    for (schema, value, expect) in rows {
        let schema = Schema::compile_as(Dialect::Zod, schema);
        let told = |violation: &Violation<'_>| match violation.kind {
            ViolationKind::Unexpected(key) => key.to_owned(),
            _ => format!("{} {}", violation.pointer(), violation.message()).trim().to_owned(),
        };
        let found = schema.validate(&value);
        let lines: Vec<String> = found.as_slice().iter().map(told).collect();
        assert_eq!(lines.join("; "), expect, "{value}");
    }
}

#[test]
fn references_may_be_recursive() {
    let schema = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}}},
    });
    assert_eq!(text(&schema, &json!({"child": {"child": {}}})), "");
    assert_eq!(text(&schema, &json!({"child": {"child": 1}})), "at /child/child: must be object");
    assert_eq!(text(&json!({"$ref": "#"}), &json!(1)), "", "a schema that is only itself checks nothing");
}

#[test]
fn scalars_are_coerced_to_what_the_schema_wants() {
    let rows = [
        (json!({"type": "integer"}), json!("5"), json!(5)),
        (json!({"type": "integer"}), json!("5.5"), json!("5.5")),
        (json!({"type": "number"}), json!(" 5.5 "), json!(5.5)),
        (json!({"type": "number"}), json!(""), json!("")),
        (json!({"type": "number"}), json!("inf"), json!("inf")),
        (json!({"type": "boolean"}), json!("true"), json!(true)),
        (json!({"type": "boolean"}), json!("yes"), json!("yes")),
        (json!({"type": "string"}), json!(5), json!("5")),
        (json!({"type": "string"}), json!({"a": 1}), json!({"a": 1})),
        (json!({"type": "array", "items": {"type": "integer"}}), json!(["1", 2]), json!([1, 2])),
        (json!({"type": "array", "items": {"type": "string"}}), json!("a"), json!(["a"])),
        (json!({"type": "array", "items": {"type": "string"}}), json!(" "), json!([])),
        (json!({"type": "array", "items": {"type": "string"}}), json!("[\"a\"]"), json!("[\"a\"]")),
        (json!({"type": "array", "items": {"type": "string"}}), json!({"a": 1}), json!({"a": 1})),
        (json!({"type": "array", "items": {"type": "integer"}}), json!("1"), json!("1")),
        (json!({"type": "array"}), json!("a"), json!("a")),
        (
            json!({"properties": {"a": {"type": "integer"}}}),
            json!({"a": "1", "b": "2"}),
            json!({"a": 1, "b": "2"}),
        ),
        (json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), json!("5"), json!("5")),
        (json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}), json!("true"), json!(true)),
    ];
    for (schema, mut value, expect) in rows {
        let input = value.clone();
        coerce(&Schema::compile(&schema), &mut value);
        assert_eq!(value, expect, "{schema} on {input}");
    }
}

#[test]
fn whole_floats_become_integers() {
    let mut value = json!({"a": 5.0, "b": [1e3, 0.5], "c": 1e300});
    whole_numbers(&mut value);
    assert_eq!(value.to_string(), r#"{"a":5,"b":[1000,0.5],"c":1e+300}"#);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|f| json!(f)),
        ".{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["string", "object", "array", "integer", "#", "#/properties/a", "(", "^a"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        let key = prop_oneof![
            prop::sample::select(vec![
                "type",
                "const",
                "enum",
                "minimum",
                "multipleOf",
                "minLength",
                "pattern",
                "items",
                "uniqueItems",
                "required",
                "properties",
                "additionalProperties",
                "anyOf",
                "oneOf",
                "allOf",
                "not",
                "$ref",
                "a",
                "b",
            ])
            .prop_map(str::to_owned),
            ".{0,3}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key, inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_on_any_value_ends_without_panic(schema in any_json(), mut value in any_json()) {
        let schema = Schema::compile(&schema);
        let _ = schema.validate(&value).text();
        coerce(&schema, &mut value);
        let _ = schema.validate(&value).text();
    }

    #[test]
    fn the_empty_schema_accepts_everything(value in any_json()) {
        let schema = Schema::compile(&json!({}));
        prop_assert!(schema.validate(&value).is_empty());
    }
}
