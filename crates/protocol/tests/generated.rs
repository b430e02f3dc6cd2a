//! `ui/protocol.schema.json`, made from the types. `cargo xtask generate` writes it.

use expect_test::expect_file;

#[test]
fn the_schema_of_the_protocol_is_up_to_date() -> serde_json::Result<()> {
    let schema = serde_json::to_string_pretty(&openclaw_protocol::export())? + "\n";
    expect_file!["../../../ui/protocol.schema.json"].assert_eq(&schema);
    Ok(())
}
