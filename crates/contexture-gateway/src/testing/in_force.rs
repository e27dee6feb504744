//! What is in force in a request as its provider sees it, written from the types of the SDKs anthropic 2.10.0 and openai
//! 3.51.0, without the table that the gateway itself goes by.

use std::collections::BTreeMap;

use contexture::wire::Format;
use serde_json::Value;

/// What is set, by names, each with its value. All fields of the request beside its messages are among it.
pub fn in_force(format: Format, body: &str) -> BTreeMap<String, String> {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let list = match format {
        Format::Messages | Format::Chat => "messages",
        Format::Responses => "input",
        Format::Gemini => "contents",
    };
    let fields = body.as_object().into_iter().flatten().filter(|(name, _)| *name != list && *name != "stream");
    let mut set: BTreeMap<String, String> =
        fields.map(|(name, value)| (format!("field {name}"), value.to_string())).collect();
    let messages = body[list].as_array().cloned().unwrap_or_default();
    let newest_of_user = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    for (at, message) in messages.iter().enumerate() {
        match format {
            Format::Messages => of_message(message, at < newest_of_user, &mut set),
            Format::Responses => of_item(message, &mut set),
            Format::Chat | Format::Gemini => {}
        }
    }
    if body["prompt_cache_options"]["mode"] == "explicit" {
        let has_mark = body[list].to_string().contains("\"prompt_cache_breakpoint\"");
        set.insert("caching".to_owned(), has_mark.to_string());
    }
    set
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn of_message(message: &Value, is_before_user: bool, set: &mut BTreeMap<String, String>) {
    for (name, value) in message["output_config"].as_object().into_iter().flatten() {
        set.insert(format!("output {name}"), value.to_string());
    }
    for block in list(&message["content"]) {
        match block["type"].as_str().unwrap_or_default() {
            "tool_result" => {
                for part in list(&block["content"]).filter(|part| part["type"] == "tool_reference") {
                    set.insert(format!("tool {}", text(&part["tool_name"])), "loaded".to_owned());
                }
            }
            "tool_search_tool_result" => {
                for part in list(&block["content"]["tool_references"]) {
                    set.insert(format!("tool {}", text(&part["tool_name"])), "loaded".to_owned());
                }
            }
            kind @ ("tool_addition" | "tool_removal") => {
                set.insert(format!("tool {}", text(&block["tool"]["name"])), kind.to_owned());
            }
            "compaction" => {
                set.insert("summary".to_owned(), block.to_string());
            }
            "text" if message["role"] == "system" => {
                let has_left = message["clear_at"] == "next_user_message" && is_before_user;
                if !has_left {
                    set.insert("instructions".to_owned(), text(&block["text"]));
                }
            }
            _ => {}
        }
    }
}

fn of_item(item: &Value, set: &mut BTreeMap<String, String>) {
    match item["type"].as_str().unwrap_or("message") {
        "additional_tools" | "tool_search_output" => {
            for tool in list(&item["tools"]) {
                set.insert(format!("tool {}", text(&tool["name"])), "loaded".to_owned());
            }
        }
        kind @ ("configuration_update" | "compaction") => {
            set.insert(kind.to_owned(), item.to_string());
        }
        "mcp_list_tools" => {
            set.insert(format!("server {}", text(&item["server_label"])), item["tools"].to_string());
        }
        _ => {}
    }
}
