-- Создание потока из топика
CREATE STREAM orders (
    order_id VARCHAR KEY,
    user_id VARCHAR,
    amount DOUBLE,
    items ARRAY<VARCHAR>,
    created_at VARCHAR
) WITH (
    KAFKA_TOPIC = 'orders',
    VALUE_FORMAT = 'JSON'
);

-- Создание производного потока (фильтрация)
CREATE STREAM high_value_orders AS
SELECT *
FROM orders
WHERE amount > 100
EMIT CHANGES;

-- Создание таблицы агрегации
CREATE TABLE order_counts AS
SELECT
    user_id,
    COUNT(*) AS order_count,
    SUM(amount) AS total_amount
FROM orders
GROUP BY user_id
EMIT CHANGES;

-- Оконная агрегация
CREATE TABLE hourly_stats AS
SELECT
    user_id,
    COUNT(*) AS order_count,
    SUM(amount) AS total_amount,
    WINDOWSTART AS window_start,
    WINDOWEND AS window_end
FROM orders
WINDOW TUMBLING (SIZE 1 HOUR)
GROUP BY user_id
EMIT CHANGES;

-- Join потоков
CREATE STREAM enriched_orders AS
SELECT
    o.order_id,
    o.user_id,
    o.amount,
    u.name AS user_name,
    u.email AS user_email
FROM orders o
INNER JOIN users u
    ON o.user_id = u.user_id
EMIT CHANGES;

-- Запросы к таблицам
SELECT * FROM order_counts WHERE user_id = 'user_001';

-- Push-запрос (непрерывный)
SELECT * FROM orders EMIT CHANGES;
