-- Scores card payments as they arrive. Plain Flink SQL: a Flink 2.3 cluster runs this file as it is.
--
--   payments         in   one JSON object a payment, keyed as the producer likes
--   scores           out  every payment with its features, its score and the reasons
--   alerts           out  the payments whose score reaches 60
--   merchant_minute  out  sums per merchant and minute, once the minute is over
--
-- A payment cannot wait until the watermark passes it: Penstock answers each OVER row at once, over
-- the payments of its range that have arrived. Flink takes the key and goes on waiting.
SET 'penstock.over.emit' = 'on-arrival';

CREATE TABLE payments (
    id BIGINT,
    card STRING,
    merchant STRING,
    amount DECIMAL(12, 2),
    country STRING,
    device STRING,
    ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka',
    'topic' = 'payments',
    'properties.bootstrap.servers' = 'kafka:9092',
    'properties.group.id' = 'fraud',
    'scan.startup.mode' = 'earliest-offset',
    'format' = 'json'
);

CREATE TABLE scores (
    id BIGINT,
    card STRING,
    amount DECIMAL(12, 2),
    n_60s BIGINT,
    sum_60s DECIMAL(38, 2),
    max_60s DECIMAL(12, 2),
    avg_60s DECIMAL(38, 6),
    n_1h BIGINT,
    sum_1h DECIMAL(38, 2),
    max_1h DECIMAL(12, 2),
    avg_1h DECIMAL(38, 6),
    n_24h BIGINT,
    sum_24h DECIMAL(38, 2),
    max_24h DECIMAL(12, 2),
    avg_24h DECIMAL(38, 6),
    since_previous_s BIGINT,
    country_share DECIMAL(5, 4),
    score INT,
    reason STRING,
    ts TIMESTAMP(3)
) WITH (
    'connector' = 'kafka',
    'topic' = 'scores',
    'properties.bootstrap.servers' = 'kafka:9092',
    'format' = 'json',
    'json.encode.decimal-as-plain-number' = 'true'
);

CREATE TABLE alerts (
    id BIGINT,
    card STRING,
    merchant STRING,
    amount DECIMAL(12, 2),
    score INT,
    reason STRING,
    ts TIMESTAMP(3)
) WITH (
    'connector' = 'kafka',
    'topic' = 'alerts',
    'properties.bootstrap.servers' = 'kafka:9092',
    'format' = 'json',
    'json.encode.decimal-as-plain-number' = 'true'
);

CREATE TABLE merchant_minute (
    merchant STRING,
    window_start TIMESTAMP(3),
    window_end TIMESTAMP(3),
    n BIGINT,
    total DECIMAL(38, 2),
    largest DECIMAL(12, 2)
) WITH (
    'connector' = 'kafka',
    'topic' = 'merchant_minute',
    'properties.bootstrap.servers' = 'kafka:9092',
    'format' = 'json',
    'json.encode.decimal-as-plain-number' = 'true'
);

-- One OVER window a SELECT, so the features stand on top of each other.
CREATE VIEW over_60s AS
SELECT *, COUNT(*) OVER w AS n_60s, SUM(amount) OVER w AS sum_60s, MAX(amount) OVER w AS max_60s, AVG(amount) OVER w AS avg_60s
FROM payments
WINDOW w AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL '60' SECOND PRECEDING AND CURRENT ROW);

CREATE VIEW over_1h AS
SELECT *, COUNT(*) OVER w AS n_1h, SUM(amount) OVER w AS sum_1h, MAX(amount) OVER w AS max_1h, AVG(amount) OVER w AS avg_1h
FROM over_60s
WINDOW w AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW);

CREATE VIEW over_24h AS
SELECT *, COUNT(*) OVER w AS n_24h, SUM(amount) OVER w AS sum_24h, MAX(amount) OVER w AS max_24h, AVG(amount) OVER w AS avg_24h
FROM over_1h
WINDOW w AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL '24' HOUR PRECEDING AND CURRENT ROW);

CREATE VIEW previous_payment AS
SELECT *, LAG(ts, 1) OVER w AS previous_ts
FROM over_24h
WINDOW w AS (PARTITION BY card ORDER BY ts);

CREATE VIEW features AS
SELECT *, COUNT(*) OVER w AS n_country_24h
FROM previous_payment
WINDOW w AS (PARTITION BY card, country ORDER BY ts RANGE BETWEEN INTERVAL '24' HOUR PRECEDING AND CURRENT ROW);

CREATE VIEW points AS
SELECT *,
    CAST(TIMESTAMPDIFF(SECOND, previous_ts, ts) AS BIGINT) AS since_previous_s,
    CAST(CAST(n_country_24h AS DECIMAL(10, 0)) / CAST(n_24h AS DECIMAL(10, 0)) AS DECIMAL(5, 4)) AS country_share,
    CASE WHEN n_60s >= 5 THEN 35 WHEN n_60s >= 3 THEN 20 ELSE 0 END AS velocity,
    CASE WHEN sum_1h > 2000 THEN 25 WHEN sum_1h > 800 THEN 10 ELSE 0 END AS volume,
    CASE WHEN n_24h >= 4 AND amount >= 4 * avg_24h THEN 25 ELSE 0 END AS unusual,
    CASE WHEN n_24h >= 5 AND n_country_24h * 10 <= n_24h THEN 20 ELSE 0 END AS abroad,
    CASE WHEN amount >= 1000 AND amount = max_24h THEN 15 ELSE 0 END AS `large`
FROM features;

CREATE VIEW scored AS
SELECT *,
    LEAST(velocity + volume + unusual + abroad + `large` + CASE WHEN since_previous_s < 2 THEN 10 ELSE 0 END, 100) AS score,
    TRIM(BOTH ' ' FROM CONCAT(
        CASE WHEN velocity > 0 THEN 'velocity ' ELSE '' END,
        CASE WHEN volume > 0 THEN 'volume ' ELSE '' END,
        CASE WHEN unusual > 0 THEN 'unusual ' ELSE '' END,
        CASE WHEN abroad > 0 THEN 'abroad ' ELSE '' END,
        CASE WHEN `large` > 0 THEN 'large ' ELSE '' END,
        CASE WHEN since_previous_s < 2 THEN 'burst' ELSE '' END)) AS reason
FROM points;

EXECUTE STATEMENT SET BEGIN

INSERT INTO scores
SELECT id, card, amount, n_60s, sum_60s, max_60s, avg_60s, n_1h, sum_1h, max_1h, avg_1h, n_24h, sum_24h, max_24h, avg_24h,
    since_previous_s, country_share, score, NULLIF(reason, ''), ts
FROM scored;

INSERT INTO alerts
SELECT id, card, merchant, amount, score, reason, ts FROM scored WHERE score >= 60;

INSERT INTO merchant_minute
SELECT merchant, window_start, window_end, COUNT(*), SUM(amount), MAX(amount)
FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY merchant, window_start, window_end;

END;
