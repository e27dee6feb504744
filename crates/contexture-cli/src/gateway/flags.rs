//! The flags of all commands that start a gateway.

use std::path::Path;

use crate::settings::{Command, Config};
use clap::{Args, ValueEnum};
use contexture::personal::{MemoryOwner, PersonalMemory};
use contexture_gateway::account::cap::{Cap, CapAmounts};
use contexture_gateway::models::Models;
use contexture_gateway::{GatewayMemory, LEAST_BUDGET, Options, References, Upstreams, WHOLE_WINDOW};
use contexture_inspect::{InspectServer, inspector_of_gateway};

use super::place::StoreFlag;
use super::roots::extra_roots;
use super::start::cannot_start;
use crate::config::{ConfigFlags, OfGateway};
use crate::environment;
use crate::failure::Failure;
use crate::memory::embedder::embedder_of;
use crate::memory::learning::learning;
use crate::memory::own::{memory_path, open_memory, project_at};

/// The flags of a gateway.
#[derive(Args, Clone, Debug)]
pub(super) struct GatewayFlags {
    /// The most tokens of a request, or `window` for all that the model takes [default: DEFAULT]
    #[arg(long, value_name = "TOKENS", value_parser = budget)]
    pub(super) budget: Option<u64>,
    /// Which text of messages names files as `#path` [default: known]
    #[arg(long, hide = true, value_name = "WHICH", value_enum)]
    references: Option<ReferencesFlag>,
    /// Send everything as it came, and only record what would have been done
    #[arg(long)]
    pub(super) observe: bool,
    /// Ask the provider for its own cache diagnostics, in a field that is added to requests
    #[arg(long, hide = true)]
    pub(super) diagnose: bool,
    /// The share of conversations to pass through unchanged, for comparison
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) holdout: Option<f64>,
    #[command(flatten)]
    cap: CapFlags,
    /// Show what the model is sent, live, on a page in the browser
    #[arg(long)]
    pub(super) inspect: bool,
    /// Remember what passes, by project, and add what is relevant where a person says something
    #[arg(long, conflicts_with = "no_store")]
    pub(super) memory: bool,
    /// Store nothing on the disk
    #[arg(long, conflicts_with = "store")]
    pub(super) no_store: bool,
    /// Store no text of a conversation, only what its requests cost; a restart folds anew
    #[arg(long, conflicts_with_all = ["no_store", "memory"])]
    pub(super) no_texts: bool,
    #[command(flatten)]
    pub(super) store: StoreFlag,
    #[command(flatten)]
    config: ConfigFlags<OfGateway>,
}

/// Which text of messages names files.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum ReferencesFlag {
    /// What a person types, if that is known of the agent
    Known,
    /// All of a new message, for an agent that writes nothing into messages itself
    Typed,
}

/// The most that may be spent.
#[derive(Args, Clone, Debug)]
pub(super) struct CapFlags {
    /// The most that may be spent in a day (UTC), also by earlier runs, or in a conversation: 5$/day, 2Mtokens/conversation;
    /// then requests are refused. Can be given several times
    #[arg(long, value_name = "CAP", value_parser = cap_limit)]
    cap: Vec<CapLimit>,
    // As they were written before there was one flag.
    #[arg(long, hide = true, value_parser = dollars)]
    cap_day_dollars: Option<f64>,
    #[arg(long, hide = true)]
    cap_day_tokens: Option<u64>,
    #[arg(long, hide = true, value_parser = dollars)]
    cap_conversation_dollars: Option<f64>,
    #[arg(long, hide = true)]
    cap_conversation_tokens: Option<u64>,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CapLimit {
    DayDollars(f64),
    DayTokens(u64),
    ConversationDollars(f64),
    ConversationTokens(u64),
}

impl ReferencesFlag {
    fn references(self) -> References {
        match self {
            Self::Known => References::Unknown,
            Self::Typed => References::Typed,
        }
    }
}

impl CapFlags {
    /// The cap by flags, else by the configuration.
    fn cap(&self, config: &Config) -> Cap {
        let mut cap = Cap {
            day: CapAmounts {
                dollars: self.cap_day_dollars.or(config.gateway_cap_day_dollars()),
                tokens: self.cap_day_tokens.or(config.gateway_cap_day_tokens()),
            },
            conversation: CapAmounts {
                dollars: self.cap_conversation_dollars.or(config.gateway_cap_conversation_dollars()),
                tokens: self.cap_conversation_tokens.or(config.gateway_cap_conversation_tokens()),
            },
        };
        for limit in &self.cap {
            match *limit {
                CapLimit::DayDollars(dollars) => cap.day.dollars = Some(dollars),
                CapLimit::DayTokens(tokens) => cap.day.tokens = Some(tokens),
                CapLimit::ConversationDollars(dollars) => cap.conversation.dollars = Some(dollars),
                CapLimit::ConversationTokens(tokens) => cap.conversation.tokens = Some(tokens),
            }
        }
        cap
    }
}

/// Reads one limit: `5$/day`, `200ktokens/conversation`.
fn cap_limit(text: &str) -> Result<CapLimit, String> {
    let wrong =
        || "a cap is dollars or tokens in a day or a conversation, as in 5$/day or 2Mtokens/conversation".to_owned();
    let (amount, extent) = text.trim().rsplit_once('/').ok_or_else(wrong)?;
    let is_day = match extent.trim() {
        "day" => true,
        "conversation" => false,
        _ => return Err(wrong()),
    };
    if let Some(tokens) = amount.trim().strip_suffix("tokens") {
        let tokens = tokens_of(tokens.trim()).ok_or_else(wrong)?;
        return Ok(if is_day { CapLimit::DayTokens(tokens) } else { CapLimit::ConversationTokens(tokens) });
    }
    let amount = amount.trim();
    let written = amount.strip_suffix('$').or_else(|| amount.strip_prefix('$')).ok_or_else(wrong)?;
    let dollars = dollars(written.trim()).map_err(|_| wrong())?;
    Ok(if is_day { CapLimit::DayDollars(dollars) } else { CapLimit::ConversationDollars(dollars) })
}

/// A number of tokens, also in thousands or in millions.
fn tokens_of(text: &str) -> Option<u64> {
    let (digits, factor) = match text.char_indices().next_back()? {
        (at, 'k') => (&text[..at], 1_000),
        (at, 'M') => (&text[..at], 1_000_000),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.trim_start_matches('$').parse::<f64>() {
        Ok(dollars) if dollars >= 0.0 && dollars.is_finite() => Ok(dollars),
        _ => Err("dollars are a number of at least 0, as in 2.50".to_owned()),
    }
}

impl GatewayFlags {
    /// The configuration of the working directory.
    pub(super) fn config(&self, command: Command) -> Result<Config, Failure> {
        self.config.load(command, Path::new("."))
    }

    /// Starts the inspector that watches a gateway with these options, if it is asked for. It serves until it is
    /// dropped.
    pub(super) async fn inspector(&self, options: &mut Options) -> Result<Option<InspectServer>, Failure> {
        if !self.inspect {
            return Ok(None);
        }
        let store = options.store.as_deref().filter(|_| options.keeps_texts);
        let server = inspector_of_gateway(store).await.map_err(cannot_start)?;
        options.watchers.push(server.inspector().clone());
        Ok(Some(server))
    }

    /// The memory of a gateway for an agent in a directory, if it is switched on. One without a directory has the person's
    /// alone.
    pub(super) fn remembering(
        &self,
        config: &Config,
        directory: Option<&Path>,
    ) -> Result<Option<GatewayMemory>, Failure> {
        if self.no_store || self.no_texts || !(self.memory || config.memory_enabled()) {
            return Ok(None);
        }
        let opened = open_memory(&memory_path()?)?;
        let project = directory.map(|directory| MemoryOwner::Project(project_at(directory)));
        let owners = project.into_iter().chain([MemoryOwner::Person]).collect();
        let memory = embedder_of(config)?.into_iter().fold(opened.memory, PersonalMemory::with_embedder);
        let memory = learning(config)?.into_iter().fold(memory, PersonalMemory::with_learning);
        let memory = GatewayMemory::new(memory, owners).with_threshold(config.memory_threshold());
        Ok(Some(memory.with_budget(config.memory_budget())))
    }

    /// What a gateway is told: by flags, else by the configuration.
    pub(super) fn options(&self, config: &Config, upstreams: Upstreams) -> Result<Options, Failure> {
        let (extra_roots, warnings) = extra_roots(environment::variable);
        for warning in warnings {
            eprintln!("contexture: warning: {warning}");
        }
        Ok(Options {
            upstreams,
            extra_roots,
            budget: self.budget.or(config.gateway_budget()),
            observe: self.observe,
            diagnose: self.diagnose,
            cap: self.cap.cap(config),
            editor: config.gateway_context_management(),
            references: self.references.map_or(References::Unknown, ReferencesFlag::references),
            holdout: self.holdout.unwrap_or_else(|| config.gateway_holdout()),
            store: if self.no_store { None } else { Some(self.store.path()?) },
            store_bytes: config.gateway_store_megabytes() << 20,
            keep_days: config.gateway_keep_days(),
            keeps_texts: !self.no_texts,
            models: Models::builtin().knowing(config.model()),
            pins: config.pins(),
            dialects: config.dialects(),
            ..Options::default()
        })
    }
}

/// Where requests go by the configuration.
pub(super) fn upstreams(config: &Config) -> Upstreams {
    let usual = Upstreams::default();
    let plain = |url: String| url.trim_end_matches('/').to_owned();
    Upstreams {
        anthropic: config.gateway_upstream_anthropic().map_or(usual.anthropic, plain),
        openai: config.gateway_upstream_openai().map_or(usual.openai, plain),
        chat: config.gateway_upstream_chat().map(plain),
        responses: config.gateway_upstream_responses().map(plain),
        google: config.gateway_upstream_google().map_or(usual.google, plain),
    }
}

/// A budget: a number of tokens, or the model's whole window.
pub(super) fn budget(text: &str) -> Result<u64, String> {
    match text.parse() {
        _ if text == "window" => Ok(WHOLE_WINDOW),
        Ok(tokens) if tokens >= LEAST_BUDGET => Ok(tokens),
        _ => Err(format!("a budget is a number of tokens from {LEAST_BUDGET} on, or `window`")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share is a number from 0 to 1".to_owned()),
    }
}

/// An address that requests can go to.
pub(super) fn web_address(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match host.is_some_and(|host| !host.is_empty() && !host.starts_with('/') && !text.contains(char::is_whitespace)) {
        true => Ok(text.to_owned()),
        false => Err("an address begins with http:// or https://".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_an_amount_and_what_it_is_for() {
        for (text, expected) in [
            ("5$/day", CapLimit::DayDollars(5.0)),
            ("$2.50/conversation", CapLimit::ConversationDollars(2.5)),
            ("0$/day", CapLimit::DayDollars(0.0)),
            ("2Mtokens/day", CapLimit::DayTokens(2_000_000)),
            ("200k tokens / conversation", CapLimit::ConversationTokens(200_000)),
            ("7tokens/day", CapLimit::DayTokens(7)),
        ] {
            assert_eq!(cap_limit(text), Ok(expected), "{text}");
        }
        for text in [
            "5/day",
            "5$",
            "/day",
            "$/day",
            "-1$/day",
            "inf$/day",
            "5$/week",
            "1.5Mtokens/day",
            "99999999999999Mtokens/day",
        ] {
            assert!(cap_limit(text).is_err_and(|told| told.contains("as in 5$/day")), "{text}");
        }
    }
}
