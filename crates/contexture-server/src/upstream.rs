//! Where requests go.

use contexture::wire::Format;

/// Where Anthropic is.
pub const ANTHROPIC: &str = "https://api.anthropic.com";

/// Where OpenAI is.
pub const OPENAI: &str = "https://api.openai.com/v1";

/// Where OpenAI serves clients that are logged in with an account in place of a key.
pub const CHATGPT: &str = "https://chatgpt.com/backend-api/codex";

/// The addresses that a gateway passes requests on to.
///
/// A client that is pointed at `{gateway}/anthropic` or `{gateway}/openai` has what follows appended to the address of
/// that name. Any other path goes by its format: `{gateway}/v1/messages` to Anthropic's, the rest to OpenAI's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstreams {
    /// The address that `/anthropic` leads to, without `/v1`.
    pub anthropic: String,
    /// The address that `/openai` leads to, which usually ends in `/v1`.
    pub openai: String,
    /// Where chat completions go, if not to `openai`.
    pub chat: Option<String>,
    /// Where responses go, if not to `openai`.
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
    /// The whole address.
    pub url: String,
    /// How the request is written, if it asks a model.
    pub format: Option<Format>,
    /// Whether it only asks how many tokens a request has.
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

    /// The addresses for a client that is logged in with an account of OpenAI's: unless the user has set another one,
    /// the account is served elsewhere than keys are.
    pub fn for_account(&self) -> Self {
        let openai = if self.openai == OPENAI { CHATGPT } else { &self.openai };
        Self { openai: openai.to_owned(), ..self.clone() }
    }

    /// Where a request to a path goes. `is_anthropic` says what its headers look like, for paths that do not tell.
    ///
    /// ```
    /// use contexture_server::upstream::Upstreams;
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
        // A client that adds `/v1` by itself meets an address that has it already.
        let rest = if base.ends_with("/v1") { under(rest, "/v1").unwrap_or(rest) } else { rest };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        Route { url: format!("{}{rest}{query}", base.trim_end_matches('/')), format, is_count }
    }
}

/// What follows a name at the start of a path.
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
