-- Digests of text and PARSE_URL: empty text, NULL, text beyond ASCII and longer than a block; parts of URLs, good and bad.
CREATE TABLE texts (id INT, t STRING, k STRING) WITH (
  'connector' = 'kafka',
  'topic' = '${NS}texts',
  'properties.bootstrap.servers' = '${BROKERS}',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);
CREATE TABLE digests (id INT, md STRING, s1 STRING, s224 STRING, s256 STRING, s384 STRING, s512 STRING, n224 STRING, n256 STRING, n384 STRING, n512 STRING) WITH (
  'connector' = 'kafka',
  'topic' = '${NS}digests',
  'properties.bootstrap.servers' = '${BROKERS}',
  'format' = 'json'
);
CREATE TABLE urls (id INT, h STRING, pa STRING, q STRING, r STRING, p STRING, f STRING, a STRING, u STRING, l STRING, n STRING, k STRING) WITH (
  'connector' = 'kafka',
  'topic' = '${NS}urls',
  'properties.bootstrap.servers' = '${BROKERS}',
  'format' = 'json'
);
INSERT INTO digests SELECT id, MD5(t), SHA1(t), SHA224(t), SHA256(t), SHA384(t), SHA512(t), SHA2(t, 224), SHA2(t, 256), SHA2(t, 384), SHA2(t, 512) FROM texts;
INSERT INTO urls SELECT id, PARSE_URL(t, 'HOST'), PARSE_URL(t, 'PATH'), PARSE_URL(t, 'QUERY'), PARSE_URL(t, 'REF'), PARSE_URL(t, 'PROTOCOL'), PARSE_URL(t, 'FILE'), PARSE_URL(t, 'AUTHORITY'), PARSE_URL(t, 'USERINFO'), PARSE_URL(t, 'host'), PARSE_URL(t, 'NONE'), PARSE_URL(t, 'QUERY', k) FROM texts;
