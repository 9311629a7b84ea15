-- The shop in SQL: high-value orders, orders per user, and totals per hour.
-- potok sql -f examples/ksql_orders.sql

CREATE STREAM orders (order_id VARCHAR KEY, user_id VARCHAR, amount DOUBLE, items ARRAY<VARCHAR>)
  WITH (KAFKA_TOPIC = 'orders', VALUE_FORMAT = 'JSON', PARTITIONS = 1);

CREATE STREAM high_value_orders WITH (KAFKA_TOPIC = 'high-value-orders') AS
  SELECT *, 'HIGH_VALUE' AS status FROM orders WHERE amount > 100 EMIT CHANGES;

CREATE TABLE order_counts AS
  SELECT user_id, COUNT(*) AS orders FROM orders GROUP BY user_id EMIT CHANGES;

CREATE TABLE hourly_totals AS
  SELECT user_id, SUM(amount) AS total FROM orders WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY user_id EMIT CHANGES;

INSERT INTO orders (ROWTIME, order_id, user_id, amount, items) VALUES (0, 'o1', 'user_001', 120.5, ARRAY['book']);
INSERT INTO orders (ROWTIME, order_id, user_id, amount, items) VALUES (60000, 'o2', 'user_001', 20.0, ARRAY['pen']);

SELECT * FROM order_counts;
