-- The tables of the order example. t_order has no unique key on purpose: only txinbox keeps a second
-- delivery of an order out, and a row too many would be seen.
CREATE TABLE t_order (
  order_no VARCHAR(64) NOT NULL,
  customer VARCHAR(64) NOT NULL,
  sku      VARCHAR(64) NOT NULL,
  quantity INTEGER     NOT NULL
);

CREATE TABLE t_inventory (
  sku   VARCHAR(64) NOT NULL PRIMARY KEY,
  stock INTEGER     NOT NULL
);

INSERT INTO t_inventory (sku, stock)
VALUES ('cup-blue', 100), ('pot-iron', 100), ('tea-black', 100), ('tea-green', 100), ('whisk', 100);
