-- Search. An item's number, `items.item_id`, is from now on the number of the log row that wrote its
-- current version: it rises with every write, and `words` and `facts` have a row of that number.

DROP INDEX items_by_time;
ALTER TABLE item_log ADD COLUMN previous INTEGER;
ALTER TABLE item_log ADD COLUMN fresh INTEGER NOT NULL DEFAULT 1;

CREATE VIRTUAL TABLE words USING fts5(
    headline, description, body, rest, tags,
    content = '', contentless_delete = 1, tokenize = "ascii tokenchars '._=+'"
);

-- Words of one transaction are gathered within this many bytes, so that a batch of an archive makes
-- one segment of the index and not many that have to be merged.
INSERT INTO words (words, rank) VALUES ('hashsize', 67108864);

CREATE TABLE facts (
    doc INTEGER PRIMARY KEY,
    facts BLOB NOT NULL
) STRICT;

CREATE TABLE facet_values (
    facet INTEGER NOT NULL,
    value_id INTEGER NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (facet, value_id),
    UNIQUE (facet, value)
) STRICT, WITHOUT ROWID;

INSERT INTO versions (what, version) VALUES ('index', 0);
