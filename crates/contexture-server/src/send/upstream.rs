//! Where requests go.

use contexture::wire::Format;

/// The address of Anthropic's API.
pub const ANTHROPIC: &str = "https://api.anthropic.com";

/// The address of OpenAI's API.
pub const OPENAI: &str = "https://api.openai.com/v1";

/// The address for clients that are logged in with an OpenAI account instead of an API key.
pub const CHATGPT: &str = "https://chatgpt.com/backend-api/codex";

/// The addresses to which a gateway forwards requests.
///
/// For a client configured with `{gateway}/anthropic` or `{gateway}/openai`, the rest of the path is appended to the
/// address of that name. Any other path is routed by its format: `{gateway}/v1/messages` to Anthropic, the rest to
/// OpenAI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstreams {
    /// The address for `/anthropic`, without `/v1`.
    pub anthropic: String,
    /// The address for `/openai`, which usually ends in `/v1`.
    pub openai: String,
    /// The address for chat completions, if not `openai`.
    pub chat: Option<String>,
    /// The address for responses, if not `openai`.
    pub responses: Option<String>,
}

impl Default for Upstreams {
    fn default() -> Self {
        Self { anthropic: ANTHROPIC.to_owned(), openai: OPENAI.to_owned(), chat: None, responses: None }
    }
}

/// Where one request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The full URL.
    pub url: String,
    /// The request's format, if it calls a model.
    pub format: Option<Format>,
    /// Whether it only asks for a token count.
    pub is_count: bool,
}

impl Upstreams {
    /// One address for everything.
    pub fn one(url: &str) -> Self {
        let url = url.trim_end_matches('/');
        let anthropic = url.trim_end_matches("/v1").to_owned();
        Self { anthropic, openai: url.to_owned(), chat: None, responses: None }
    }

    /// All addresses.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        [&self.anthropic, &self.openai].into_iter().chain(&self.chat).chain(&self.responses)
    }

    /// The address for a format of OpenAI's.
    fn openai_for(&self, format: Option<Format>) -> &String {
        let own = match format {
            Some(Format::Chat) => self.chat.as_ref(),
            Some(Format::Responses) => self.responses.as_ref(),
            _ => None,
        };
        own.unwrap_or(&self.openai)
    }

    /// The addresses for a client that is logged in with an OpenAI account. Unless the user has set another address,
    /// accounts are served by a different one than API keys.
    pub fn for_account(&self) -> Self {
        let openai = if self.openai == OPENAI { CHATGPT } else { &self.openai };
        Self { openai: openai.to_owned(), ..self.clone() }
    }

    /// Routes a request by its path. `is_anthropic` says what its headers look like, for paths that are ambiguous.
    ///
    /// ```
    /// use contexture_server::send::upstream::Upstreams;
    /// let upstreams = Upstreams::default();
    /// let url = |path: &str| upstreams.route(path, None, false).url;
    /// assert_eq!(url("/anthropic/v1/messages"), "https://api.anthropic.com/v1/messages");
    /// assert_eq!(url("/openai/responses"), "https://api.openai.com/v1/responses");
    /// assert_eq!(url("/v1/chat/completions"), "https://api.openai.com/v1/chat/completions");
    /// assert_eq!(url("/v1/messages"), "https://api.anthropic.com/v1/messages");
    /// ```
    pub fn route(&self, path: &str, query: Option<&str>, is_anthropic: bool) -> Route {
        let count = path.trim_end_matches('/').strip_suffix("/count_tokens");
        let format = Format::of_path(count.unwrap_or(path));
        let is_count = count.is_some() && format == Some(Format::Messages);
        let (base, rest) = match (under(path, "/anthropic"), under(path, "/openai")) {
            (Some(rest), _) => (&self.anthropic, rest),
            (_, Some(rest)) => (self.openai_for(format), rest),
            _ if is_anthropic || format == Some(Format::Messages) => (&self.anthropic, path),
            _ => (self.openai_for(format), path),
        };
        // The client adds `/v1` itself, but the address may already end in it.
        let rest = if base.ends_with("/v1") { under(rest, "/v1").unwrap_or(rest) } else { rest };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Route { url: format!("{}{rest}{query}", base.trim_end_matches('/')), format, is_count }
    }
}

/// The path without the name of an upstream.
pub(crate) fn rest_of(path: &str) -> &str {
    under(path, "/anthropic").or_else(|| under(path, "/openai")).unwrap_or(path)
}

/// Returns what follows a name at the start of a path.
fn under<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    path.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_may_have_addresses_of_their_own() {
        let chat = Some("http://127.0.0.1:8000/v1".to_owned());
        let upstreams = Upstreams { chat, ..Upstreams::default() };
        let url = |path: &str| upstreams.route(path, None, false).url;
        assert_eq!(url("/v1/chat/completions"), "http://127.0.0.1:8000/v1/chat/completions");
        assert_eq!(url("/openai/chat/completions"), "http://127.0.0.1:8000/v1/chat/completions");
        assert_eq!(url("/v1/responses"), "https://api.openai.com/v1/responses");
        assert_eq!(url("/v1/models"), "https://api.openai.com/v1/models");
    }
}
