CREATE TABLE counter (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        last_version INTEGER NOT NULL
    ) STRICT;
INSERT INTO "counter" VALUES(1,3);
CREATE TABLE leases (
        key BLOB PRIMARY KEY,
        token INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        is_locked INTEGER NOT NULL,
        owner BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
CREATE TABLE records (
        id INTEGER PRIMARY KEY,
        version INTEGER NOT NULL,
        key BLOB NOT NULL UNIQUE,
        value BLOB NOT NULL
    ) STRICT;
INSERT INTO "records" VALUES(1,2,X'61',X'32');
INSERT INTO "records" VALUES(2,1,X'622FC3BC',X'00FF');
INSERT INTO "records" VALUES(3,3,X'63',X'');
CREATE VIEW readable AS
        SELECT CAST(key AS TEXT) AS key, version, length(value) AS bytes, CAST(value AS TEXT) AS value
        FROM records;
PRAGMA user_version = 2;
PRAGMA application_id = 1129601108;
