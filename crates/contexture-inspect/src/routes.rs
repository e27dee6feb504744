//! The routes of the API. `docs/reference/api.md` documents them.

use std::collections::HashMap;
use std::sync::PoisonError;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use contexture_core::percent::decoded_lossy as decoded;
use contexture_gateway::watch::Controls;
use contexture_gateway::write::StoreError;
use serde::Deserialize;
use serde_json::json;

use super::answer::{self, refused};
use super::archive::WindowQuery;
use super::bill::{BillGrouping, bill};
use super::controls;
use super::export::export;
use super::server::Inspector;
use super::view::{BlockText, WindowForm};

/// Most rows per page.
const MOST_ROWS: u64 = 500;

/// Default rows per page.
const USUAL_ROWS: u64 = 100;

/// Columns of the picture of a conversation, if nothing is said, and at most.
const USUAL_COLUMNS: u64 = 300;
const MOST_COLUMNS: u64 = 2_000;

/// Most bytes of a text per response.
const MOST_TEXT: u64 = 1 << 20;

/// Default bytes of a text per response.
const USUAL_TEXT: u64 = 64 << 10;

/// The shortest search text.
const LEAST_SEARCH: usize = 2;

/// Responds to a request to the API.
pub fn respond(inspector: &Inspector, method: &Method, route: &str, query: &str, body: &[u8]) -> Response<Body> {
    let query = Query::parse(query);
    if let Some(wrong) = query.wrong() {
        return refused(StatusCode::BAD_REQUEST, &wrong);
    }
    let parts: Vec<String> = route.split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let answered = match *method {
        Method::GET => read(inspector, &parts, &query),
        Method::POST | Method::DELETE => act(inspector, method, &parts, body),
        _ => Ok(None),
    };
    match answered {
        Ok(Some(response)) => response,
        Ok(None) => refused(StatusCode::NOT_FOUND, "there is no such thing here"),
        Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn read(inspector: &Inspector, parts: &[&str], query: &Query) -> Result<Option<Response<Body>>, StoreError> {
    let archive = inspector.archive();
    Ok(match parts {
        ["about"] => Some(answer::json(&inspector.about())),
        ["conversations"] => Some(answer::json(&archive.conversations(query.from(), query.limit())?)),
        ["conversations", id] => {
            open(inspector, id)?;
            archive.conversation(id)?.map(|line| answer::json(&line))
        }
        ["conversations", id, rest @ ..] if archive.conversation(id)?.is_some() => {
            open(inspector, id)?;
            read_conversation(inspector, id, rest, query)?
        }
        ["bill"] => match BillGrouping::named(query.get("by").unwrap_or("conversation")) {
            Some(by) => {
                let (unread, conversations) = archive.unread()?;
                let page = json!({"items": bill(archive, by)?, "unread": unread, "conversations": conversations});
                Some(answer::json(&page))
            }
            None => Some(refused(StatusCode::BAD_REQUEST, "`by` is conversation, day or model")),
        },
        ["search"] => {
            let words = query.get("q").unwrap_or_default();
            let within = query.get("conversation");
            if words.len() < LEAST_SEARCH {
                return Ok(Some(refused(StatusCode::BAD_REQUEST, "`q` needs at least two letters")));
            }
            if let Some(id) = within
                && archive.conversation(id)?.is_none()
            {
                return Ok(None);
            }
            Some(answer::json(&archive.search(words, within, query.number("before"), query.limit())?))
        }
        _ => None,
    })
}

fn read_conversation(
    inspector: &Inspector,
    id: &str,
    rest: &[&str],
    query: &Query,
) -> Result<Option<Response<Body>>, StoreError> {
    let archive = inspector.archive();
    let files = || -> Result<_, StoreError> { archive.timeline(id) };
    Ok(match rest {
        ["requests"] => Some(answer::json(&archive.requests(id, query.from(), query.limit())?)),
        ["events"] => Some(answer::json(&json!({"items": archive.events(id)?}))),
        ["overview"] => {
            let columns = query.number("columns").unwrap_or(USUAL_COLUMNS).clamp(1, MOST_COLUMNS);
            Some(answer::json(&archive.overview(id, columns)?))
        }
        ["requests", n, "story"] => archive.story(id, n.parse().unwrap_or(0))?.map(|story| answer::json(&story)),
        ["requests", n] => {
            let n: u64 = n.parse().unwrap_or(0);
            let line = archive.requests(id, n, 1)?.items.pop().filter(|line| line.n == n);
            line.map(|line| answer::json(&line))
        }
        ["requests", n, "window"] => {
            let Some(form) = WindowForm::named(query.get("form").unwrap_or("sent")) else {
                return Ok(Some(refused(StatusCode::BAD_REQUEST, "`form` is sent, came or before")));
            };
            let block = query.number("block").and_then(|block| block.try_into().ok());
            let by_size = match query.get("order") {
                None | Some("place") => false,
                Some("size") => true,
                Some(_) => return Ok(Some(refused(StatusCode::BAD_REQUEST, "`order` is place or size"))),
            };
            let asked = WindowQuery { form, by_size, from: query.from(), limit: query.limit(), block };
            archive.window(id, n.parse().unwrap_or(0), asked)?.map(|window| answer::json(&window))
        }
        ["blocks", block] => {
            let block: u32 = block.parse().unwrap_or(0);
            let limit = query.number("limit").unwrap_or(USUAL_TEXT).min(MOST_TEXT);
            match archive.has_block(id, block)? {
                true => archive.block(block, query.from(), limit)?.map(|text| answer::json(&text)),
                false => None,
            }
        }
        ["files"] => {
            let files = files()?.lock().unwrap_or_else(PoisonError::into_inner).files();
            Some(answer::json(&json!({"items": files})))
        }
        ["history"] => {
            let Some(path) = query.get("path") else {
                return Ok(Some(refused(StatusCode::BAD_REQUEST, "`path` is missing: it names a file")));
            };
            let events = files()?.lock().unwrap_or_else(PoisonError::into_inner).history(path);
            Some(answer::json(&json!({"path": path, "items": events})))
        }
        ["tools"] => Some(answer::json(&json!({"items": archive.tools(id)?}))),
        ["export"] => {
            let mut response = answer::of("text/html; charset=utf-8", export(archive, &inspector.about(), id)?);
            let name = format!("attachment; filename=\"contexture-{}.html\"", plain_name(id));
            if let Ok(name) = HeaderValue::from_str(&name) {
                response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
            }
            Some(response)
        }
        _ => None,
    })
}

/// Has a recording read that was only listed so far.
fn open(inspector: &Inspector, id: &str) -> Result<(), StoreError> {
    if inspector.archive().conversation(id)?.is_some_and(|line| line.is_unread) {
        inspector.open_recording(id);
    }
    Ok(())
}

fn plain_name(id: &str) -> String {
    id.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

#[derive(Deserialize)]
struct Pinning {
    block: u32,
    pinned: bool,
}

#[derive(Deserialize)]
struct FoldingPermission {
    allowed: bool,
}

fn act(
    inspector: &Inspector,
    method: &Method,
    parts: &[&str],
    body: &[u8],
) -> Result<Option<Response<Body>>, StoreError> {
    let archive = inspector.archive();
    if *method == Method::POST && parts == ["open"] {
        inspector.open_all();
        return Ok(Some(answer::json(&json!({"unread": archive.unread()?.0}))));
    }
    let ["conversations", id, rest @ ..] = parts else { return Ok(None) };
    if archive.conversation(id)?.is_none() {
        return Ok(None);
    }
    if *method == Method::POST && *rest == ["open"] {
        open(inspector, id)?;
        return Ok(archive.conversation(id)?.map(|line| answer::json(&line)));
    }
    if *method == Method::DELETE && rest.is_empty() {
        return forget(inspector, id).map(Some);
    }
    let Some(acting) = inspector.controls().filter(|_| *method == Method::POST) else {
        let why = "nothing can be changed about what is over: this works while a gateway runs";
        return Ok(Some(refused(StatusCode::CONFLICT, why)));
    };
    let wrong = || Some(refused(StatusCode::BAD_REQUEST, "the request's body is not what docs/reference/api.md says"));
    let unknown = || Some(refused(StatusCode::CONFLICT, "the gateway does not hold this conversation any more"));
    Ok(match rest {
        ["folding"] => match serde_json::from_slice::<FoldingPermission>(body) {
            Err(_) => wrong(),
            Ok(folding) => match acting.set_folding(id, folding.allowed) {
                None => unknown(),
                Some(stopped) => {
                    archive.note_stopped(id, stopped.as_deref())?;
                    inspector.tell("conversation", json!({"conversation": id}));
                    Some(answer::json(&json!({"stopped": stopped})))
                }
            },
        },
        ["pins"] => match serde_json::from_slice::<Pinning>(body) {
            Err(_) => wrong(),
            Ok(pinning) => {
                let block = archive.block(pinning.block, 0, u64::from(u32::MAX))?;
                let block = block.filter(|_| archive.has_block(id, pinning.block).unwrap_or(false));
                return pin(inspector, acting, id, block, pinning.pinned).map(|done| done.or_else(unknown));
            }
        },
        _ => None,
    })
}

fn pin(
    inspector: &Inspector,
    acting: &dyn Controls,
    id: &str,
    block: Option<BlockText>,
    pinned: bool,
) -> Result<Option<Response<Body>>, StoreError> {
    let Some(block) = block else { return Ok(Some(refused(StatusCode::NOT_FOUND, "there is no such block"))) };
    if !controls::can_pin(&block) {
        let why = "only what was said, called and returned can be pinned; instructions and tools always stay";
        return Ok(Some(refused(StatusCode::CONFLICT, why)));
    }
    if !controls::pin(acting, id, &block, pinned) {
        return Ok(None);
    }
    inspector.archive().note_pin(id, block.id, pinned)?;
    inspector.tell("conversation", json!({"conversation": id}));
    Ok(Some(answer::json(&json!({"block": block.id, "pinned": pinned}))))
}

fn forget(inspector: &Inspector, id: &str) -> Result<Response<Body>, StoreError> {
    if !inspector.about().can_forget {
        return Ok(refused(StatusCode::CONFLICT, "recordings are files: delete the file to forget one"));
    }
    inspector.forget(id)?;
    inspector.tell("forgotten", json!({"conversation": id}));
    Ok(answer::json(&json!({"forgotten": id})))
}

/// The parameters that are numbers.
const NUMBERS: &[&str] = &["from", "limit", "before", "block", "columns"];

/// Those of them that count something, so that none is too few.
const COUNTS: &[&str] = &["limit", "columns"];

/// The query string of a URL.
struct Query {
    pairs: HashMap<String, String>,
}

impl Query {
    fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self { pairs: pairs.map(|(name, value)| (decoded(name), decoded(&value.replace('+', " ")))).collect() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.pairs.get(name).map(String::as_str)
    }

    /// What is wrong with it, in a sentence.
    fn wrong(&self) -> Option<String> {
        let least = |name: &str| u64::from(COUNTS.contains(&name));
        let fits = |name: &str, value: &str| value.parse::<u64>().is_ok_and(|number| number >= least(name));
        let name = NUMBERS.iter().find(|name| self.get(name).is_some_and(|value| !fits(name, value)))?;
        let least = if least(name) > 0 { ", at least 1" } else { "" };
        Some(format!("`{name}` is a whole number{least}; `{}` is not", self.get(name).unwrap_or_default()))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    fn from(&self) -> u64 {
        // No list is longer, and no number in the database is larger.
        self.number("from").unwrap_or(0).min(u64::from(u32::MAX))
    }

    fn limit(&self) -> u64 {
        self.number("limit").unwrap_or(USUAL_ROWS).clamp(1, MOST_ROWS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_decoded() {
        assert_eq!(decoded("a%2Fb%20c%"), "a/b c%");
        assert_eq!(decoded("%zz%C3%BC"), "%zzü");
        let query = Query::parse("q=a+b%26c&limit=9999");
        assert_eq!((query.get("q"), query.limit(), query.from()), (Some("a b&c"), MOST_ROWS, 0));
    }

    #[test]
    fn what_is_no_number_is_said_to_be_none() {
        let wrong = |query: &str| Query::parse(query).wrong();
        assert_eq!(wrong("limit=5&from=0&q=abc"), None);
        assert_eq!(wrong("limit=abc").as_deref(), Some("`limit` is a whole number, at least 1; `abc` is not"));
        for query in
            ["from=-1", "limit=", "limit=0", "columns=0", "before=1.5", "block=0x1", "columns=99999999999999999999999"]
        {
            assert!(wrong(query).is_some(), "{query}");
        }
    }
}
