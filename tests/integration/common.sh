# SPDX-License-Identifier: Apache-2.0
# What the integration tests share. A test sources this first, then calls `inside "$@"`: it goes on in a network, mount
# and process namespace of its own, so that no device, mount or process can outlive it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$PWD/build/release
addresses=198.18.0.1

skip() { echo "skipped: $*"; exit 77; }
fail() { echo "failed: $*" >&2; exit 1; }

inside() {
    if [ -z "${PENSTOCK_TEST_WORK:-}" ]; then
        [ "$(id -u)" -eq 0 ] || skip "needs root for a network namespace"
        [ -c /dev/net/tun ] || skip "needs /dev/net/tun"
        local status=0
        work=$(mktemp -d)
        trap 'pkill -KILL -P $box; wait; rm -rf "$work"; exit 143' INT TERM HUP
        # In the group of its caller, so that Ctrl-C reaches all of it; --kill-child ends what is inside.
        PENSTOCK_TEST_WORK=$work timeout --foreground -k 5 "${limit:-300}" unshare --net --mount --pid --fork --kill-child \
            --mount-proc bash "$0" "$@" &
        box=$!
        wait $box || status=$?
        if [ $status -ne 0 ] && [ $status -ne 77 ]; then
            for log in "$work"/*.log; do
                [ -s "$log" ] && { echo "--- $(basename "$log")"; tail -n 25 "$log"; }
            done
        fi
        rm -rf "$work"
        exit $status
    fi
    work=$PENSTOCK_TEST_WORK
    ip link set lo up
}

start_mock() { # TOPIC:PARTITIONS…
    "$bin/tools/mock-broker" $addresses:9092 "$@" >"$work/bootstrap" 2>"$work/broker.log" &
    for _ in $(seq 200); do [ -s "$work/bootstrap" ] && break; sleep 0.02; done
    bootstrap=$(cat "$work/bootstrap")
    fetch_wait_ms=1
    [ -n "$bootstrap" ] || fail "no mock broker"
}

kafka_jars() {
    jars=$(tools/kafka/lay) || skip "Apache Kafka's packages cannot be had"
}

start_kafka() { # the same data folder each time, so that it can be started again
    tools/kafka/broker "$jars" "$work/kafka" 127.0.0.1:19092 $addresses:9092 >>"$work/broker.log" 2>&1 &
    broker=$!
    bootstrap=127.0.0.1:19092
    fetch_wait_ms=1000
    "$bin/tools/kafkactl" "$bootstrap" wait 60
}

stop_kafka() {
    kill "$broker"
    wait "$broker" || true
}

write_appliance() { # more lines of YAML on stdin
    {
        cat <<TEXT
cores: {receive: ${receive:-[0]}, operate: ${operate:-[0]}, transmit: ${transmit:-[0]}, control: 0, idle: yield}
memory: {hugepages: false, state_mib: ${state_mib:-512}, parcels_mib: 32}
kafka:
  addresses: ["kafka:9092=$addresses:9092", "$bootstrap=$addresses:9092"]
  control_bootstrap: "$bootstrap"
  fetch_wait_ms: $fetch_wait_ms
run: {ledger_json: "$work/ledger.json"}
TEXT
        cat
    } >"$work/appliance.yaml"
}

start_engine() { # JOB.sql
    "$bin/penstock" run "$work/appliance.yaml" "$1" >"$work/penstock.log" 2>&1 &
    engine=$!
    for _ in $(seq 200); do
        ip link show penstock0 >/dev/null 2>&1 && break
        kill -0 $engine 2>/dev/null || fail "penstock stopped"
        sleep 0.05
    done
    ip addr add $addresses/15 dev penstock0
    ip link set penstock0 up
}

stop_engine() {
    kill -TERM $engine
    local status=0
    wait $engine || status=$?
    [ $status -eq 0 ] || fail "penstock ended with $status"
}

wait_for_count() { # TOPIC COUNT SECONDS
    local have=0
    for _ in $(seq $(($3 * 5))); do
        have=$("$bin/tools/kafkactl" "$bootstrap" ends "$1" 2>/dev/null || echo 0)
        [ "$have" -ge "$2" ] && return 0
        kill -0 $engine 2>/dev/null || fail "penstock stopped at $have of $2 in $1"
        sleep 0.2
    done
    fail "$have of $2 records in $1 after $3 s"
}
