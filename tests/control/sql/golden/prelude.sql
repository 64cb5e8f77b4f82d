CREATE TABLE pay (
  id INT, card STRING, merchant STRING, amount DECIMAL(12, 2), n INT, ok BOOLEAN, x DOUBLE,
  place ROW<country STRING, geo ROW<lat DOUBLE, lon DOUBLE>>, tags ARRAY<STRING>,
  ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'pay', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
CREATE TABLE out1 (a STRING, b BIGINT) WITH ('connector' = 'kafka', 'topic' = 'out1', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
CREATE TABLE win (k STRING, w TIMESTAMP(3), b BIGINT) WITH ('connector' = 'kafka', 'topic' = 'win', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
CREATE TABLE ups (k STRING, b BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'ups', 'properties.bootstrap.servers' = 'b:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE shown (a STRING, b BIGINT) WITH ('connector' = 'print');
