//! What a server asks the user while one of its tools is called.

use contexture_core::BoxFuture;
use contexture_core::schema::Schema;
use serde_json::{Map, Value, json};

/// The most fields of a question.
const MAX_FIELDS: usize = 32;

/// The most choices of a field.
const MAX_CHOICES: usize = 200;

/// The keywords of a field that its value is checked by.
const CHECKED: [&str; 8] = ["type", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"];

/// The most bytes of a text that is shown.
const MAX_TEXT_BYTES: usize = 4 * 1024;

/// Whoever uses a server: asks the user for it, and is told how its calls go on.
///
/// A server may ask only while one of its tools is called. Both methods are called from the tasks of the connection and
/// must not block.
pub trait McpHost: Send + Sync + 'static {
    /// Whether there is a user who can be asked. Servers are told, and do not ask if there is none.
    fn can_ask(&self) -> bool;

    /// Asks the user. The future is dropped if the call is cancelled.
    fn ask(&self, question: McpQuestion) -> BoxFuture<'_, McpReply>;

    /// A call goes on.
    fn progress(&self, progress: McpProgress);
}

/// Nobody: questions are cancelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoHost;

impl McpHost for NoHost {
    fn can_ask(&self) -> bool {
        false
    }

    fn ask(&self, _: McpQuestion) -> BoxFuture<'_, McpReply> {
        Box::pin(std::future::ready(McpReply::Cancel))
    }

    fn progress(&self, _: McpProgress) {}
}

/// A question of a server to the user.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct McpQuestion {
    /// The server that asks.
    pub server: String,
    /// What it says.
    pub message: String,
    /// What it wants to know; if there is nothing, the user agrees or not.
    pub fields: Vec<McpField>,
}

/// One thing that a server wants to know.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct McpField {
    /// The key of the value.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// More about it; may be empty.
    pub description: String,
    /// Which values it may have.
    pub kind: McpFieldKind,
    /// Whether it may not be left out.
    pub is_required: bool,
    /// Its value if the user says nothing.
    pub default: Option<Value>,
}

/// Which values a field may have.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum McpFieldKind {
    /// A text.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// One of these values, each with its name for people.
    Choice(Vec<(String, String)>),
    /// Some of these values, each with its name for people.
    Choices(Vec<(String, String)>),
}

impl McpField {
    /// The value that a user wrote as text; an empty text is the default, or nothing.
    ///
    /// # Errors
    /// The text is no such value: what is expected.
    pub fn read(&self, text: &str) -> Result<Option<Value>, String> {
        let text = text.trim();
        if text.is_empty() {
            return match (&self.default, self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, true) => Err("it is needed".to_owned()),
                (None, false) => Ok(None),
            };
        }
        let one = |choices: &[(String, String)], text: &str| {
            let numbered = text.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
            let named = choices.iter().find(|(value, title)| value == text || title == text);
            named.or(numbered).map(|(value, _)| Value::from(value.as_str()))
        };
        match &self.kind {
            McpFieldKind::Text => Some(text.into()),
            McpFieldKind::Number => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
            McpFieldKind::Integer => text.parse::<i64>().ok().map(Value::from),
            McpFieldKind::Boolean => match text.to_lowercase().as_str() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            McpFieldKind::Choice(choices) => one(choices, text),
            McpFieldKind::Choices(choices) => {
                let values: Option<Vec<Value>> = text.split(',').map(|part| one(choices, part.trim())).collect();
                values.map(Value::from)
            }
        }
        .map(Some)
        .ok_or_else(|| self.expected())
    }

    /// What the user may write.
    pub fn expected(&self) -> String {
        let listed = |choices: &[(String, String)]| -> String {
            let listed = choices.iter().enumerate().map(|(at, (_, title))| format!("{} {title}", at + 1));
            listed.collect::<Vec<_>>().join(", ")
        };
        match &self.kind {
            McpFieldKind::Text => "a text".to_owned(),
            McpFieldKind::Number => "a number".to_owned(),
            McpFieldKind::Integer => "a whole number".to_owned(),
            McpFieldKind::Boolean => "yes or no".to_owned(),
            McpFieldKind::Choice(choices) => format!("one of: {}", listed(choices)),
            McpFieldKind::Choices(choices) => format!("some of, with commas: {}", listed(choices)),
        }
    }
}

/// What the user says to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum McpReply {
    /// These values, by the names of fields.
    Accept(Map<String, Value>),
    /// No.
    Decline,
    /// Nothing: the user ended it.
    Cancel,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct McpProgress {
    /// The server.
    pub server: String,
    /// How far it is.
    pub done: f64,
    /// How far it goes, if the server knows.
    pub total: Option<f64>,
    /// What it does; may be empty.
    pub message: String,
}

impl McpProgress {
    /// What a notification says.
    pub(super) fn read(server: &str, params: &Value) -> Option<Self> {
        Some(Self {
            server: server.to_owned(),
            done: params["progress"].as_f64()?,
            total: params["total"].as_f64(),
            message: cut(params["message"].as_str().unwrap_or_default()),
        })
    }
}

/// Asks the user what a server wants to know, and returns the result for the server.
///
/// # Errors
/// The server asks in a way that is not offered: what to tell it.
pub(super) async fn ask(host: &dyn McpHost, server: &str, params: &Value) -> Result<Value, String> {
    if !host.can_ask() {
        return Err("nobody can be asked here".to_owned());
    }
    if params["mode"].as_str().is_some_and(|mode| mode != "form") {
        return Err("only forms are asked".to_owned());
    }
    let schema = Schema::new(&checked(&params["requestedSchema"]))?;
    let question = McpQuestion {
        server: server.to_owned(),
        message: cut(params["message"].as_str().unwrap_or_default()),
        fields: fields(&params["requestedSchema"])?,
    };
    Ok(match host.ask(question).await {
        McpReply::Accept(content) => {
            let content = Value::Object(content);
            match schema.check(&content) {
                Ok(()) => json!({ "action": "accept", "content": content }),
                Err(problem) => return Err(format!("what the user said does not fit: {problem}")),
            }
        }
        McpReply::Decline => json!({ "action": "decline" }),
        McpReply::Cancel => json!({ "action": "cancel" }),
    })
}

/// The part of a form's schema that says which values are valid. Servers add keywords of their own, which say nothing
/// about that.
fn checked(schema: &Value) -> Value {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let properties: Map<String, Value> = fields.map(|(name, field)| (name.clone(), constraints(field))).collect();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The keywords of a field that are checked.
fn constraints(field: &Value) -> Value {
    let kept = CHECKED.into_iter().filter_map(|key| Some((key.to_owned(), field.get(key)?.clone())));
    let mut kept: Map<String, Value> = kept.collect();
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = field[key].as_array() {
            let choices: Vec<Value> = choices.iter().map(|choice| json!({ "const": choice["const"] })).collect();
            kept.insert(key.to_owned(), choices.into());
        }
    }
    if let Some(items) = field.get("items") {
        kept.insert("items".to_owned(), constraints(items));
    }
    Value::Object(kept)
}

/// The fields of a form, which is an object without anything nested.
fn fields(schema: &Value) -> Result<Vec<McpField>, String> {
    let properties = schema["properties"].as_object().ok_or("a form has `properties`")?;
    if properties.len() > MAX_FIELDS {
        return Err(format!("a form has at most {MAX_FIELDS} fields"));
    }
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |(name, field): (&String, &Value)| {
        let text = |key: &str| field[key].as_str().map(cut);
        Ok(McpField {
            name: name.clone(),
            title: text("title").unwrap_or_else(|| cut(name)),
            description: text("description").unwrap_or_default(),
            kind: kind(field).ok_or_else(|| format!("the field `{}` is of no kind that is asked", cut(name)))?,
            is_required: required.contains(&name.as_str()),
            default: field.get("default").cloned(),
        })
    };
    properties.iter().map(field).collect()
}

fn kind(field: &Value) -> Option<McpFieldKind> {
    Some(match field["type"].as_str()? {
        "string" => choices(field).map_or(McpFieldKind::Text, McpFieldKind::Choice),
        "number" => McpFieldKind::Number,
        "integer" => McpFieldKind::Integer,
        "boolean" => McpFieldKind::Boolean,
        "array" => McpFieldKind::Choices(choices(&field["items"])?),
        _ => return None,
    })
}

/// The values of a field that has only some, in each of the forms that the revisions have for them.
fn choices(field: &Value) -> Option<Vec<(String, String)>> {
    let titled = field["oneOf"].as_array().or(field["anyOf"].as_array());
    let choices: Vec<(String, String)> = match (titled, field["enum"].as_array()) {
        (Some(titled), _) => {
            let one = |choice: &Value| {
                let value = choice["const"].as_str()?;
                Some((value.to_owned(), cut(choice["title"].as_str().unwrap_or(value))))
            };
            titled.iter().filter_map(one).collect()
        }
        (None, Some(values)) => {
            let name = |at: usize| field["enumNames"][at].as_str();
            let one = |(at, value): (usize, &Value)| {
                let value = value.as_str()?;
                Some((value.to_owned(), cut(name(at).unwrap_or(value))))
            };
            values.iter().enumerate().filter_map(one).collect()
        }
        (None, None) => return None,
    };
    (1..=MAX_CHOICES).contains(&choices.len()).then_some(choices)
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Says(McpReply);

    impl McpHost for Says {
        fn can_ask(&self) -> bool {
            true
        }

        fn ask(&self, _: McpQuestion) -> BoxFuture<'_, McpReply> {
            Box::pin(std::future::ready(self.0.clone()))
        }

        fn progress(&self, _: McpProgress) {}
    }

    fn form() -> Value {
        json!({ "type": "object", "required": ["size"], "properties": {
            "size": { "type": "integer", "minimum": 1, "title": "Size" },
            "tea": { "type": "string", "enum": ["a", "b"], "enumNames": ["Assam", "Darjeeling"] },
            "with": { "type": "array", "items": { "anyOf": [{ "const": "m", "title": "Milk" }, { "const": "s" }] } },
            "hot": { "type": "boolean", "default": true },
        }})
    }

    #[test]
    fn fields_read_what_people_write() {
        let fields = fields(&form()).unwrap();
        let read = |name: &str, text: &str| fields.iter().find(|field| field.name == name).unwrap().read(text);
        assert_eq!(read("size", " 3 "), Ok(Some(json!(3))));
        assert_eq!(read("size", "many"), Err("a whole number".to_owned()));
        assert_eq!(read("size", ""), Err("it is needed".to_owned()));
        assert_eq!(read("tea", "2"), Ok(Some(json!("b"))));
        assert_eq!(read("tea", "Assam"), Ok(Some(json!("a"))));
        assert_eq!(read("tea", "x"), Err("one of: 1 Assam, 2 Darjeeling".to_owned()));
        assert_eq!(read("tea", ""), Ok(None));
        assert_eq!(read("with", "Milk, 2"), Ok(Some(json!(["m", "s"]))));
        assert_eq!(read("with", "9"), Err("some of, with commas: 1 Milk, 2 s".to_owned()));
        assert_eq!(read("hot", ""), Ok(Some(json!(true))));
        assert_eq!(read("hot", "N"), Ok(Some(json!(false))));
    }

    #[tokio::test]
    async fn what_does_not_fit_the_form_is_not_sent() {
        let asked = |reply: McpReply, params: Value| async move { ask(&Says(reply), "s", &params).await };
        let params = json!({ "message": "Which?", "requestedSchema": form() });
        let content = json!({ "size": 2 }).as_object().unwrap().clone();
        let accepted = json!({ "action": "accept", "content": { "size": 2 } });
        assert_eq!(asked(McpReply::Accept(content), params.clone()).await, Ok(accepted));
        assert_eq!(asked(McpReply::Decline, params.clone()).await, Ok(json!({ "action": "decline" })));
        let content = json!({ "size": 0 }).as_object().unwrap().clone();
        assert!(asked(McpReply::Accept(content), params).await.unwrap_err().contains("does not fit"));
    }

    #[tokio::test]
    async fn hostile_forms_are_refused() {
        let many: Map<String, Value> = (0..100).map(|n| (n.to_string(), json!({ "type": "string" }))).collect();
        for schema in [
            json!(null),
            json!({}),
            json!({ "type": "object", "properties": { "a": { "type": "object" } } }),
            json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "string" } } } }),
            json!({ "type": "object", "properties": many }),
        ] {
            let params = json!({ "message": "m", "requestedSchema": schema });
            assert!(ask(&Says(McpReply::Decline), "s", &params).await.is_err(), "{schema}");
        }
        let long = json!({ "message": "é".repeat(1 << 20), "requestedSchema": form(), "mode": "url" });
        assert!(ask(&Says(McpReply::Decline), "s", &long).await.is_err());
        assert!(cut(&"é".repeat(1 << 20)).len() <= MAX_TEXT_BYTES);
    }
}
