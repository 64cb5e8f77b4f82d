-- Filter and project, for bench_box_stay.
CREATE TABLE payments (
    id BIGINT, card STRING, merchant STRING, amount DECIMAL(12, 2), country STRING, device STRING, ts TIMESTAMP(3)
) WITH (
    'connector' = 'kafka', 'topic' = 'payments', 'properties.bootstrap.servers' = 'kafka:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE scores (id BIGINT, card STRING, amount DECIMAL(12, 2), ts TIMESTAMP(3)) WITH (
    'connector' = 'kafka', 'topic' = 'scores', 'properties.bootstrap.servers' = 'kafka:9092',
    'format' = 'json', 'json.encode.decimal-as-plain-number' = 'true'
);
INSERT INTO scores SELECT id, card, amount * 2, ts FROM payments WHERE amount > 0;
