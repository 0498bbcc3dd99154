-- The tables of the transfers in examples/run.sh. t_transfer has no unique key on purpose: only txinbox keeps a second
-- delivery out.
CREATE TABLE t_account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE t_transfer (no TEXT NOT NULL, from_id INTEGER NOT NULL, to_id INTEGER NOT NULL, amount INTEGER NOT NULL);
WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 100)
INSERT INTO t_account SELECT id, 1000000 FROM n;
