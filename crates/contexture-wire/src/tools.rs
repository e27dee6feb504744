//! The tools that a client declares in a request, and the request without some of them.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::anthropic::MARK;
use super::fields::Fields;
use super::format::Format;
use super::gemini::either;
use super::request::Request;

/// A tool that a client declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredTool<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The declaration, as it came.
    pub json: &'a str,
    /// Whether a request may be sent without it: it is the client's own, and carries no cache mark.
    pub may_leave: bool,
    /// Whether it is declared without being loaded, or finds such tools.
    pub is_deferred: bool,
}

impl<'a> Request<'a> {
    /// The tools that it declares, in order. What has no name, as searches of the provider, is none of them.
    ///
    /// ```
    /// use contexture_wire::{Format, Request};
    ///
    /// let body = r#"{"tools":[{"name":"Read"}, {"name":"mcp__docs__find"}],"messages":[]}"#;
    /// let request = Request::parse(Format::Messages, body)?;
    /// let names: Vec<_> = request.declared_tools().into_iter().map(|tool| tool.name).collect();
    /// assert_eq!(names, ["Read", "mcp__docs__find"]);
    /// let less = request.without_tools(&|name| name.starts_with("mcp__"));
    /// assert_eq!(less.as_deref(), Some(r#"{"tools":[{"name":"Read"}],"messages":[]}"#));
    /// # Ok::<(), contexture_wire::WireError>(())
    /// ```
    pub fn declared_tools(&self) -> Vec<DeclaredTool<'a>> {
        self.tool_lists().into_iter().flatten().filter_map(|json| declared(self.format(), json)).collect()
    }

    /// The body without some of the tools that may leave, by their names; everything else keeps its bytes. A list of which
    /// nothing would be left stays. `None` if nothing leaves.
    pub fn without_tools(&self, leaves: &dyn Fn(&str) -> bool) -> Option<String> {
        let body = self.body();
        let mut cuts: Vec<Range<usize>> = Vec::new();
        for list in self.tool_lists() {
            let is_leaving = |json: &&RawValue| {
                declared(self.format(), json).is_some_and(|tool| tool.may_leave && leaves(&tool.name))
            };
            let leaving: Vec<bool> = list.iter().map(is_leaving).collect();
            let Some(first_kept) = leaving.iter().position(|leaves| !leaves) else { continue };
            let ranges: Vec<Range<usize>> = list.iter().map(|json| range_in(body, json.get())).collect();
            for (at, _) in leaving.iter().enumerate().filter(|(_, leaves)| **leaves) {
                // With the comma that is between it and what stays.
                cuts.push(if at < first_kept {
                    ranges[at].start..ranges[at + 1].start
                } else {
                    ranges[at - 1].end..ranges[at].end
                });
            }
        }
        cuts.sort_unstable_by_key(|cut| cut.start);
        let mut left = String::with_capacity(body.len());
        let mut from = 0;
        for cut in &cuts {
            left.push_str(&body[from..cut.start]);
            from = cut.end;
        }
        left.push_str(&body[from..]);
        (!cuts.is_empty()).then_some(left)
    }

    /// The lists of tools that clients declare.
    fn tool_lists(&self) -> Vec<Vec<&'a RawValue>> {
        let list = |json: &'a RawValue| serde_json::from_str::<Vec<&'a RawValue>>(json.get()).unwrap_or_default();
        let Some(tools) = self.field("tools").map(list) else { return Vec::new() };
        if self.format() != Format::Gemini {
            return vec![tools];
        }
        let functions = tools.into_iter().filter_map(|entry| {
            let fields = Fields::parse(entry.get()).ok()?;
            either(&fields, "functionDeclarations").map(list)
        });
        functions.collect()
    }
}

/// The tool that a declaration is of, if it has a name.
fn declared<'a>(format: Format, json: &'a RawValue) -> Option<DeclaredTool<'a>> {
    let fields = Fields::parse(json.get()).ok()?;
    let kind = fields.text("type").unwrap_or_default();
    let name = match (format, &*kind) {
        (Format::Chat, "function" | "custom") => Fields::parse(fields.get(&kind)?.get()).ok()?.text("name"),
        _ => fields.text("name"),
    };
    let is_search = |name: &str| name.replace('_', "").to_ascii_lowercase().starts_with("toolsearch");
    let is_deferred = fields.is_true("defer_loading") || is_search(&kind) || name.as_deref().is_some_and(is_search);
    let is_own = matches!((format, &*kind), (Format::Messages | Format::Gemini, "") | (_, "function" | "custom"));
    let may_leave = is_own && !json.get().contains(MARK);
    // A search has no name in some formats.
    let name = name.or_else(|| is_deferred.then_some(kind))?;
    Some(DeclaredTool { name, json: json.get(), may_leave, is_deferred })
}

/// Where a part of a body is.
fn range_in(body: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - body.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: Format, body: &str, leaving: &[&str], expected: Option<&str>) {
        let request = Request::parse(format, body).unwrap();
        assert_eq!(request.without_tools(&|name| leaving.contains(&name)).as_deref(), expected, "{body}");
    }

    #[test]
    fn tools_leave_with_one_comma_and_nothing_else_changes() {
        let body = |tools: &str| format!("{{ \"n\" : 1.0, \"tools\" : [ {tools} ] ,\n \"messages\":[ ] }}");
        let all = body(r#"{"name":"a"} , {"name":"b"},{"name":"c"} ,{"name":"d"}"#);
        for (leaving, left) in [
            (&["a"][..], r#"{"name":"b"},{"name":"c"} ,{"name":"d"}"#),
            (&["b", "c"], r#"{"name":"a"} ,{"name":"d"}"#),
            (&["a", "b", "d"], r#"{"name":"c"}"#),
            (&["d", "c"], r#"{"name":"a"} , {"name":"b"}"#),
            (&["a", "c"], r#"{"name":"b"} ,{"name":"d"}"#),
        ] {
            check(Format::Messages, &all, leaving, Some(&body(left)));
        }
        check(Format::Messages, &all, &["a", "b", "c", "d"], None);
        check(Format::Messages, &all, &["e"], None);
        check(Format::Messages, r#"{"messages":[]}"#, &["a"], None);
        check(Format::Messages, r#"{"tools":{"name":"a"},"messages":[]}"#, &["a"], None);
    }

    #[test]
    fn each_format_names_its_tools_in_its_own_place() {
        check(
            Format::Chat,
            r#"{"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}],"messages":[]}"#,
            &["a"],
            Some(r#"{"tools":[{"type":"function","function":{"name":"b"}}],"messages":[]}"#),
        );
        check(
            Format::Responses,
            r#"{"tools":[{"type":"custom","name":"a"},{"type":"web_search"},{"type":"function","name":"b"}],"input":[]}"#,
            &["a", "b", "web_search"],
            Some(r#"{"tools":[{"type":"web_search"}],"input":[]}"#),
        );
        check(
            Format::Gemini,
            r#"{"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"}]},{"googleSearch":{}}],"contents":[]}"#,
            &["a"],
            Some(r#"{"tools":[{"functionDeclarations":[{"name":"b"}]},{"googleSearch":{}}],"contents":[]}"#),
        );
    }

    #[test]
    fn marked_tools_and_those_of_the_provider_stay() {
        let body = r#"{"tools":[{"name":"a","cache_control":{"type":"ephemeral"}},{"type":"bash_20250124","name":"bash"},{"name":"b"}],"messages":[]}"#;
        let left = r#"{"tools":[{"name":"a","cache_control":{"type":"ephemeral"}},{"type":"bash_20250124","name":"bash"}],"messages":[]}"#;
        check(Format::Messages, body, &["a", "b", "bash"], Some(left));
        for (format, tool) in [
            (Format::Messages, r#"{"name":"x","defer_loading":true}"#),
            (Format::Messages, r#"{"name":"ToolSearch"}"#),
            (Format::Messages, r#"{"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"}"#),
            (Format::Responses, r#"{"type":"tool_search"}"#),
        ] {
            let body = format!("{{\"tools\":[{tool}],\"{}\":[]}}", format.list());
            let request = Request::parse(format, &body).unwrap();
            assert!(request.declared_tools()[0].is_deferred, "{body}");
        }
    }
}
