#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the client against a broker that is up already, every codec in both directions:
#
#     tests/dataplane/kafka/real_broker.sh BUILD BROKER:PORT [COUNT] [PARTITIONS]
#
# Needs BUILD/tests/dataplane/kafka/real_broker and BUILD/tools/kafkactl. Exit code 0 when each
# record came once and in order.
set -euo pipefail
build=$1 broker=$2 count=${3:-1000000} partitions=${4:-4}
run=$build/tests/dataplane/kafka/real_broker
stamp=$$
topic() { "$build/tools/kafkactl" "$broker" create "$1:$partitions" >/dev/null; }

for codec in none gzip snappy lz4 zstd; do
    topic "feed-$codec-$stamp"
    "$run" "$broker" "feed-$codec-$stamp" feed "$count" "$codec"
    "$run" "$broker" "feed-$codec-$stamp" consume "$count"
done
for codec in none lz4; do
    topic "ours-$codec-$stamp"
    "$run" "$broker" "ours-$codec-$stamp" produce "$count" "$codec"
    "$run" "$broker" "ours-$codec-$stamp" consume "$count" committed
    "$run" "$broker" "ours-$codec-$stamp" read "$count"
done
topic "ping-$stamp"
"$run" "$broker" "ping-$stamp" ping 2000
