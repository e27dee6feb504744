//! What is said of a model that cannot be talked to: who refused, and which key, flag or variable changes that.

use contexture::client::ClientError;
use contexture::error::Error;

use crate::failure::Failure;

/// The statuses of a provider that does not take the key.
const REFUSED_KEY: [u16; 2] = [401, 403];

/// The status of a provider that does not know the model, or its address.
const UNKNOWN: u16 = 404;

/// The failure of a request that did not reach its model; `None` for other errors.
pub(super) fn unreachable_model(error: &Error, model: &str, key: Option<&str>) -> Option<Failure> {
    let Error::Model(cause) = error else { return None };
    let address =
        "`--url`, or `chat.url` of the configuration, is its address; `contexture chat --continue` tries again";
    Some(match cause.downcast_ref::<ClientError>()? {
        ClientError::Refused { address, status, message } if REFUSED_KEY.contains(status) => {
            let said = said(message);
            let host = host_of(address);
            match key {
                Some(key) => Failure::work(format!("{host} refused the key in {key} (status {status}){said}"))
                    .hint(format!("put a key of {host} into {key}")),
                None => Failure::work(format!("{host} wants a key, and none was sent (status {status}){said}"))
                    .hint("`--key-env VARIABLE`, or `chat.key_env`, names the variable that has it"),
            }
        }
        ClientError::Refused { address, status: UNKNOWN, message } => {
            let (host, said) = (host_of(address), said(message));
            Failure::work(format!(
                "{host} does not know the model `{model}`, or the address is wrong (status 404){said}"
            ))
            .hint("`/model NAME` or `--model` names another model, and `--url` is the address up to /v1")
        }
        ClientError::Connect { address: at, source } => {
            Failure::work(format!("{} cannot be reached: {source}", host_of(at))).hint(address)
        }
        _ => return None,
    })
}

/// The message of a provider.
fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {}", short_addresses(message)) }
}

/// A text with the hosts of web addresses in place of the addresses.
pub(super) fn short_addresses(text: &str) -> String {
    let (mut short, mut rest) = (String::new(), text);
    while let Some(at) = ["https://", "http://"].iter().filter_map(|scheme| rest.find(*scheme)).min() {
        let ends = |sign: char| sign.is_whitespace() || "`'\"()<>,".contains(sign);
        let end = rest[at..].find(ends).map_or(rest.len(), |length| at + length);
        // What ends a sentence is no part of it.
        let end = at + rest[at..end].trim_end_matches([':', ';', '.']).len();
        short.push_str(&rest[..at]);
        short.push_str(host_of(&rest[at..end]));
        rest = &rest[end..];
    }
    short + rest
}

/// The host of an address, with its port.
fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    rest[..end].rsplit('@').next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, key: Option<&str>, sentence: &str, hint: &str) {
        let (address, message) = ("https://api.host.com/v1/chat/completions".to_owned(), "no".to_owned());
        let error = Error::Model(ClientError::Refused { address, status, message }.into());
        let failure = unreachable_model(&error, "m", key).expect("it is known");
        assert_eq!((failure.sentence(), failure.said_hint()), (sentence, Some(hint)));
    }

    #[test]
    fn a_refusal_names_the_key_and_the_model() {
        let unsent = "`--key-env VARIABLE`, or `chat.key_env`, names the variable that has it";
        let put = "put a key of api.host.com into OPENAI_API_KEY";
        check(401, Some("OPENAI_API_KEY"), "api.host.com refused the key in OPENAI_API_KEY (status 401): no", put);
        check(403, None, "api.host.com wants a key, and none was sent (status 403): no", unsent);
        check(
            404,
            None,
            "api.host.com does not know the model `m`, or the address is wrong (status 404): no",
            "`/model NAME` or `--model` names another model, and `--url` is the address up to /v1",
        );
        let busy = ClientError::Refused { address: String::new(), status: 500, message: String::new() };
        assert!(unreachable_model(&Error::Model(busy.into()), "m", None).is_none());
    }

    #[test]
    fn addresses_are_their_hosts() {
        let text = "connect to http://127.0.0.1:9/v1/x?y: see `https://me:key@host.org/a` (https://b) and https://";
        assert_eq!(short_addresses(text), "connect to 127.0.0.1:9: see `host.org` (b) and ");
        assert_eq!(short_addresses("none"), "none");
    }
}
