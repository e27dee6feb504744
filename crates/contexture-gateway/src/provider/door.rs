//! Other doors to the same models: paths of clouds whose bodies are of a known format.
//!
//! From the public references of June 2026: on Bedrock a model's own format is posted to `/model/{id}/invoke` and
//! `/model/{id}/invoke-with-response-stream`; on Vertex that of Anthropic's models to
//! `…/publishers/anthropic/models/{name}:rawPredict` and `:streamRawPredict`, and counts to the model `count-tokens`; on
//! Azure chat completions to `/openai/deployments/{name}/chat/completions`. The model is in the path and, apart from
//! Azure, not in the body.

use contexture::wire::Format;
use contexture_core::percent::decoded_lossy;

use crate::account::record::Cloud;
use crate::models::plain_name;

/// What a path says about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestDoor {
    /// The format of its body.
    pub(super) format: Option<Format>,
    /// The model.
    pub(super) model: Option<String>,
    /// Whether it only asks for a token count.
    pub(super) is_count: bool,
    /// Whose door it is.
    pub(super) cloud: Option<Cloud>,
}

impl RequestDoor {
    /// What a path of a cloud says; `None` for other paths.
    pub(super) fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        match parts.as_slice() {
            [.., "model", id, "invoke" | "invoke-with-response-stream"] => {
                let id = decoded_lossy(id);
                // Profiles may have any name; then nothing is known of the body.
                let is_anthropic = id.contains("anthropic.") || id.contains("claude");
                Some(Self::new(Cloud::Bedrock, is_anthropic.then_some(Format::Messages), &id, false))
            }
            [.., "publishers", "anthropic", "models", call] => {
                let (name, method) = call.rsplit_once(':')?;
                let is_read = matches!(method, "rawPredict" | "streamRawPredict");
                let is_count = name == "count-tokens";
                let name = decoded_lossy(name);
                let name = if is_count { "" } else { &name };
                Some(Self::new(Cloud::Vertex, is_read.then_some(Format::Messages), name, is_count))
            }
            [.., "deployments", name, "chat", "completions"] => {
                Some(Self::new(Cloud::Azure, Some(Format::Chat), &decoded_lossy(name), false))
            }
            _ => None,
        }
    }

    fn new(cloud: Cloud, format: Option<Format>, model: &str, is_count: bool) -> Self {
        let model = Some(plain_name(model)).filter(|name| !name.is_empty());
        Self { format, model, is_count, cloud: Some(cloud) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, format: Option<Format>, model: &str, is_count: bool) {
        let model = Some(model.to_owned()).filter(|model| !model.is_empty());
        let cloud = match path {
            path if path.starts_with("/model/") => Cloud::Bedrock,
            path if path.starts_with("/v1/projects/") => Cloud::Vertex,
            _ => Cloud::Azure,
        };
        assert_eq!(RequestDoor::of(path), Some(RequestDoor { format, model, is_count, cloud: Some(cloud) }), "{path}");
    }

    #[test]
    fn the_body_behind_other_doors_is_of_a_known_format() {
        let messages = Some(Format::Messages);
        check("/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke", messages, "claude-sonnet-4-5", false);
        check("/model/anthropic.claude-opus-4-6-v1/invoke-with-response-stream", messages, "claude-opus-4-6", false);
        check("/model/amazon.nova-pro-v1:0/invoke", None, "amazon.nova-pro", false);
        let vertex = "/v1/projects/p/locations/us-east5/publishers/anthropic/models";
        check(&format!("{vertex}/claude-sonnet-4-5@20250929:streamRawPredict"), messages, "claude-sonnet-4-5", false);
        check(&format!("{vertex}/count-tokens:rawPredict"), messages, "", true);
        check(&format!("{vertex}/claude-x:predict"), None, "claude-x", false);
        check("/openai/deployments/my-gpt/chat/completions", Some(Format::Chat), "my-gpt", false);
        for path in ["/v1/messages", "/model/x/converse", "/model/invoke", "/v1/publishers/google/models/x:rawPredict"]
        {
            assert_eq!(RequestDoor::of(path), None, "{path}");
        }
    }
}
