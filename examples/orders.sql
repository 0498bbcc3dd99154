-- What one order does. :sku and :quantity are members of the message; examples/run.sh binds :no and
-- :customer to nested ones.
INSERT INTO t_order (order_no, customer, sku, quantity) VALUES (:no, :customer, :sku, :quantity);
UPDATE t_inventory SET stock = stock - :quantity WHERE sku = :sku;
