# `penstock worker --ready`: 0 where a worker takes links, 6 where none does, in a few seconds.
. tests/end_to_end/common.sh
trap 'kill -CONT $(jobs -p) 2>/dev/null || :; kill $(jobs -p) 2>/dev/null || :; wait; rm -rf "$work"' EXIT
sh "$top/tests/support/make_certificates.sh" tls || die "certificates: $(cat tls/make_certificates.log)"

start_worker() { # [OPTION...]: sets `started` and `port`
    rm -f pipe
    mkfifo pipe
    "$PENSTOCK" worker --listen 127.0.0.1:0 --announce 9 "$@" 9>pipe 2>worker.log &
    started=$!
    read -r port <pipe
}

fails 2 "expected host:port" "$PENSTOCK" worker --ready nowhere
fails 2 "exclude each other" "$PENSTOCK" worker --ready 127.0.0.1:1 --listen 127.0.0.1:0
fails 6 "127.0.0.1:1 does not take links: .*refused" "$PENSTOCK" worker --ready 127.0.0.1:1

start_worker
"$PENSTOCK" worker --ready "127.0.0.1:$port" 2>messages || die "$(cat messages)"
grep -q "127.0.0.1:$port takes links" messages || die "$(cat messages)"
fails 6 'does not take links' "$PENSTOCK" worker --ready "127.0.0.1:$port" --tls tls/ca.pem,tls/cert.pem,tls/key.pem
kill -STOP "$started" # it is there, connections to it are made, and nothing else
fails 6 "127.0.0.1:$port does not take links" "$PENSTOCK" worker --ready "127.0.0.1:$port"
kill -CONT "$started"
"$PENSTOCK" worker --ready "127.0.0.1:$port" -q 2>messages || die "$(cat messages)"
[ ! -s messages ] || die "words in spite of -q: $(cat messages)"

# with certificates: its own, which need not be for the address, and another of its authority
start_worker --tls tls/ca.pem,tls/elsewhere.pem,tls/key.pem
"$PENSTOCK" worker --ready "127.0.0.1:$port" --tls tls/ca.pem,tls/elsewhere.pem,tls/key.pem 2>messages ||
    die "$(cat messages)"
fails 6 'does not take links' "$PENSTOCK" worker --ready "127.0.0.1:$port" --tls tls/ca.pem,tls/cert.pem,tls/key.pem
fails 6 'does not take links' "$PENSTOCK" worker --ready "127.0.0.1:$port"
fails 6 'does not take links' "$PENSTOCK" worker --ready "127.0.0.1:$port" \
    --tls tls/other_ca.pem,tls/other_cert.pem,tls/other_key.pem
