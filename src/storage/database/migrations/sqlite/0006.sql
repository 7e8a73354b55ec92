-- Keys and channels that users make themselves. What was there before is the operator's.

ALTER TABLE api_keys ADD COLUMN made_by_user INTEGER NOT NULL DEFAULT 0;
ALTER TABLE channels ADD COLUMN made_by_user INTEGER NOT NULL DEFAULT 0;
