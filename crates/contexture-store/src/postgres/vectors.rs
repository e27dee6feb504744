//! Vectors beside the documents of the search index.

use std::collections::HashMap;

use contexture_core::search::{Nearest, TextVector};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

use super::connection::Parameters;
use super::hash;
use super::outcome::{OperationResult, read};

/// Adds vectors, except to documents that do not exist or have no text: what was forgotten meanwhile gets none.
pub(super) async fn add(client: &Client, scope: &[u8], vectors: &[(String, TextVector)]) -> Result<(), Error> {
    let last: HashMap<&str, &TextVector> = vectors.iter().map(|(id, vector)| (id.as_str(), vector)).collect();
    let documents: Vec<Vec<u8>> = last.keys().map(|id| hash(id)).collect();
    let models: Vec<&[u8]> = last.values().map(|vector| vector.model().as_bytes()).collect();
    let numbers: Vec<&[u8]> = last.values().map(|vector| vector.as_bytes()).collect();
    let sql = "INSERT INTO contexture_search_vectors (scope, document, model, numbers) \
               SELECT $1, v.document, v.model, v.numbers FROM unnest($2, $3, $4) AS v (document, model, numbers) \
               WHERE EXISTS (SELECT 1 FROM contexture_search_documents AS d \
               WHERE d.scope = $1 AND d.document = v.document AND length(d.text) > 0) \
               ON CONFLICT (scope, document) DO UPDATE SET model = EXCLUDED.model, numbers = EXCLUDED.numbers";
    let parameters: Parameters<'_> = &[
        (&scope, Type::BYTEA),
        (&documents, Type::BYTEA_ARRAY),
        (&models, Type::BYTEA_ARRAY),
        (&numbers, Type::BYTEA_ARRAY),
    ];
    client.query_typed(sql, parameters).await.map(drop)
}

/// Documents with text and without a vector of a model, the newest first.
pub(super) async fn lacking(
    client: &Client,
    scope: &[u8],
    model: &str,
    limit: usize,
) -> Result<OperationResult, Error> {
    let sql = "SELECT document, name, metadata, text FROM contexture_search_documents AS d \
               WHERE scope = $1 AND length(text) > 0 AND NOT EXISTS (SELECT 1 FROM contexture_search_vectors AS v \
               WHERE v.scope = d.scope AND v.document = d.document AND v.model = $2) ORDER BY added DESC LIMIT $3";
    let (model, limit) = (model.as_bytes(), i64::try_from(limit).unwrap_or(i64::MAX));
    let parameters: Parameters<'_> = &[(&scope, Type::BYTEA), (&model, Type::BYTEA), (&limit, Type::INT8)];
    let found = client.query_typed(sql, parameters).await?.into_iter().map(|row| (row, 0.0)).collect();
    Ok(OperationResult { found, ..OperationResult::default() })
}

/// Compares all vectors of a scope.
pub(super) async fn near(
    client: &Client,
    scope: &[u8],
    vector: &TextVector,
    limit: usize,
) -> Result<OperationResult, Error> {
    let sql = "SELECT document, numbers FROM contexture_search_vectors WHERE scope = $1 AND model = $2";
    let model = vector.model().as_bytes();
    let mut nearest = Nearest::new(vector, limit);
    for row in client.query_typed(sql, &[(&scope, Type::BYTEA), (&model, Type::BYTEA)]).await? {
        nearest.add(row.get::<_, Vec<u8>>(0), row.get(1));
    }
    let (hits, mean, compared) = nearest.end();
    let documents: Vec<Vec<u8>> = hits.iter().map(|(document, _)| document.clone()).collect();
    let rows = read(client, scope, &documents).await?;
    let mut rows: HashMap<Vec<u8>, Row> = rows.into_iter().map(|row| (row.get(0), row)).collect();
    let found = hits.into_iter().filter_map(|(document, cosine)| Some((rows.remove(&document)?, cosine))).collect();
    Ok(OperationResult {
        count: i64::try_from(compared).unwrap_or(i64::MAX),
        found,
        mean,
        ..OperationResult::default()
    })
}
