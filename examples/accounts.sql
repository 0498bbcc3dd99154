-- What each transfer does. Run twice, it would move the money twice.
INSERT INTO t_transfer (no, from_id, to_id, amount) VALUES (:no, :from, :to, :amount);
UPDATE t_account SET balance = balance - :amount WHERE id = :from;
UPDATE t_account SET balance = balance + :amount WHERE id = :to;
