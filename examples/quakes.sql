-- Counts one earthquake. A second delivery of it would count it again.
INSERT INTO t_quake_day (network, day, quakes, strongest)
VALUES (:net, date(:time / 1000, 'unixepoch'), 1, :mag)
ON CONFLICT (network, day) DO UPDATE
SET quakes = quakes + 1, strongest = max(strongest, excluded.strongest);
