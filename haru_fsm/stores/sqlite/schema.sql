-- The database of a Haru app. Times are seconds since the epoch, states and events are the workflow's own names.

CREATE TABLE IF NOT EXISTS conversations (
    number          INTEGER PRIMARY KEY,
    conversation_id TEXT    NOT NULL UNIQUE,
    customer_id     TEXT    NOT NULL,
    initial         TEXT    NOT NULL,               -- where its journal begins
    state           TEXT    NOT NULL,
    resting         INTEGER NOT NULL,               -- 0 under way, 1 at an ending, 2 waiting for a person's approval
    seq             INTEGER NOT NULL,               -- number of the last step; every append names the one it expects
    run             INTEGER NOT NULL,
    head            BLOB    NOT NULL,               -- checksum of the last step: a cut-off journal shows
    created_at      REAL    NOT NULL,
    updated_at      REAL    NOT NULL,
    owner           TEXT,                           -- who works on it; NULL at rest
    lease_until     REAL    NOT NULL DEFAULT 0,
    parent          TEXT,                           -- the conversation it was forked from
    rehearsal       INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS unfinished ON conversations (resting) WHERE resting != 1;
-- A second way to a conversation by its id: where the first is damaged, what is there is not taken for new.
CREATE INDEX IF NOT EXISTS twins ON conversations (conversation_id);
CREATE INDEX IF NOT EXISTS owned ON conversations (owner) WHERE owner IS NOT NULL;

-- The journal. Rows are only ever added, and lie in the order in which they came, whoever's they are.
CREATE TABLE IF NOT EXISTS steps (
    conversation INTEGER NOT NULL REFERENCES conversations,
    seq          INTEGER NOT NULL,
    run          INTEGER NOT NULL,
    state        TEXT    NOT NULL,                  -- where it led
    more         TEXT    NOT NULL,                  -- JSON: rests, trip, answer, asked; '' for none
    event        TEXT    NOT NULL,                  -- JSON
    checksum     BLOB    NOT NULL                   -- of this row and all before it
);
CREATE UNIQUE INDEX IF NOT EXISTS journal ON steps (conversation, seq);

-- The effect ledger. The unique key is the claim: whoever's insert fails does not run the call.
CREATE TABLE IF NOT EXISTS calls (
    conversation INTEGER NOT NULL REFERENCES conversations,
    call         TEXT    NOT NULL,                  -- seq.position of the request
    started      TEXT,                              -- JSON; NULL for calls without an effect
    outcome      TEXT,                              -- JSON; NULL while nobody knows
    checksum     BLOB    NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS ledger ON calls (conversation, call);

CREATE TABLE IF NOT EXISTS tickets (
    ticket_id       TEXT PRIMARY KEY,
    key             TEXT NOT NULL UNIQUE,           -- conversation and run: one key never has two tickets
    conversation_id TEXT NOT NULL,
    created_at      REAL NOT NULL,
    ticket          TEXT NOT NULL,                  -- JSON
    notes           TEXT NOT NULL DEFAULT '[]',     -- JSON: what later escalations added
    reply           TEXT,
    closed_at       REAL
);
CREATE INDEX IF NOT EXISTS conversation_tickets ON tickets (conversation_id);
CREATE INDEX IF NOT EXISTS open_tickets ON tickets (created_at) WHERE closed_at IS NULL;
