//! A client of embeddings, as OpenAI and the servers compatible with it offer them.

use std::time::Duration;

use contexture_core::error::BoxError;
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::error::{ClientError, malformed};
use super::key::ApiKey;
use super::retry::RetryPolicy;
use super::send::Sender;
use crate::recall::Embedder;

/// How many texts are sent at once.
const BATCH: usize = 64;
/// Of a longer text, so much is sent: most models take no more.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// A search waits for its vector and has words without it, so a server that is not there is soon given up.
const RETRY: RetryPolicy =
    RetryPolicy { max_retries: 2, first_wait: Duration::from_millis(200), max_wait: Duration::from_secs(60) };

/// A client of an endpoint `…/embeddings`; cheap to clone.
///
/// ```no_run
/// use contexture::client::Embeddings;
///
/// # fn main() -> Result<(), contexture::client::ClientError> {
/// let local = Embeddings::new("http://127.0.0.1:11434/v1", "nomic-embed-text", None)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Embeddings {
    model: String,
    sender: Sender,
}

impl Embeddings {
    /// A model of a server beneath an address, which usually ends in `/v1`.
    ///
    /// # Errors
    /// The address or the key cannot be used.
    pub fn new(base_url: &str, model: impl Into<String>, key: Option<ApiKey>) -> Result<Self, ClientError> {
        let url = super::beneath(base_url, "embeddings")?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        if let Some(key) = &key {
            let value = HeaderValue::try_from(format!("Bearer {}", key.expose()));
            let problem = "it has characters that can't be sent".to_owned();
            let mut value = value.map_err(|_| ClientError::Option { option: "key", problem })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static("authorization"), value);
        }
        let (connect, idle) = (Duration::from_secs(10), Duration::from_secs(60));
        let sender = Sender::new(url, headers, key, RETRY, connect, idle)?;
        Ok(Self { model: model.into(), sender })
    }

    async fn batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ClientError> {
        let texts: Vec<&str> = texts.iter().map(|text| &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]).collect();
        let body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let response = self.sender.post(body.to_string()).await?;
        let rows = response["data"].as_array().ok_or_else(|| malformed("it has no list `data`"))?;
        let mut vectors = vec![Vec::new(); texts.len()];
        for (at, row) in rows.iter().enumerate() {
            let at = row["index"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(at);
            let numbers = row["embedding"].as_array().ok_or_else(|| malformed("a row has no `embedding`"))?;
            let numbers: Option<Vec<f32>> =
                numbers.iter().map(Value::as_f64).map(|number| number.map(|number| number as f32)).collect();
            let numbers = numbers.ok_or_else(|| malformed("an `embedding` has something that is no number"))?;
            *vectors.get_mut(at).ok_or_else(|| malformed("it has more rows than texts"))? = numbers;
        }
        let len = vectors.first().map_or(0, Vec::len);
        if len == 0 || vectors.iter().any(|vector| vector.len() != len) {
            return Err(malformed("its vectors are missing or of different length"));
        }
        Ok(vectors)
    }
}

impl Embedder for Embeddings {
    fn model(&self) -> &str {
        &self.model
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, BoxError>> {
        Box::pin(async move {
            let mut vectors = Vec::new();
            for batch in texts.chunks(BATCH) {
                vectors.extend(self.batch(batch).await?);
            }
            Ok(vectors)
        })
    }
}
