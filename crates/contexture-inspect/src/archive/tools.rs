//! The tools that a conversation declares, with roughly what they cost.

use std::collections::{HashMap, HashSet};

use contexture_gateway::models::Models;
use contexture_gateway::write::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::view::ToolLine;
use super::super::window::TokenScale;
use super::{Archive, blocks, lists};

impl Archive {
    /// The tools of a conversation that were declared or called: those that fill most of the windows first.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn tools(&self, conversation: &str) -> Result<Vec<ToolLine>, StoreError> {
        let connection = self.lock();
        let calls_sql = "SELECT count(*) FROM places JOIN blocks ON id = block
                         WHERE conversation = ?1 AND kind = 'call' AND name = ?2 AND is_sent = 0";
        let mut calls = connection.prepare_cached(calls_sql)?;
        let newest: i64 = connection
            .query_row("SELECT requests FROM conversations WHERE id = ?1", params![conversation], |row| row.get(0))
            .optional()?
            .unwrap_or(0);
        let scale = newest_scale(&connection, conversation, newest as u64)?;
        let billing = TokenCosts::read(&connection, conversation, &self.models)?;
        let sql = "SELECT block, n, left_n, name, tokens FROM places JOIN blocks ON id = block
                   WHERE conversation = ?1 AND source = 'tools' ORDER BY number";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![conversation])?;
        let mut tools: Vec<ToolLine> = Vec::new();
        while let Some(row) = rows.next()? {
            let (name, tokens) = (row.get::<_, String>(3)?, scale.of(row.get::<_, i64>(4)? as u64));
            let first = row.get::<_, i64>(1)?;
            let last = row.get::<_, Option<i64>>(2)?.map_or(newest, |left| left - 1);
            let requests = (last - first + 1).max(0) as u64;
            let (billed, dollars) = billing.of(tokens, first, last);
            let count: i64 = calls.query_row(params![conversation, name], |row| row.get(0))?;
            let (calls, block) = (count as u64, row.get(0)?);
            tools.push(ToolLine { name, tokens, calls, requests, billed, dollars, block, ..ToolLine::default() });
        }
        drop(rows);
        drop(statement);
        add_uses(&connection, conversation, newest, scale, &mut tools)?;
        let fills = |tool: &ToolLine| tool.carried + tool.tokens * tool.requests;
        tools.sort_by(|one, other| fills(other).cmp(&fills(one)).then(one.name.cmp(&other.name)));
        Ok(tools)
    }
}

/// The scale at which our own count becomes that of the newest request.
fn newest_scale(connection: &Connection, conversation: &str, newest: u64) -> Result<TokenScale, StoreError> {
    let sent = lists::read(connection, conversation, newest)?.sent;
    let own = blocks::rows(connection, &sent)?.values().map(|row| row.tokens).sum();
    let sql = "SELECT tokens FROM requests WHERE conversation = ?1 AND n = ?2";
    let total: Option<i64> =
        connection.query_row(sql, params![conversation, newest as i64], |row| row.get(0)).optional()?;
    Ok(TokenScale::new(total.unwrap_or(0) as u64, own))
}

/// Adds what the calls of tools and their outputs fill of the windows.
fn add_uses(
    connection: &Connection,
    conversation: &str,
    newest: i64,
    scale: TokenScale,
    tools: &mut Vec<ToolLine>,
) -> Result<(), StoreError> {
    let sql =
        "SELECT block, n, left_n, kind = 'call', name, call, tokens, is_sent FROM places JOIN blocks ON id = block
               WHERE conversation = ?1 AND kind IN ('call', 'output') ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![conversation])?;
    let mut by_call: HashMap<String, usize> = HashMap::new();
    let mut places: HashMap<String, usize> =
        tools.iter().enumerate().map(|(place, tool)| (tool.name.clone(), place)).collect();
    let mut counted: HashSet<String> = HashSet::new();
    while let Some(row) = rows.next()? {
        let (is_call, name, call): (bool, String, String) = (row.get(3)?, row.get(4)?, row.get(5)?);
        let (first, tokens) = (row.get::<_, i64>(1)?, scale.of(row.get::<_, i64>(6)? as u64));
        let last = row.get::<_, Option<i64>>(2)?.map_or(newest, |left| left - 1);
        let requests = (last - first + 1).max(0) as u64;
        let place = match is_call {
            true => {
                let place = *places.entry(name.clone()).or_insert_with(|| {
                    tools.push(ToolLine { name: name.clone(), ..ToolLine::default() });
                    tools.len() - 1
                });
                by_call.insert(call.clone(), place);
                place
            }
            false => match by_call.get(&call) {
                Some(place) => *place,
                None => continue,
            },
        };
        let tool = &mut tools[place];
        tool.carried += tokens * requests;
        match is_call {
            true if counted.insert(call.clone()) => {
                tool.call_tokens += tokens;
                tool.calls += u64::from(tool.block == 0);
            }
            true => {}
            // A shortened output is sent in the place of the one that came.
            false if row.get::<_, bool>(7)? => {}
            false => {
                tool.output_tokens += tokens;
                if tool.largest.is_none_or(|(_, _, most)| tokens > most) {
                    tool.largest = Some((row.get(0)?, first as u64, tokens));
                }
            }
        }
    }
    Ok(())
}

/// Roughly what a token before the messages cost in each request.
struct TokenCosts {
    /// The cost of a token, and its dollars where known.
    per_token: Vec<(i64, f64, Option<f64>)>,
}

impl TokenCosts {
    fn read(connection: &Connection, conversation: &str, models: &Models) -> Result<Self, StoreError> {
        let sql = "SELECT n, json_extract(line, '$.record.usage.cache_read'),
                          json_extract(line, '$.record.usage.input'), json_extract(line, '$.record.bill.billed'),
                          json_extract(line, '$.record.bill.sent'), json_extract(line, '$.record.dollars[0]'),
                          json_extract(line, '$.record.model')
                   FROM requests WHERE conversation = ?1 ORDER BY n";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![conversation])?;
        let mut per_token = Vec::new();
        while let Some(row) = rows.next()? {
            let number = |at: usize| row.get::<_, Option<f64>>(at).map(Option::unwrap_or_default);
            let (read, plain, billed, sent) = (number(1)?, number(2)?, number(3)?, number(4)?);
            // Tools come before everything else: if anything was read from the cache, they were.
            let model = row.get::<_, Option<String>>(6)?.unwrap_or_default();
            let read_share = models.get(&model).read;
            let written = sent - read - plain;
            let share = match () {
                () if sent <= 0.0 => 0.0,
                () if read > 0.0 => read_share,
                () if written > 0.0 => ((billed - plain) / written).clamp(1.0, 2.0),
                () => 1.0,
            };
            let dollars: Option<f64> = row.get(5)?;
            per_token.push((row.get(0)?, share, dollars.map(|dollars| share * dollars / 1e6)));
        }
        Ok(Self { per_token })
    }

    fn of(&self, tokens: u64, first: i64, last: i64) -> (f64, Option<f64>) {
        let requests = self.per_token.iter().filter(|(n, ..)| (first..=last).contains(n));
        let (mut billed, mut dollars) = (0.0, Some(0.0));
        for (_, share, price) in requests {
            billed += share * tokens as f64;
            dollars = dollars.zip(*price).map(|(sum, price)| sum + price * tokens as f64);
        }
        (billed, dollars)
    }
}
