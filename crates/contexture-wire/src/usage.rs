//! The usage that a provider reports.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most tokens that are believed: no window has nearly as many, and sums of them do not overflow.
const MOST_TOKENS: u64 = 1_000_000_000;

/// A count of tokens; one that cannot be is none.
pub(crate) fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| *count <= MOST_TOKENS)
}

/// The usage that a provider reports for a request, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was neither read from the cache nor written to it.
    pub input: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to a cache that keeps it for some minutes.
    pub cache_write: u64,
    /// Input written to a cache that keeps it for an hour.
    pub cache_write_hour: u64,
    /// Output, including reasoning.
    pub output: u64,
}

impl Usage {
    /// All input.
    pub fn total_input(&self) -> u64 {
        self.input + self.cache_read + self.cache_write + self.cache_write_hour
    }

    /// Adds the usage of a response, or of a piece of one: later figures replace earlier ones. Returns whether it had
    /// any.
    pub fn take(&mut self, answer: &Value) -> bool {
        if self.take_gemini(answer) {
            return true;
        }
        let places = [&answer["usage"], &answer["message"]["usage"], &answer["response"]["usage"]];
        let Some(usage) = places.into_iter().find(|usage| usage.is_object()) else { return false };
        let number = |name: &str| tokens(&usage[name]);
        let anthropic =
            usage.get("cache_read_input_tokens").is_some() || usage.get("cache_creation_input_tokens").is_some();
        let details = usage.get("prompt_tokens_details").or_else(|| usage.get("input_tokens_details"));
        if let Some(total) = number("prompt_tokens").or_else(|| number("input_tokens")) {
            if anthropic
                || (details.is_none() && usage.get("prompt_tokens").is_none() && usage.get("total_tokens").is_none())
            {
                self.input = total;
            } else {
                let cached = details.and_then(|details| tokens(&details["cached_tokens"]));
                let cached = cached.or_else(|| number("prompt_cache_hit_tokens")).unwrap_or(0).min(total);
                // Newer models of OpenAI bill what they write to their cache, and say how much it was.
                let written = details.and_then(|details| tokens(&details["cache_write_tokens"])).unwrap_or(0);
                let written = written.min(total - cached);
                (self.input, self.cache_read, self.cache_write) = (total - cached - written, cached, written);
            }
        }
        if anthropic {
            self.cache_read = number("cache_read_input_tokens").unwrap_or(self.cache_read);
            let hour = tokens(&usage["cache_creation"]["ephemeral_1h_input_tokens"]).unwrap_or(self.cache_write_hour);
            let all = number("cache_creation_input_tokens").unwrap_or(self.cache_write + self.cache_write_hour);
            (self.cache_write, self.cache_write_hour) = (all.saturating_sub(hour), hour.min(all));
        }
        if let Some(output) = number("completion_tokens").or_else(|| number("output_tokens")) {
            self.output = output;
        }
        true
    }

    /// The same for Gemini, whose clients may be told inside another object. The prompt's count includes what was read
    /// from a cache, of either kind; what tools of the provider's own added to the prompt is counted beside it.
    fn take_gemini(&mut self, answer: &Value) -> bool {
        let places = [answer, &answer["response"]];
        let names = ["usageMetadata", "usage_metadata"];
        let found = places.iter().find_map(|place| names.iter().find_map(|name| place.get(*name)));
        let Some(usage) = found.filter(|usage| usage.is_object()) else { return false };
        let number = |name: &str, spaced: &str| usage.get(name).or_else(|| usage.get(spaced)).and_then(tokens);
        if let Some(prompt) = number("promptTokenCount", "prompt_token_count") {
            let tools = number("toolUsePromptTokenCount", "tool_use_prompt_token_count").unwrap_or(0);
            let total = prompt.saturating_add(tools);
            let cached = number("cachedContentTokenCount", "cached_content_token_count").unwrap_or(0).min(total);
            (self.input, self.cache_read) = (total - cached, cached);
        }
        let said = number("candidatesTokenCount", "candidates_token_count");
        let thought = number("thoughtsTokenCount", "thoughts_token_count");
        if said.is_some() || thought.is_some() {
            self.output = said.unwrap_or(0).saturating_add(thought.unwrap_or(0));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A provider that is broken or lies does not fill a cap, nor stop the program.
    #[test]
    fn figures_that_cannot_be_are_not_believed() {
        let answers = [
            json!({ "usage": { "input_tokens": u64::MAX, "output_tokens": 1_u64 << 63, "cache_read_input_tokens": u64::MAX } }),
            json!({ "usage": { "prompt_tokens": u64::MAX, "completion_tokens": u64::MAX, "total_tokens": 1 } }),
            json!({ "usage": { "input_tokens": -1, "output_tokens": 1e300 } }),
            json!({ "usageMetadata": { "promptTokenCount": u64::MAX, "candidatesTokenCount": u64::MAX } }),
        ];
        for answer in answers {
            let mut usage = Usage::default();
            usage.take(&answer);
            assert_eq!(usage, Usage::default(), "{answer}");
        }
        let most = json!({ "usage": { "input_tokens": 1_000_000, "output_tokens": 64_000 } });
        let mut usage = Usage::default();
        assert!(usage.take(&most) && usage.total_input() == 1_000_000 && usage.output == 64_000);
    }
}
