-- STDDEV_* and VAR_* of DECIMAL in OVER windows on event time: bounded and not, narrow and wide.
CREATE TABLE payments (
  id INT, card INT, amount DECIMAL(10, 2), rate DECIMAL(20, 6), big DECIMAL(38, 10), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'kafka',
  'topic' = '${NS}payments',
  'properties.bootstrap.servers' = '${BROKERS}',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);
CREATE TABLE spread (id INT, vp STRING, vs STRING, sp STRING, ss STRING, v STRING, s STRING) WITH (
  'connector' = 'kafka',
  'topic' = '${NS}spread',
  'properties.bootstrap.servers' = '${BROKERS}',
  'format' = 'json'
);
CREATE TABLE wide (id INT, vp STRING, vs STRING, sp STRING, ss STRING, b STRING, t STRING) WITH (
  'connector' = 'kafka',
  'topic' = '${NS}wide',
  'properties.bootstrap.servers' = '${BROKERS}',
  'format' = 'json'
);


INSERT INTO spread
SELECT id, CAST(VAR_POP(amount) OVER w AS STRING), CAST(VAR_SAMP(amount) OVER w AS STRING),
  CAST(STDDEV_POP(amount) OVER w AS STRING), CAST(STDDEV_SAMP(amount) OVER w AS STRING),
  CAST(VARIANCE(amount) OVER w AS STRING), CAST(STDDEV(amount) OVER w AS STRING)
FROM payments
WINDOW w AS (PARTITION BY card ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW);
INSERT INTO wide
SELECT id, CAST(VAR_POP(rate) OVER w AS STRING), CAST(VAR_SAMP(rate) OVER w AS STRING),
  CAST(STDDEV_POP(rate) OVER w AS STRING), CAST(STDDEV_SAMP(rate) OVER w AS STRING),
  CAST(VAR_POP(big) OVER w AS STRING), TYPEOF(VAR_POP(amount) OVER w) || TYPEOF(STDDEV_POP(rate) OVER w) || TYPEOF(VAR_SAMP(big) OVER w)
FROM payments
WINDOW w AS (PARTITION BY card ORDER BY ts);

