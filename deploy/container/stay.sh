#!/bin/sh
# Runs `streamdp` with the words given, and stays after exit codes that a restart does not mend: 2 (configuration),
# 3 (budget), 5 (another process works on the store), 6 (damage). Compose and Kubernetes cannot tell codes, and
# would start it again for ever. It then says why, writes the code to a file for probes, and ends with it once
# it is told to stop. What else ends with an error is restarted by whoever runs the container.
set -u
ended=${STREAMDP_ENDED:-/tmp/streamdp-ended}
rm -f "$ended"
child= told= # signals may come before there is anybody to pass them on to
trap 'told=TERM; kill -TERM $child 2>/dev/null' TERM INT
trap 'kill -HUP $child 2>/dev/null' HUP
streamdp "$@" &
child=$!
[ -z "$told" ] || kill -TERM "$child" 2>/dev/null
while :; do # a signal ends the wait, and not the child
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
done
case $code in
2 | 3 | 5 | 6)
    echo "streamdp ended with exit code $code, which a restart does not mend: mend it, then restart this container" >&2
    trap 'exit "$code"' TERM INT
    echo "$code" >"$ended"
    trap '' HUP
    while :; do
        sleep 60 >/dev/null 2>&1 &
        wait $!
    done
    ;;
esac
exit "$code"
