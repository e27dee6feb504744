//! What operations on the search index find.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

/// The result of an operation.
#[derive(Default)]
pub(super) struct OperationResult {
    /// The number of affected documents, or of vectors that were compared.
    pub(super) count: i64,
    pub(super) found: Vec<(Row, f64)>,
    /// The mean of the cosines of all vectors.
    pub(super) mean: f64,
    /// How many documents have each term.
    pub(super) frequencies: BTreeMap<String, u64>,
}

/// Reads documents by their hashes, in no order.
pub(super) async fn read(client: &Client, scope: &[u8], documents: &Vec<Vec<u8>>) -> Result<Vec<Row>, Error> {
    let sql = "SELECT document, name, metadata, text FROM contexture_search_documents WHERE scope = $1 AND document = ANY($2)";
    client.query_typed(sql, &[(&scope, Type::BYTEA), (documents, Type::BYTEA_ARRAY)]).await
}
