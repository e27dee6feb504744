//! Where requests go.

use std::borrow::Cow;

use contexture::wire::Format;

use super::door::RequestDoor;
use crate::account::record::Cloud;

/// The address of Anthropic's API.
pub const ANTHROPIC: &str = "https://api.anthropic.com";

/// The address of OpenAI's API.
pub(crate) const OPENAI: &str = "https://api.openai.com/v1";

/// The address for clients that are logged in with an OpenAI account instead of an API key.
pub(crate) const CHATGPT: &str = "https://chatgpt.com/backend-api/codex";

/// The address of Google's Gemini API.
pub(crate) const GOOGLE: &str = "https://generativelanguage.googleapis.com";

/// The address of Vertex AI where no region is named.
const VERTEX: &str = "https://aiplatform.googleapis.com";

/// The address of Code Assist, for clients with a Google login.
const CODE_ASSIST: &str = "https://cloudcode-pa.googleapis.com";

/// The addresses to which a gateway forwards requests.
///
/// For a client configured with `{gateway}/anthropic`, `{gateway}/openai` or `{gateway}/google`, the rest of the path is
/// appended to the address of that name. Any other path is routed by its format: `{gateway}/v1/messages` to Anthropic,
/// `{gateway}/v1beta/models/gemini-2.5-pro:generateContent` to Google, the rest to OpenAI. Paths of Vertex AI go to the
/// region that they name, unless another address for Google is set.
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
    /// The address for `/google`, without a version.
    pub google: String,
}

impl Default for Upstreams {
    fn default() -> Self {
        Self {
            anthropic: ANTHROPIC.to_owned(),
            openai: OPENAI.to_owned(),
            chat: None,
            responses: None,
            google: GOOGLE.to_owned(),
        }
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
    /// The model, where the path names it.
    pub model: Option<String>,
    /// The cloud through which the model is called.
    pub cloud: Option<Cloud>,
}

impl Upstreams {
    /// One address for everything.
    pub fn one(url: &str) -> Self {
        let url = url.trim_end_matches('/');
        let anthropic = url.trim_end_matches("/v1").to_owned();
        let google = url.trim_end_matches("/v1").trim_end_matches("/v1beta").to_owned();
        Self { anthropic, openai: url.to_owned(), chat: None, responses: None, google }
    }

    /// All addresses.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        [&self.anthropic, &self.openai, &self.google].into_iter().chain(&self.chat).chain(&self.responses)
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

    /// The address for a path of Google's.
    fn google_for(&self, path: &str) -> Cow<'_, str> {
        match region_of(path).filter(|_| self.google == GOOGLE && is_vertex(path)) {
            Some(region) => vertex_in(region),
            None if self.google == GOOGLE && is_vertex(path) => Cow::Borrowed(VERTEX),
            None if self.google == GOOGLE && path.starts_with("/v1internal") => Cow::Borrowed(CODE_ASSIST),
            None => Cow::Borrowed(&self.google),
        }
    }

    /// The address for a path of Anthropic's. Unless the user has set another address, its models on Vertex AI are where
    /// the path says.
    fn anthropic_for(&self, path: &str) -> Cow<'_, str> {
        let is_vertex = self.anthropic == ANTHROPIC && path.contains("/publishers/anthropic/");
        region_of(path).filter(|_| is_vertex).map_or(Cow::Borrowed(&self.anthropic), vertex_in)
    }

    /// Routes a request by its path. `looks` says whose its headers look like, for paths that are ambiguous.
    ///
    /// ```
    /// use contexture_gateway::provider::upstream::Upstreams;
    /// let upstreams = Upstreams::default();
    /// let url = |path: &str| upstreams.route(path, None, None).url;
    /// assert_eq!(url("/anthropic/v1/messages"), "https://api.anthropic.com/v1/messages");
    /// assert_eq!(url("/openai/responses"), "https://api.openai.com/v1/responses");
    /// assert_eq!(url("/v1/chat/completions"), "https://api.openai.com/v1/chat/completions");
    /// assert_eq!(url("/v1/messages"), "https://api.anthropic.com/v1/messages");
    /// ```
    pub fn route(&self, path: &str, query: Option<&str>, looks: Option<Looks>) -> Route {
        let count = path.trim_end_matches('/').strip_suffix("/count_tokens");
        let RequestDoor { format, model, is_count, cloud } = RequestDoor::of(path).unwrap_or_else(|| {
            let format =
                if is_gemini_count(path) { Some(Format::Gemini) } else { Format::of_path(count.unwrap_or(path)) };
            let is_count = (count.is_some() && format == Some(Format::Messages)) || is_gemini_count(path);
            let model = if format == Some(Format::Gemini) { model_in(path) } else { None };
            RequestDoor { format, is_count, model, cloud: is_vertex(path).then_some(Cloud::Vertex) }
        });
        let is_google = looks == Some(Looks::Google) || format == Some(Format::Gemini);
        let is_anthropic = looks == Some(Looks::Anthropic) || format == Some(Format::Messages);
        let named = UPSTREAMS.iter().find_map(|(name, whose)| Some((*whose, under(path, name)?)));
        let (base, rest): (Cow<'_, str>, &str) = match named {
            Some((Looks::Anthropic, rest)) => (self.anthropic_for(rest), rest),
            Some((Looks::OpenAi, rest)) => azure(self.openai_for(format), path, rest),
            Some((Looks::Google, rest)) => (self.google_for(rest), rest),
            None if is_anthropic => (self.anthropic_for(path), path),
            None if is_google || is_vertex(path) || path.starts_with("/v1internal") => (self.google_for(path), path),
            None => (Cow::Borrowed(self.openai_for(format)), path),
        };
        // The client adds `/v1` itself, but the address may already end in it.
        let rest = if base.ends_with("/v1") { under(rest, "/v1").unwrap_or(rest) } else { rest };
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let cloud = cloud.or_else(|| is_azure(&base).then_some(Cloud::Azure));
        Route { url: format!("{}{rest}{query}", base.trim_end_matches('/')), format, is_count, model, cloud }
    }
}

/// Whose request one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Anthropic's.
    Anthropic,
    /// OpenAI's.
    OpenAi,
    /// Google's.
    Google,
}

/// The names of upstreams at the start of a path.
const UPSTREAMS: [(&str, Looks); 3] =
    [("/anthropic", Looks::Anthropic), ("/openai", Looks::OpenAi), ("/google", Looks::Google)];

/// The path without the name of an upstream.
pub(crate) fn rest_of(path: &str) -> &str {
    UPSTREAMS.iter().find_map(|(name, _)| under(path, name)).unwrap_or(path)
}

/// The address and the path of a request to `/openai`. On Azure that name is a part of the provider's own paths, which
/// is added unless the address has it already.
fn azure<'a>(base: &'a str, path: &'a str, rest: &'a str) -> (Cow<'a, str>, &'a str) {
    let plain = base.trim_end_matches('/');
    let of_deployment = rest.starts_with("/deployments/");
    if of_deployment && plain.ends_with("/openai/v1") {
        // Only the newer paths have a version.
        return (plain.trim_end_matches("/v1").into(), rest);
    }
    match (is_azure(plain) || of_deployment) && !plain.contains("/openai") {
        true => (plain.into(), path),
        false => (plain.into(), rest),
    }
}

/// Whether an address is one of Azure's.
fn is_azure(base: &str) -> bool {
    let host = base.split("://").nth(1).unwrap_or(base).split(['/', ':']).next().unwrap_or_default();
    [".azure.com", ".azure.us", ".azure.cn"].iter().any(|end| host.ends_with(end))
}

/// Whether a path asks Google for a token count.
fn is_gemini_count(path: &str) -> bool {
    path.trim_end_matches('/').ends_with(":countTokens")
}

/// The model that a path of Google's names.
fn model_in(path: &str) -> Option<String> {
    let (before, _) = path.trim_end_matches('/').rsplit_once(':')?;
    let name = before.rsplit_once("/models/").or_else(|| before.rsplit_once("/endpoints/"))?.1;
    Some(contexture_core::percent::decoded_lossy(name))
}

/// Whether a path is one of Google's own models on Vertex AI, of models that were tuned there, or of contents that are
/// kept there under a name.
fn is_vertex(path: &str) -> bool {
    let is_kept = || path.contains("/cachedContents");
    let is_tuned = || path.contains("/endpoints/") && (is_gemini_count(path) || path.ends_with("enerateContent"));
    let in_project = path.contains("/projects/") && path.contains("/locations/");
    path.contains("/publishers/google/") || (in_project && (is_kept() || is_tuned()))
}

/// The region that a path of Vertex AI names.
fn region_of(path: &str) -> Option<&str> {
    let region = path.split_once("/locations/")?.1.split('/').next()?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_region = !region.is_empty() && region.len() <= MAX_REGION_BYTES && region.bytes().all(is_plain);
    Some(region).filter(|_| is_region)
}

/// The address of Vertex AI in a region.
fn vertex_in<'a>(region: &str) -> Cow<'a, str> {
    match region {
        "global" => Cow::Borrowed(VERTEX),
        "us" | "eu" => Cow::Owned(format!("https://aiplatform.{region}.rep.googleapis.com")),
        region => Cow::Owned(format!("https://{region}-aiplatform.googleapis.com")),
    }
}

/// Longer names are no regions.
const MAX_REGION_BYTES: usize = 40;

/// Returns what follows a name at the start of a path.
fn under<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    path.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_s_paths_are_kept_whatever_the_address_has_of_them() {
        let check = |base: &str, path: &str, expected: &str| {
            assert_eq!(
                Upstreams::one(base).route(path, Some("api-version=1"), None).url,
                format!("{expected}?api-version=1")
            );
        };
        let chat = "/openai/deployments/d/chat/completions";
        let host = "https://r.openai.azure.com";
        for base in [host, "https://r.openai.azure.com/openai", "https://r.openai.azure.com/openai/v1"] {
            check(base, chat, &format!("{host}{chat}"));
            check(base, "/openai/v1/responses", &format!("{host}/openai/v1/responses"));
        }
        check("http://127.0.0.1:9", chat, &format!("http://127.0.0.1:9{chat}"));
        check("https://api.openai.com/v1", "/openai/v1/responses", "https://api.openai.com/v1/responses");
        check("https://api.openai.com/v1", "/openai/responses", "https://api.openai.com/v1/responses");
    }

    #[test]
    fn models_on_vertex_are_where_their_path_says_unless_somebody_says_otherwise() {
        let path = |region: &str| {
            format!("/anthropic/v1/projects/p/locations/{region}/publishers/anthropic/models/m:rawPredict")
        };
        let url = |upstreams: &Upstreams, region: &str| upstreams.route(&path(region), None, None).url;
        let rest = |region: &str| path(region).trim_start_matches("/anthropic").to_owned();
        for (region, host) in [
            ("us-east5", "https://us-east5-aiplatform.googleapis.com"),
            ("global", "https://aiplatform.googleapis.com"),
            ("eu", "https://aiplatform.eu.rep.googleapis.com"),
            // What is no name of a region reaches nobody else.
            ("evil.example%2F", ANTHROPIC),
            ("EVIL", ANTHROPIC),
        ] {
            assert_eq!(url(&Upstreams::default(), region), format!("{host}{}", rest(region)));
            let own = Upstreams { anthropic: "https://mine.example/v1".to_owned(), ..Upstreams::default() };
            assert_eq!(url(&own, region), format!("https://mine.example{}", rest(region)));
        }
    }

    #[test]
    fn formats_may_have_addresses_of_their_own() {
        let chat = Some("http://127.0.0.1:8000/v1".to_owned());
        let upstreams = Upstreams { chat, ..Upstreams::default() };
        let url = |path: &str| upstreams.route(path, None, None).url;
        assert_eq!(url("/v1/chat/completions"), "http://127.0.0.1:8000/v1/chat/completions");
        assert_eq!(url("/openai/chat/completions"), "http://127.0.0.1:8000/v1/chat/completions");
        assert_eq!(url("/v1/responses"), "https://api.openai.com/v1/responses");
        assert_eq!(url("/v1/models"), "https://api.openai.com/v1/models");
    }

    #[test]
    fn paths_of_google_go_to_google_and_to_its_regions() {
        #[track_caller]
        fn check(path: &str, looks: Option<Looks>, expected: (&str, Option<&str>, bool)) {
            let route = Upstreams::default().route(path, Some("alt=sse"), looks);
            let found = (route.url.as_str(), route.model.as_deref(), route.is_count);
            assert_eq!(found, (&*format!("https://{}?alt=sse", expected.0), expected.1, expected.2));
            let own = Upstreams::one("http://127.0.0.1:1/v1beta").route(path, None, looks).url;
            assert!(own.starts_with("http://127.0.0.1:1/v1"), "{own}");
        }
        let home = "generativelanguage.googleapis.com";
        let stream = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
        check(stream, None, (&format!("{home}{stream}"), Some("gemini-2.5-pro"), false));
        check(&format!("/google{stream}"), None, (&format!("{home}{stream}"), Some("gemini-2.5-pro"), false));
        let count = "/v1beta/models/gemini-2.5-pro:countTokens";
        check(count, None, (&format!("{home}{count}"), Some("gemini-2.5-pro"), true));
        let assist = "/v1internal:streamGenerateContent";
        for path in [assist.to_owned(), format!("/google{assist}")] {
            check(&path, None, (&format!("cloudcode-pa.googleapis.com{assist}"), None, false));
        }
        let loaded = "/google/v1internal:loadCodeAssist";
        check(loaded, None, ("cloudcode-pa.googleapis.com/v1internal:loadCodeAssist", None, false));
        check("/v1internal:countTokens", None, ("cloudcode-pa.googleapis.com/v1internal:countTokens", None, true));
        check("/v1beta/models", Some(Looks::Google), (&format!("{home}/v1beta/models"), None, false));
        let vertex = |region: &str| {
            format!("/v1beta1/projects/p/locations/{region}/publishers/google/models/gemini-3-pro:generateContent")
        };
        let there = vertex("europe-west4");
        check(&there, None, (&format!("europe-west4-aiplatform.googleapis.com{there}"), Some("gemini-3-pro"), false));
        let there = vertex("global");
        check(&there, None, (&format!("aiplatform.googleapis.com{there}"), Some("gemini-3-pro"), false));
        // What is no region names no host.
        for odd in ["evil.example%2f", "x@evil.example", "a.b", ""] {
            let url = Upstreams::default().route(&vertex(odd), None, None).url;
            assert!(url.starts_with("https://aiplatform.googleapis.com/v1beta1/"), "{url}");
        }
        let tuned = "/v1/projects/p/locations/us-east1/endpoints/12:streamGenerateContent";
        let kept = "/v1/projects/p/locations/us-east1/cachedContents/34";
        for (path, model) in [(tuned, Some("12")), (kept, None)] {
            check(path, None, (&format!("us-east1-aiplatform.googleapis.com{path}"), model, false));
        }
        let express = "/v1beta1/publishers/google/models/gemini-3-pro:generateContent";
        check(express, None, (&format!("aiplatform.googleapis.com{express}"), Some("gemini-3-pro"), false));
    }
}
