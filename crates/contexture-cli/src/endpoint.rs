//! Which model is talked to.

use std::time::Duration;

use crate::settings::keys::ModelFormat;
use contexture::client::{ApiKey, Client, ClientBuilder};
use contexture::wire::Format;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::environment::variable;
use crate::failure::Failure;

/// How long Ollama may take to name its models.
const LOOK: Duration = Duration::from_millis(500);

/// The most bytes of a list of models.
const MAX_LIST_BYTES: u64 = 1 << 20;

/// The models that are used if none is named.
const ANTHROPIC_MODEL: &str = "claude-sonnet-4-5";
const OPENAI_MODEL: &str = "gpt-5.1-codex";
const GEMINI_MODEL: &str = "gemini-3.1-pro-preview";

/// The variables that keys are taken from.
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
const OPENAI_KEY: &str = "OPENAI_API_KEY";
const GEMINI_KEY: &str = "GEMINI_API_KEY";
/// The variable of the key `chat.key`.
const CONFIG_KEY: &str = "CONTEXTURE_CHAT_KEY";

/// Where Ollama usually is.
const OLLAMA: &str = "127.0.0.1:11434";

/// What is known about the model that is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndpointRequest {
    pub(crate) url: Option<String>,
    pub(crate) format: Option<ModelFormat>,
    pub(crate) model: Option<String>,
    /// The variable with the key.
    pub(crate) key_env: Option<String>,
    /// The key of the configuration.
    pub(crate) key: Option<ApiKey>,
}

/// A model that is talked to.
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    /// The variables that keys came from, which commands that the model runs must not see.
    pub(crate) key_variables: Vec<String>,
    /// The variable or the setting that the key came from, if one is sent.
    pub(crate) key: Option<String>,
}

/// A client that is being built, with where its key came from.
type KeyedBuilder = (ClientBuilder, Option<String>);

/// The client of a model: of the address that was named, or of the provider whose key is in the environment, or of
/// Ollama.
pub(crate) async fn find(wanted: &EndpointRequest) -> Result<Endpoint, Failure> {
    let (client, key) = client(wanted).await?;
    let names = wanted.key_env.as_deref().into_iter().chain([ANTHROPIC_KEY, OPENAI_KEY, GEMINI_KEY, CONFIG_KEY]);
    Ok(Endpoint { client, key_variables: names.map(str::to_owned).collect(), key })
}

async fn client(wanted: &EndpointRequest) -> Result<(Client, Option<String>), Failure> {
    if wanted.url.is_some() || wanted.format.is_some() {
        return built(named(wanted)?);
    }
    if wanted.key.is_some() {
        return Err(Failure::usage("`chat.key` is set, but not whose key it is")
            .hint("add `format = \"messages\"` for Anthropic, \"responses\" for OpenAI or \"gemini\" for Google, or `url`, below `[chat]`"));
    }
    let of = |builder: ClientBuilder, variable: &str| built((builder, Some(variable.to_owned())));
    let (anthropic, openai, gemini) = (key_in(ANTHROPIC_KEY), key_in(OPENAI_KEY), key_in(GEMINI_KEY));
    let is_called = |start: &str| wanted.model.as_deref().is_some_and(|name| name.starts_with(start));
    let model = |usual: &str| wanted.model.clone().unwrap_or_else(|| usual.to_owned());
    match (anthropic, openai, gemini) {
        (_, Some(key), _) if is_called("gpt") => of(Client::openai(model(OPENAI_MODEL)).key(key), OPENAI_KEY),
        (_, _, Some(key)) if is_called("gemini") => of(Client::gemini(model(GEMINI_MODEL)).key(key), GEMINI_KEY),
        (Some(key), _, _) => of(Client::anthropic(model(ANTHROPIC_MODEL)).key(key), ANTHROPIC_KEY),
        (None, Some(key), _) => of(Client::openai(model(OPENAI_MODEL)).key(key), OPENAI_KEY),
        (None, None, Some(key)) => of(Client::gemini(model(GEMINI_MODEL)).key(key), GEMINI_KEY),
        (None, None, None) => ollama(wanted).await,
    }
}

/// The client of the model that `[memory.model]` names.
///
/// # Errors
/// Something of it is missing or cannot be used.
pub(crate) fn memory_client(wanted: &EndpointRequest) -> Result<Client, Failure> {
    let section = "check the section [memory.model] of the configuration";
    named(wanted)?.0.build().map_err(|error| Failure::usage(error.to_string()).hint(section))
}

/// The key in a variable, if it has one.
fn key_in(name: &str) -> Option<ApiKey> {
    variable(name).filter(|text| !text.trim().is_empty()).map(ApiKey::new)
}

fn built((builder, key): KeyedBuilder) -> Result<(Client, Option<String>), Failure> {
    let built = builder.build().map_err(|error| {
        Failure::usage(error.to_string()).hint("check `--url`, `--model` and [chat] of the configuration")
    });
    Ok((built?, key))
}

/// The model at an address that was named, or of the provider whose format was named.
fn named(wanted: &EndpointRequest) -> Result<KeyedBuilder, Failure> {
    let format = wanted.format.unwrap_or(ModelFormat::Chat);
    let (wire, home, variable, usual) = match format {
        ModelFormat::Messages => (Format::Messages, "https://api.anthropic.com", ANTHROPIC_KEY, ANTHROPIC_MODEL),
        ModelFormat::Chat => (Format::Chat, "https://api.openai.com/v1", OPENAI_KEY, OPENAI_MODEL),
        ModelFormat::Responses => (Format::Responses, "https://api.openai.com/v1", OPENAI_KEY, OPENAI_MODEL),
        ModelFormat::Gemini => (Format::Gemini, "https://generativelanguage.googleapis.com", GEMINI_KEY, GEMINI_MODEL),
    };
    let model = match (&wanted.model, &wanted.url) {
        (Some(model), _) => model.clone(),
        (None, None) => usual.to_owned(),
        (None, Some(_)) => {
            return Err(Failure::usage("an address without the name of a model").hint("name the model too"));
        }
    };
    let client = Client::builder(wire, wanted.url.as_deref().unwrap_or(home), model);
    if let (None, Some(key)) = (&wanted.key_env, &wanted.key) {
        return Ok((client.key(key.clone()), Some("`chat.key`".to_owned())));
    }
    // A provider's key goes to its provider; to another address only the key that was named for it.
    let variable = wanted.key_env.as_deref().or(wanted.url.is_none().then_some(variable));
    let Some(variable) = variable else { return Ok((client, None)) };
    let key = key_in(variable).ok_or_else(|| {
        Failure::usage(format!("the variable `{variable}` has no key"))
            .hint(format!("write it as `export {variable}=…`"))
    })?;
    Ok((client.key(key), Some(variable.to_owned())))
}

/// The model of Ollama on this machine.
async fn ollama(wanted: &EndpointRequest) -> Result<(Client, Option<String>), Failure> {
    let address = ollama_address(variable("OLLAMA_HOST").as_deref());
    let Ok(Some(models)) = tokio::time::timeout(LOOK, models_at(&address)).await else {
        return Err(no_model(&address));
    };
    let Some(model) = wanted.model.as_ref().or(models.first()) else {
        return Err(Failure::usage(format!("Ollama at {address} has no model"))
            .hint("`ollama pull qwen3-coder` gets one; or set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY"));
    };
    built((Client::chat(format!("http://{address}/v1"), model), None))
}

fn no_model(address: &str) -> Failure {
    Failure::usage(format!("there is no model to talk to: no key in the environment, and no Ollama at {address}")).hint(
        "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or run `ollama serve` and `ollama pull qwen3-coder`,\n      \
         or name a server: `contexture chat --url http://127.0.0.1:8080/v1 --model NAME`",
    )
}

/// A host and a port, of what Ollama's own variable says.
fn ollama_address(variable: Option<&str>) -> String {
    let host = variable.unwrap_or_default().trim().trim_start_matches("http://").trim_end_matches('/');
    match host {
        "" => OLLAMA.to_owned(),
        host if host.contains(':') => host.replace("0.0.0.0", "127.0.0.1"),
        host => format!("{}:11434", host.replace("0.0.0.0", "127.0.0.1")),
    }
}

/// The names of a server's models; `None` if there is no such server.
async fn models_at(address: &str) -> Option<Vec<String>> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    // Without keep-alive and chunks, so that the body is what follows the empty line.
    let request = format!("GET /v1/models HTTP/1.0\r\nHost: {address}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut bytes = Vec::new();
    stream.take(MAX_LIST_BYTES).read_to_end(&mut bytes).await.ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (_, body) = text.split_once("\r\n\r\n")?;
    let list: Value = serde_json::from_str(body.trim()).ok()?;
    let names = list["data"].as_array()?.iter().filter_map(|model| model["id"].as_str().map(str::to_owned));
    Some(names.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_ollama_is_understood() {
        for (variable, expected) in [
            (None, "127.0.0.1:11434"),
            (Some(""), "127.0.0.1:11434"),
            (Some("0.0.0.0"), "127.0.0.1:11434"),
            (Some("http://box:1234/"), "box:1234"),
            (Some("box"), "box:11434"),
        ] {
            assert_eq!(ollama_address(variable), expected, "{variable:?}");
        }
    }
}
