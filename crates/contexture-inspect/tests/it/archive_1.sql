-- An archive as the first version of its schema had it: the tables, and a conversation of two requests.
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', title TEXT NOT NULL DEFAULT '', parent TEXT, format TEXT,
    model TEXT NOT NULL DEFAULT '', first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0, turns INTEGER NOT NULL DEFAULT 0, largest INTEGER NOT NULL DEFAULT 0, came INTEGER NOT NULL DEFAULT 0,
    sent INTEGER NOT NULL DEFAULT 0, billed REAL NOT NULL DEFAULT 0, passed_through REAL NOT NULL DEFAULT 0,
    paid REAL NOT NULL DEFAULT 0, would_pay REAL NOT NULL DEFAULT 0, unpriced INTEGER NOT NULL DEFAULT 0,
    folds INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, is_reading INTEGER NOT NULL DEFAULT 0,
    stopped TEXT
);
CREATE INDEX conversations_by_time ON conversations (last_ms);
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, source TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
    name TEXT NOT NULL, call TEXT NOT NULL, is_error INTEGER NOT NULL, tokens INTEGER NOT NULL, bytes INTEGER NOT NULL,
    preview TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX blocks_by_call ON blocks (call) WHERE call <> '';
CREATE TABLE places (
    number INTEGER PRIMARY KEY, conversation TEXT NOT NULL, block INTEGER NOT NULL, n INTEGER NOT NULL,
    is_sent INTEGER NOT NULL, left_n INTEGER, UNIQUE (conversation, block)
);
CREATE INDEX places_by_block ON places (block);
CREATE TABLE requests (
    conversation TEXT NOT NULL, n INTEGER NOT NULL, time_ms INTEGER NOT NULL, base INTEGER NOT NULL,
    came_keep INTEGER NOT NULL, came BLOB NOT NULL, sent_keep INTEGER NOT NULL, sent BLOB NOT NULL, line TEXT NOT NULL,
    PRIMARY KEY (conversation, n)
);
CREATE TABLE pins (conversation TEXT NOT NULL, block INTEGER NOT NULL, PRIMARY KEY (conversation, block));
INSERT INTO blocks VALUES (1, x'03c5652c566e7f8ec2b2b44413cffb2b', 'system', 'text', 'system', '', '', 0, 3, 9, 'Be brief.', 'Be brief.');
INSERT INTO blocks VALUES (2, x'8d11b9a200436cfd3c5435f2ea8e5878', 'said', 'text', 'user', '', '', 0, 4, 18, 'First things first', 'First things first');
INSERT INTO blocks VALUES (3, x'9d22bab97e8560382e6a9ea2409fe639', 'said', 'text', 'user', '', '', 0, 4, 14, 'A second thing', 'A second thing');
INSERT INTO requests VALUES ('c', 1, 1750000000001, 1, 0, x'0100000002000000', 0, x'0100000002000000', '{"n":1,"turn":1,"said":"First things first","sources":{"said":4,"system":3},"sent_tokens":7,"came_tokens":7,"cached_tokens":null,"sent_blocks":2,"came_blocks":2,"is_over":true,"verdicts":[],"record":{"session":"","conversation":"c","time_ms":1750000000001,"format":"messages","model":"m","is_count":false,"status":200,"is_changed":false,"passed":null,"is_unsaved":false,"decided":[],"usage":null,"bill":null,"dollars":null,"dollars_through":null,"price_from":null,"context":null,"context_from":null,"would_send":null,"diagnosis":null,"own_us":0,"first_byte_ms":0,"whole_ms":0,"quota":[]}}');
INSERT INTO requests VALUES ('c', 2, 1750000000002, 1, 2, x'03000000', 2, x'03000000', '{"n":2,"turn":1,"sources":{"said":8,"system":3},"sent_tokens":11,"came_tokens":11,"cached_tokens":null,"sent_blocks":3,"came_blocks":3,"is_over":true,"verdicts":[],"record":{"session":"","conversation":"c","time_ms":1750000000002,"format":"messages","model":"m","is_count":false,"status":200,"is_changed":false,"passed":null,"is_unsaved":false,"decided":[],"usage":null,"bill":null,"dollars":null,"dollars_through":null,"price_from":null,"context":null,"context_from":null,"would_send":null,"diagnosis":null,"own_us":0,"first_byte_ms":0,"whole_ms":0,"quota":[]}}');
INSERT INTO places (conversation, block, n, is_sent) VALUES ('c', 1, 1, 0);
INSERT INTO places (conversation, block, n, is_sent) VALUES ('c', 2, 1, 0);
INSERT INTO places (conversation, block, n, is_sent) VALUES ('c', 3, 2, 0);
INSERT INTO conversations (id, title, format, model, first_ms, last_ms, requests, turns, largest)
VALUES ('c', 'First things first', '"messages"', 'm', 1750000000001, 1750000000002, 2, 1, 11);
PRAGMA user_version = 1;
