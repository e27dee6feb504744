//! Arguments of tools as Rust types.

use contexture_core::error::BoxError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The JSON schema of arguments.
pub(super) fn schema_of<A: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(A).to_value();
    // Names of Rust types and the schema's version do not help a model, and every request pays for them.
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("$schema");
        fields.remove("title");
    }
    schema
}

/// Parses the arguments, which the engine has checked against the schema.
pub(super) fn parse<A: DeserializeOwned>(arguments: Value) -> Result<A, BoxError> {
    serde_json::from_value(arguments).map_err(|error| format!("the arguments are not understood: {error}").into())
}
