-- Earthquakes by the network that reported them and the day (UTC).
CREATE TABLE t_quake_day (
  network   TEXT    NOT NULL,
  day       TEXT    NOT NULL,
  quakes    INTEGER NOT NULL,
  strongest REAL,
  PRIMARY KEY (network, day)
);
