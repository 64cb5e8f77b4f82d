# SPDX-License-Identifier: Apache-2.0
# What the demonstrations share: a run that ends with all that it started, on Ctrl-C and on failure too. Sourced, by a
# script that has set `demo` (its name) and stands in the root of the tree.
say() { printf '\n== %s\n' "$*"; }
fail() { printf '%s: %s\n' "$demo" "$*" >&2; exit 1; }
is_number() { [[ $1 =~ ^[1-9][0-9]{0,7}$ ]]; }

# Waits until COMMAND holds; fails as soon as the process that is to bring it about has ended.
last_words() { tail -n 8 "$1" >&2; fail "$2"; }
await() { # PROCESS LOG NAME COMMAND…
    local process=$1 log=$2 name=$3
    shift 3
    local deadline=$((SECONDS + 60))
    while [ $SECONDS -lt $deadline ]; do
        "$@" && return
        kill -0 "$process" 2>/dev/null || last_words "$log" "$name stopped, see above"
        sleep 0.05
    done
    last_words "$log" "$name is not ready after 60 s, see above"
}
tap_is_up() { ip link show penstock0 >/dev/null 2>&1; }
kafka_is_up() { "$bin/tools/kafkactl" "$bootstrap" wait 1 2>/dev/null; }

# Runs a command in a process group of its own, so that a signal to this script ends all of it and only then this.
group='' patience='' work='' added=0
stage() { # SIGNAL COMMAND…
    stop_by=$1 patience=''
    shift
    [ "$1" != tools/packages ] || patience=" (apt ends its step first, which takes up to a minute)"
    PENSTOCK_DEMO=inside env --default-signal=INT,QUIT setsid "$@" &
    group=$!
    local status=0
    wait "$group" || status=$?
    group=''
    return $status
}
clean() {
    trap '' INT TERM HUP
    if [ -n "$group" ]; then
        {
            kill "-$stop_by" -- "-$group"
            for _ in $(seq 600); do kill -0 -- "-$group" || break; sleep 0.1; done
            kill -KILL -- "-$group"
            wait
        } 2>/dev/null || true
    fi
    [ -z "$work" ] || rm -rf "$work"
    # What others reserved meanwhile stays.
    [ "$added" -eq 0 ] || echo $(($(cat $pages) - added)) >$pages
}
stopped_by() { # SIGNAL EXIT_CODE
    printf '\n%s: stopped by %s, cleaning up%s\n' "$demo" "$1" "$patience" >&2
    exit "$2"
}
free_pages() { awk '/^HugePages_Free/ {free = $2} /^HugePages_Rsvd/ {kept = $2} END {print free - kept}' /proc/meminfo; }
reserve() { # COUNT of 2 MiB pages
    [ -w $pages ] || fail "this kernel offers no hugepages ($pages): run it on the machine itself, not in a container"
    local before need=$1
    before=$(cat $pages)
    [ "$(free_pages)" -ge "$need" ] && return
    echo $((before + need - $(free_pages))) >$pages
    if [ "$(free_pages)" -lt "$need" ]; then
        # Memory is there, but in pieces: file caches give theirs back.
        sync
        echo 3 >/proc/sys/vm/drop_caches 2>/dev/null || true
        echo 1 >/proc/sys/vm/compact_memory 2>/dev/null || true
        echo $(($(cat $pages) + need - $(free_pages))) >$pages
    fi
    added=$(($(cat $pages) - before))
    [ "$(free_pages)" -ge "$need" ] ||
        fail "only $(free_pages) of $need hugepages (2 MiB) could be reserved: free memory, or run it soon after boot"
}


# Checks the machine, and ends all of it whatever happens.
begin_demo() {
    [ "$(id -u)" -eq 0 ] || fail "run it as root: it installs packages, reserves hugepages and makes a TAP device"
    [ -c /dev/net/tun ] || fail "there is no /dev/net/tun, which the TAP device needs: modprobe tun"
    trap clean EXIT
    trap 'stopped_by Ctrl-C 130' INT
    trap 'stopped_by SIGTERM 143' TERM
    trap 'stopped_by SIGHUP 129' HUP
}
pages=/proc/sys/vm/nr_hugepages
