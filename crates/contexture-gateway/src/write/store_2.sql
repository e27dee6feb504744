PRAGMA auto_vacuum = INCREMENTAL;
CREATE TABLE behind (
    conversation TEXT NOT NULL, message INTEGER NOT NULL, text TEXT NOT NULL, sum BLOB, PRIMARY KEY (conversation, message)
);
INSERT INTO "behind" VALUES('c-one',1,'a text ü',X'18FFC7B090B024BA');
INSERT INTO "behind" VALUES('c-two',1,'a text ü',X'A4B0D2490DDA127A');
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, key BLOB NOT NULL, scope BLOB NOT NULL, parent TEXT, format TEXT NOT NULL, lead INTEGER NOT NULL,
    held_out INTEGER NOT NULL, known BLOB NOT NULL, points TEXT NOT NULL, account TEXT NOT NULL, stopped TEXT,
    version INTEGER NOT NULL, used_ms INTEGER NOT NULL
, sum BLOB);
INSERT INTO "conversations" VALUES('c-one',X'01010101010101010101010101010101',X'09090909090909090909090909090909','before','"messages"',2,1,X'000000000000000000000000000000000101010101010101010101010101010102020202020202020202020202020202','[3]','{"billed":0.0,"passed_through":0.0,"is_changed":false,"last_changed":false,"last_came":0,"last_sent":0,"last_own":null,"last_pieces":[0,0],"last_bytes":0,"last_sent_bytes":0,"last_opaque":[0,0],"last_plain":0,"last_ms":0,"last_held":0,"ratio":0.0,"grown":[0.0,0.0],"growth":{"text_text":0.0,"text_opaque":0.0,"opaque_opaque":0.0,"text_counted":0.0,"opaque_counted":0.0,"counted_counted":0.0},"growth_of_pieces":{"text_text":0.0,"text_opaque":0.0,"opaque_opaque":0.0,"text_counted":0.0,"opaque_counted":0.0,"counted_counted":0.0},"owed":0.0,"unfolded":0,"billed_since":0.0,"was_owed":false,"found":null,"missed":0,"holds_untold":false,"apart":0,"spent":{"dollars":0.0,"tokens":0,"is_guessed":false,"unpriced":0}}',NULL,3,10,X'425296825D96C00F');
INSERT INTO "conversations" VALUES('c-two',X'02020202020202020202020202020202',X'09090909090909090909090909090909','before','"messages"',2,1,X'00000000000000000000000000000000','[1]','{"billed":0.0,"passed_through":0.0,"is_changed":false,"last_changed":false,"last_came":0,"last_sent":0,"last_own":null,"last_pieces":[0,0],"last_bytes":0,"last_sent_bytes":0,"last_opaque":[0,0],"last_plain":0,"last_ms":0,"last_held":0,"ratio":0.0,"grown":[0.0,0.0],"growth":{"text_text":0.0,"text_opaque":0.0,"opaque_opaque":0.0,"text_counted":0.0,"opaque_counted":0.0,"counted_counted":0.0},"growth_of_pieces":{"text_text":0.0,"text_opaque":0.0,"opaque_opaque":0.0,"text_counted":0.0,"opaque_counted":0.0,"counted_counted":0.0},"owed":0.0,"unfolded":0,"billed_since":0.0,"was_owed":false,"found":null,"missed":0,"holds_untold":false,"apart":0,"spent":{"dollars":0.0,"tokens":0,"is_guessed":false,"unpriced":0}}',NULL,1,20,X'E0E59601BC88699B');
CREATE TABLE decisions (
    conversation TEXT NOT NULL, n INTEGER NOT NULL, messages INTEGER NOT NULL, decision TEXT NOT NULL, sum BLOB,
    PRIMARY KEY (conversation, n)
);
INSERT INTO "decisions" VALUES('c-one',0,1,'{"decision":"shorten","position":1,"reason":"it is long","text":"short","version":3}',X'08917E6B4DDFCE57');
INSERT INTO "decisions" VALUES('c-one',1,2,'{"decision":"shorten","position":2,"reason":"it is long","text":"short","version":3}',X'1D39ED5505A90B74');
INSERT INTO "decisions" VALUES('c-one',2,3,'{"decision":"shorten","position":3,"reason":"it is long","text":"short","version":3}',X'99B69E2B9264218D');
INSERT INTO "decisions" VALUES('c-two',0,1,'{"decision":"shorten","position":1,"reason":"it is long","text":"short","version":3}',X'49E6B6A004898123');
CREATE TABLE gateways (id TEXT PRIMARY KEY, address TEXT NOT NULL, token TEXT NOT NULL, pid INTEGER NOT NULL);
INSERT INTO "gateways" VALUES('a','127.0.0.1:1','token',7);
CREATE TABLE pins (conversation TEXT PRIMARY KEY, pins TEXT NOT NULL);
INSERT INTO "pins" VALUES('c-two','{"roles":[],"tools":[],"paths":[]}');
CREATE TABLE requests (
    n INTEGER PRIMARY KEY, conversation TEXT, session TEXT NOT NULL, time_ms INTEGER NOT NULL, record TEXT NOT NULL
, sum BLOB);
INSERT INTO "requests" VALUES(1,NULL,'first',0,'{"session":"first","conversation":null,"time_ms":0,"format":null,"model":"","is_count":false,"status":0,"is_changed":false,"passed":null,"is_unsaved":false,"decided":[],"usage":null,"bill":null,"dollars":null,"dollars_through":null,"price_from":null,"context":null,"context_from":null,"would_send":null,"diagnosis":null,"own_us":0,"first_byte_ms":0,"whole_ms":0,"quota":[]}',X'F50484E5C6C218E8');
INSERT INTO "requests" VALUES(2,'c-one','first',1,'{"session":"first","conversation":"c-one","time_ms":1,"format":null,"model":"","is_count":false,"status":0,"is_changed":false,"passed":null,"is_unsaved":false,"decided":[],"usage":null,"bill":null,"dollars":null,"dollars_through":null,"price_from":null,"context":null,"context_from":null,"would_send":null,"diagnosis":null,"own_us":0,"first_byte_ms":0,"whole_ms":0,"quota":[]}',X'D21C15D3866006FB');
CREATE TABLE rests (conversation TEXT PRIMARY KEY, messages INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE steps (
    conversation TEXT NOT NULL, n INTEGER NOT NULL, step TEXT NOT NULL, sum BLOB, PRIMARY KEY (conversation, n)
);
INSERT INTO "steps" VALUES('c-one',0,'{"messages":1,"keep":1,"segments":[],"covered":1,"standing":1,"stayed":0}',X'9B80BB447108520B');
INSERT INTO "steps" VALUES('c-one',1,'{"messages":2,"keep":1,"segments":[],"covered":2,"standing":1,"stayed":0}',X'25FD25987F8BB42B');
INSERT INTO "steps" VALUES('c-one',2,'{"messages":3,"keep":1,"segments":[],"covered":3,"standing":1,"stayed":0}',X'F8697D4811B13079');
INSERT INTO "steps" VALUES('c-two',0,'{"messages":1,"keep":1,"segments":[],"covered":1,"standing":1,"stayed":0}',X'00025E049630A862');
CREATE TABLE texts (
    hash TEXT NOT NULL, conversation TEXT NOT NULL, text TEXT NOT NULL, sum BLOB, PRIMARY KEY (hash, conversation)
);
INSERT INTO "texts" VALUES('0123456789ab','c-one','the whole text',X'72E4BE899E076457');
CREATE INDEX conversations_by_key ON conversations (key, used_ms);
CREATE INDEX conversations_by_use ON conversations (used_ms);
CREATE INDEX conversations_by_end ON conversations (key, substr(known, -16));
CREATE INDEX requests_by_conversation ON requests (conversation);
CREATE INDEX texts_by_conversation ON texts (conversation);
PRAGMA user_version = 2;
