//! The model of the configuration that learns facts.

use std::sync::Arc;

use contexture::client::Client;
use contexture::facts::{Extraction, Learning};
use contexture::host::SystemClock;

use crate::endpoint::{EndpointRequest, memory_client};
use crate::failure::Failure;
use crate::settings::Config;

/// The client of the model that learns facts, if a person has named one.
///
/// # Errors
/// Something of it is missing or cannot be used.
pub(crate) fn memory_model(config: &Config) -> Result<Option<Client>, Failure> {
    let wanted = EndpointRequest {
        url: config.memory_model_url(),
        format: config.memory_model_format(),
        model: config.memory_model_name(),
        key_env: config.memory_model_key_env(),
        key: None,
    };
    match (&wanted.url, &wanted.format, &wanted.model) {
        (None, None, None) => Ok(None),
        (None, None, Some(_)) => Err(Failure::usage("`memory.model` has a name, but not whose model it is").hint(
            "add `url`, or `format = \"messages\"` for Anthropic, \"responses\" for OpenAI or \"gemini\" for Google",
        )),
        _ => memory_client(&wanted).map(Some),
    }
}

/// How the layers of a conversation learn facts.
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) fn extraction(config: &Config) -> Extraction {
    Extraction::by("").with_daily_tokens(config.memory_model_daily_tokens())
}

/// How facts are learned from conversations that rest, if a person has named a model.
///
/// # Errors
/// Something of it is missing or cannot be used.
pub(crate) fn learning(config: &Config) -> Result<Option<Learning>, Failure> {
    let client = memory_model(config)?;
    let learning = |client| Learning::by(client, Arc::new(SystemClock::new()));
    Ok(client.map(|client| learning(client).with_daily_tokens(config.memory_model_daily_tokens())))
}
