//! The conformance suite for search indexes, which compares an index with a simple model.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use contexture_core::search::{
    MAX_DOCUMENT_BYTES, MAX_METADATA_BYTES, MAX_SEARCH_NAME_BYTES, SearchDocument, SearchError, SearchHit, SearchIndex,
    TextVector,
};

use crate::search::{query_terms, terms};

type Index = Arc<dyn SearchIndex>;

/// The number of added documents, and of queries.
const ADDS: usize = 3_000;
const QUERIES: usize = 3_000;
/// Few ids, so that most are replaced many times.
const IDS: u64 = 250;
const SCOPES: &[&str] = &["a", "a/b", ""];
const VOCABULARY: &[&str] = &[
    "parse",
    "parser",
    "parsing",
    "file",
    "file_tracker",
    "FileTracker",
    "HTTPServer2",
    "error",
    "errors",
    "sha256",
    "lease",
    "leases",
    "thread",
    "東京都",
    "東京",
    "한국어",
    "über",
    "a",
    "the",
    "of",
    "42",
    "x86_64",
    "window",
    "cache",
];

/// Queries that could be mistaken for a query language or cause errors.
const ODD_QUERIES: &[&str] = &[
    "",
    " ",
    "\"",
    "\"unbalanced",
    "'; DROP TABLE documents; --",
    "*",
    "fil*",
    "NEAR(a b)",
    "a AND",
    "OR",
    "NOT file",
    "-file",
    "^file",
    "text:file",
    "{a b}:c",
    "(((",
    ")",
    "\0",
    "fi\0le",
    "%",
    "_",
    "\\",
    "file OR 1=1",
    "\u{FFFF}",
    "👩‍👩‍👧",
    "a\u{301}",
    "+file",
    "~",
    "file^2",
    "[file]",
    "?",
    "\u{202E}file",
];

/// Checks every requirement of [`SearchIndex`], with thousands of documents and queries.
///
/// `open` is called with a new name for each check and returns an empty index.
///
/// ```
/// use std::sync::Arc;
/// use contexture_text::search::MemoryIndex;
/// use contexture_text::testing::search_conformance;
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// search_conformance(async |_name| Arc::new(MemoryIndex::new())).await;
/// # });
/// ```
///
/// # Panics
/// At the first requirement that is not met, with a message that names it.
pub async fn search_conformance<S: SearchIndex + 'static>(open: impl AsyncFn(&str) -> Arc<S>) {
    documents_are_found_by_their_words(open("words").await).await;
    scopes_never_meet(open("scopes").await).await;
    odd_queries_are_only_text(open("odd").await).await;
    vectors_belong_to_their_documents(open("vectors").await).await;
    sizes_are_limited(open("sizes").await).await;
    many_documents_are_ranked_like_a_model(open("model").await).await;
}

async fn documents_are_found_by_their_words(index: Index) {
    assert_eq!(ids(&index, "s", "file", 9).await, [""; 0], "an empty index must find nothing");
    let document = |id: &str, text: &str| SearchDocument::new(id, text).with_metadata(json!({ "of": id }));
    let documents = vec![
        document("1", "It reads and parses files."),
        document("2", "parseHeader in file_tracker.rs"),
        document("3", "東京都に行く"),
        document("4", ""),
        document("twice", "first"),
        document("twice", "second"),
    ];
    must("add", index.add("s", documents).await);
    must("add", index.add("s", vec![]).await);
    assert_eq!(must("count", index.count("s").await), 5, "of two documents with one id the later must stay");
    for (query, expected) in [
        ("PARSING", &["2", "1"][..]),
        ("tracker", &["2"]),
        ("FileTracker", &["2", "1"]),
        ("京都", &["3"]),
        ("first", &[]),
        ("second", &["twice"]),
        ("nothing of this", &[]),
    ] {
        let mut found = ids(&index, "s", query, 9).await;
        let mut expected = expected.to_vec();
        if query == "PARSING" || query == "FileTracker" {
            found.sort();
            expected.sort_unstable();
        }
        assert_eq!(found, expected, "`{query}` must find the documents that have its words");
    }
    let hit = must("search", index.search("s", "reads", 1).await).remove(0);
    assert_eq!(hit.document, document("1", "It reads and parses files."), "a hit must be the document as it was added");
    weights_and_ids_are_followed(&index).await;
    assert_eq!(ids(&index, "s", "file", 0).await, [""; 0], "a limit of nothing must find nothing");
    assert_eq!(ids(&index, "s", "file", 1).await.len(), 1, "no more than the limit may be found");
    assert_eq!(ids(&index, "s", "file", usize::MAX).await.len(), 2, "any limit must do");

    must("add", index.add("s", vec![document("1", "now about something else")]).await);
    assert_eq!(ids(&index, "s", "parse reads", 9).await, ["2"], "what was replaced must not be found");
    let removed = must("remove", index.remove("s", &["2", "2", "none"].map(str::to_owned)).await);
    assert_eq!(removed, 1, "`remove` must say how many were there");
    assert_eq!(ids(&index, "s", "tracker", 9).await, [""; 0], "what was removed must not be found");
    must("clear", index.clear("s").await);
    assert_eq!(must("count", index.count("s").await), 0, "`clear` must leave nothing");
    assert_eq!(ids(&index, "s", "else", 9).await, [""; 0], "what was cleared must not be found");
}

async fn weights_and_ids_are_followed(index: &Index) {
    let weights = |first: f64, second: f64| [("read".to_owned(), first), ("second".to_owned(), second)].into();
    for (terms, best) in [(weights(9.0, 1.0), "1"), (weights(1.0, 9.0), "twice")] {
        let found = must("find", index.find("s", &terms, 9).await);
        assert_eq!(found.hits[0].document.id, best, "heavier terms must count more");
        assert_eq!(found.documents, 5, "`find` must say how many documents there are");
        assert_eq!(found.frequencies, [("read".to_owned(), 1), ("second".to_owned(), 1)].into(), "and have each term");
    }
    let read = must("get", index.get("s", &["twice", "none", "1"].map(str::to_owned)).await);
    let read: Vec<&str> = read.iter().map(|document| document.id.as_str()).collect();
    assert_eq!(read, ["twice", "1"], "`get` must return the documents that exist, in order");
    assert_eq!(must("get", index.get("other", &["1".to_owned()]).await), [], "`get` must read one scope only");
}

async fn scopes_never_meet(index: Index) {
    let scopes = ["", "a", "a/", "A", "a\0", "%", "'; --", "日本", "a/b"];
    for scope in scopes {
        must("add", index.add(scope, vec![SearchDocument::new("same", format!("word in {scope}"))]).await);
    }
    for scope in scopes {
        let hits = must("search", index.search(scope, "word", 99).await);
        assert_eq!(hits.len(), 1, "scope {scope:?} must find its own document alone");
        assert_eq!(hits[0].document.text, format!("word in {scope}"));
    }
    let alone = must("search", index.search("a", "word", 1).await)[0].score;
    must("add", index.add("b", vec![SearchDocument::new("1", "word word"), SearchDocument::new("2", "other")]).await);
    let beside = must("search", index.search("a", "word", 1).await)[0].score;
    assert!(alone == beside, "documents of another scope must not change a score");
    must("clear", index.clear("a").await);
    assert_eq!(must("count", index.count("a/").await), 1, "clearing a scope must not touch another");
    must("remove", index.remove("A", &["same".to_owned()]).await);
    assert_eq!(must("count", index.count("b").await), 2, "removing in a scope must not touch another");
    assert_eq!(must("count", index.count("never used").await), 0, "an unknown scope is an empty one");
}

/// An index may keep no vectors at all; one that does keeps them as told.
async fn vectors_belong_to_their_documents(index: Index) {
    let vector = |model: &str, numbers: [f32; 2]| TextVector::new(model, &numbers).expect("it has a direction");
    let named = |id: &str, vector: TextVector| (id.to_owned(), vector);
    let texts = [("1", "one"), ("2", "two"), ("3", "three"), ("4", ""), ("5", "five")];
    let documents = || texts.iter().map(|(id, text)| SearchDocument::new(*id, *text)).collect();
    for scope in ["s", "other"] {
        must("add", index.add(scope, documents()).await);
    }
    let vectors = vec![
        named("1", vector("m", [1.0, 0.0])),
        named("2", vector("m", [1.0, 1.0])),
        named("3", vector("n", [1.0, 0.0])),
        named("4", vector("m", [1.0, 0.0])),
        named("5", TextVector::none("m")),
        named("missing", vector("m", [1.0, 0.0])),
    ];
    must("add vectors", index.add_vectors("s", vectors).await);
    let wanted = vector("m", [0.9, 0.1]);
    let near = must("near", index.near("s", &wanted, 9).await);
    if near.compared == 0 {
        return;
    }
    let ids = |hits: &[SearchHit]| hits.iter().map(|hit| hit.document.id.clone()).collect::<Vec<_>>();
    assert_eq!((ids(&near.hits), near.compared), (vec!["1".to_owned(), "2".to_owned()], 2), "only those of the model");
    let mean = near.hits.iter().map(|hit| hit.score).sum::<f64>() / 2.0;
    assert!(near.hits[0].score > 0.99 && near.hits[1].score < 0.9 && (near.mean - mean).abs() < 1e-9, "cosines");
    assert_eq!(ids(&must("near", index.near("s", &wanted, 1).await).hits), ["1"], "the limit");
    assert_eq!(must("near", index.near("other", &wanted, 9).await).compared, 0, "scopes never meet");
    let lacking = async |model: &str, limit: usize| {
        let found = must("without vector", index.without_vector("s", model, limit).await);
        found.into_iter().map(|document| document.id).collect::<Vec<_>>()
    };
    assert_eq!(lacking("m", 9).await, ["3"], "an empty text needs none, and an empty vector is one");
    assert_eq!(lacking("n", 2).await, ["5", "2"], "the last come first, at most the limit");
    // Another model's vector takes the place, and what is replaced or removed has none.
    must("add vectors", index.add_vectors("s", vec![named("1", vector("n", [0.0, 1.0]))]).await);
    must("add", index.add("s", vec![SearchDocument::new("2", "two again")]).await);
    assert_eq!(must("near", index.near("s", &wanted, 9).await).compared, 0, "replaced");
    must("remove", index.remove("s", &["1".to_owned()]).await);
    must("add", index.add("s", vec![SearchDocument::new("1", "one")]).await);
    assert_eq!(must("near", index.near("s", &vector("n", [1.0, 0.0]), 9).await).compared, 1, "removed");
    must("clear", index.clear("s").await);
    must("add", index.add("s", documents()).await);
    assert_eq!(must("near", index.near("s", &vector("n", [1.0, 0.0]), 9).await).compared, 0, "cleared");
}

async fn odd_queries_are_only_text(index: Index) {
    let texts = ODD_QUERIES.iter().enumerate().map(|(number, text)| SearchDocument::new(number.to_string(), *text));
    must("add", index.add("s", texts.collect()).await);
    must("add", index.add("s", vec![SearchDocument::new("\0'\"", "odd \0 text").with_metadata(json!("\0"))]).await);
    let long = "file \"' ".repeat(10_000);
    for query in ODD_QUERIES.iter().copied().chain([long.as_str()]) {
        let hits = must("search", index.search("s", query, 100).await);
        let wanted = query_terms(query);
        for hit in &hits {
            let has = terms(&hit.document.text).iter().any(|term| wanted.contains(term));
            assert!(has, "{query:.30?} must only find what has one of its words, not {:?}", hit.document.text);
        }
    }
    assert_eq!(must("count", index.count("s").await), ODD_QUERIES.len() + 1, "a query must change nothing");
    let hit = must("search", index.search("s", "odd", 1).await).remove(0);
    assert_eq!((&*hit.document.id, &*hit.document.text), ("\0'\"", "odd \0 text"), "NUL must be kept");
}

async fn sizes_are_limited(index: Index) {
    let long = |len| "x".repeat(len);
    let largest =
        SearchDocument::new(long(MAX_SEARCH_NAME_BYTES), format!("word{}", " ".repeat(MAX_DOCUMENT_BYTES - 4)))
            .with_metadata(json!(long(MAX_METADATA_BYTES - 2)));
    must("add", index.add(&long(MAX_SEARCH_NAME_BYTES), vec![largest.clone()]).await);
    let hits = must("search", index.search(&long(MAX_SEARCH_NAME_BYTES), "word", 1).await);
    assert!(hits[0].document == largest, "a document of the largest size must come back as it was");
    let too_large = [
        SearchDocument::new(long(MAX_SEARCH_NAME_BYTES + 1), ""),
        SearchDocument::new("text", long(MAX_DOCUMENT_BYTES + 1)),
        SearchDocument::new("metadata", "").with_metadata(json!(long(MAX_METADATA_BYTES))),
    ];
    for document in too_large {
        let answer = index.add("s", vec![SearchDocument::new("small", "small"), document]).await;
        assert!(matches!(answer, Err(SearchError::TooLarge { .. })), "what is too large must be refused");
    }
    let answer = index.add(&long(MAX_SEARCH_NAME_BYTES + 1), vec![]).await;
    assert!(matches!(answer, Err(SearchError::TooLarge { .. })), "a scope that is too long must be refused");
    assert_eq!(must("count", index.count("s").await), 0, "what comes with something that is refused must not be added");
}

/// The model: one table for each scope, with scores computed by the formula.
#[derive(Default)]
struct Model {
    scopes: BTreeMap<String, BTreeMap<String, Row>>,
    /// The column of each term that was ever seen.
    columns: BTreeMap<String, usize>,
}

/// One document with how often it has each term; a row may be shorter than there are columns.
struct Row {
    document: SearchDocument,
    counts: Vec<u32>,
    length: usize,
}

impl Row {
    fn count(&self, column: usize) -> u32 {
        self.counts.get(column).copied().unwrap_or(0)
    }
}

impl Model {
    fn add(&mut self, scope: &str, document: SearchDocument) {
        let terms = terms(&document.text);
        let (mut counts, length) = (Vec::new(), terms.len());
        for term in terms {
            let next = self.columns.len();
            let column = *self.columns.entry(term).or_insert(next);
            counts.resize(counts.len().max(column + 1), 0);
            counts[column] += 1;
        }
        let rows = self.scopes.entry(scope.to_owned()).or_default();
        rows.insert(document.id.clone(), Row { document, counts, length });
    }

    fn remove(&mut self, scope: &str, id: &str) -> bool {
        self.scopes.get_mut(scope).is_some_and(|rows| rows.remove(id).is_some())
    }

    fn count(&self, scope: &str) -> usize {
        self.scopes.get(scope).map_or(0, BTreeMap::len)
    }

    fn search(&self, scope: &str, query: &str, limit: usize) -> Vec<(&str, f64)> {
        let Some(rows) = self.scopes.get(scope) else { return Vec::new() };
        let n = rows.len() as f64;
        let total: usize = rows.values().map(|row| row.length).sum();
        let average = (total as f64 / n).max(1.0);
        let columns = query_terms(query).into_iter().filter_map(|term| self.columns.get(&term).copied());
        let wanted: Vec<(usize, f64)> = columns
            .map(|column| {
                let df = rows.values().filter(|row| row.count(column) > 0).count() as f64;
                (column, ((n - df + 0.5) / (df + 0.5)).ln_1p())
            })
            .collect();
        let mut scored: Vec<(&str, f64)> = Vec::new();
        for (id, row) in rows {
            if wanted.iter().all(|(column, _)| row.count(*column) == 0) {
                continue;
            }
            let length = row.length as f64;
            let score = wanted.iter().fold(0.0, |score, (column, weight)| {
                let tf = f64::from(row.count(*column));
                score + weight * tf * (1.2 + 1.0) / (tf + 1.2 * (1.0 - 0.75 + 0.75 * length / average))
            });
            scored.push((id, score));
        }
        scored.sort_by(|(one_id, one), (other_id, other)| other.total_cmp(one).then_with(|| one_id.cmp(other_id)));
        scored.truncate(limit);
        scored
    }
}

/// Numbers that look random and are the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn text(&mut self, most: u64) -> String {
        let words = (0..self.below(most + 1)).map(|_| {
            let (first, second) = (self.below(VOCABULARY.len() as u64), self.below(VOCABULARY.len() as u64));
            // The first words of the list are the most frequent ones.
            VOCABULARY[first.min(second) as usize]
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

async fn many_documents_are_ranked_like_a_model(index: Index) {
    let (mut model, mut random) = (Model::default(), Random(2026));
    let (mut adds, mut queries) = (0, 0);
    while adds < ADDS || queries < QUERIES {
        let scope = SCOPES[random.below(SCOPES.len() as u64) as usize];
        let batch: Vec<SearchDocument> = (0..random.below(60))
            .map(|_| {
                let (id, text) = (random.below(IDS).to_string(), random.text(12));
                SearchDocument::new(id, text).with_metadata(json!(adds))
            })
            .collect();
        adds += batch.len();
        for document in &batch {
            model.add(scope, document.clone());
        }
        must("add", index.add(scope, batch).await);
        if random.below(4) == 0 {
            let gone: Vec<String> = (0..random.below(20)).map(|_| random.below(IDS).to_string()).collect();
            let expected = gone.iter().filter(|id| model.remove(scope, id)).count();
            let removed = must("remove", index.remove(scope, &gone).await);
            assert_eq!(removed, expected, "`remove` must say how many were there");
        }
        assert_eq!(must("count", index.count(scope).await), model.count(scope), "`count` must count documents");
        for _ in 0..random.below(60) {
            queries += 1;
            let (query, limit) = (random.text(4), random.below(12) as usize);
            let hits = must("search", index.search(scope, &query, limit).await);
            check_hits(&model, scope, &query, limit, &hits);
        }
    }
}

#[track_caller]
fn check_hits(model: &Model, scope: &str, query: &str, limit: usize, hits: &[SearchHit]) {
    let expected = model.search(scope, query, limit);
    let found: Vec<(&str, f64)> = hits.iter().map(|hit| (&*hit.document.id, hit.score)).collect();
    assert_eq!(found, expected, "`{query}` in `{scope}` must find the same documents as the model, scored alike");
    for hit in hits {
        let row = &model.scopes[scope][&hit.document.id];
        assert_eq!(hit.document, row.document, "a hit must be the document as it was added last");
    }
}

async fn ids(index: &Index, scope: &str, query: &str, limit: usize) -> Vec<String> {
    let hits = must("search", index.search(scope, query, limit).await);
    hits.into_iter().map(|hit| hit.document.id).collect()
}

#[track_caller]
fn must<T>(operation: &str, answer: Result<T, SearchError>) -> T {
    answer.unwrap_or_else(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        panic!("`{operation}` must succeed, but returned: {error}{cause}")
    })
}
