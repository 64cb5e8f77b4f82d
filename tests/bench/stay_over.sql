-- One OVER window, answered on arrival, for bench_box_stay.
SET 'penstock.over.emit' = 'on-arrival';
CREATE TABLE payments (
    id BIGINT, card STRING, merchant STRING, amount DECIMAL(12, 2), country STRING, device STRING, ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka', 'topic' = 'payments', 'properties.bootstrap.servers' = 'kafka:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE scores (id BIGINT, card STRING, amount DECIMAL(12, 2), n BIGINT, total DECIMAL(38, 2)) WITH (
    'connector' = 'kafka', 'topic' = 'scores', 'properties.bootstrap.servers' = 'kafka:9092',
    'format' = 'json', 'json.encode.decimal-as-plain-number' = 'true'
);
INSERT INTO scores
SELECT id, card, amount, COUNT(*) OVER w, SUM(amount) OVER w
FROM payments
WINDOW w AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL '60' SECOND PRECEDING AND CURRENT ROW);
