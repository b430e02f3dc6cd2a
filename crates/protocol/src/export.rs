//! JSON Schema of the whole contract, from which client types are generated.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::json_schema::{normalise, schema_in};
use crate::{error, event, frame, message, method};

/// The contract as one JSON Schema document (draft-07): any frame is valid against it. `x-methods` holds the params and
/// the result of every method this version has, `x-events` the payload of every event, `definitions` what they share.
pub fn export() -> Value {
    let mut generator = SchemaSettings::draft07().for_serialize().into_generator();
    let frame = schema_in::<frame::Frame>(&mut generator);
    let error = schema_in::<error::ErrorShape>(&mut generator);
    let message = schema_in::<message::Message>(&mut generator);
    let mut methods = Map::new();
    for row in method::METHODS {
        if let Some(shape) = row.shape {
            let both =
                json!({"params": (shape.params)(&mut generator), "result": (shape.result)(&mut generator)});
            methods.insert(row.name.to_owned(), both);
        }
    }
    let mut events = Map::new();
    for row in event::EVENTS {
        if let event::Sending::Typed(payload) = row.sending {
            events.insert(row.name.to_owned(), payload(&mut generator));
        }
    }
    let mut document = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "OpenClawGatewayProtocol",
        "x-protocol-version": frame::PROTOCOL_VERSION,
        "anyOf": [frame],
        "x-error": error,
        "x-message": message,
        "x-methods": methods,
        "x-events": events,
        "definitions": generator.take_definitions(true),
    });
    normalise(&mut document);
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_schema::{CLEARS, schema_of};

    #[test]
    fn every_reference_of_the_export_has_its_definition() {
        let document = export();
        let mut pending = vec![&document];
        let mut seen = 0;
        while let Some(value) = pending.pop() {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(target)) = fields.get("$ref") {
                        let pointer = target.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{target}");
                        seen += 1;
                    }
                    pending.extend(fields.values());
                }
                Value::Array(items) => pending.extend(items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        assert!(seen > 20, "{seen}");
        assert!(!document.to_string().contains(CLEARS));
    }

    #[test]
    fn optional_keys_do_not_take_null_and_required_ones_may() {
        let params = schema_of::<crate::params::logs::LogsTailParams>();
        assert_eq!(params["properties"]["limit"]["type"], "integer");
        let document = export();
        let beat = &document["definitions"]["AgentBeat"];
        assert_eq!(beat["properties"]["everyMs"]["type"], json!(["integer", "null"]));
        assert!(beat["required"].as_array().unwrap().contains(&json!("everyMs")));
    }

    #[test]
    fn the_export_is_the_same_every_time() {
        assert_eq!(export().to_string(), export().to_string());
    }
}
