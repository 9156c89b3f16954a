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
fails 6 "127.0.0.1:1 does not take links: connection refused" "$PENSTOCK" worker --ready 127.0.0.1:1

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
fails 6 'does not take links: TLS: the peer.s certificate is for another host' \
    "$PENSTOCK" worker --ready "127.0.0.1:$port" --tls tls/ca.pem,tls/cert.pem,tls/key.pem
fails 6 'does not take links' "$PENSTOCK" worker --ready "127.0.0.1:$port"
fails 6 "does not take links: TLS: the peer's certificate is not of the authority" "$PENSTOCK" worker --ready "127.0.0.1:$port" \
    --tls tls/other_ca.pem,tls/other_cert.pem,tls/other_key.pem

# a certificate that was taken back is as good as none; a list that cannot be used, too
start_worker --tls tls/ca.pem,tls/revoked.pem,tls/key.pem
asked=("$PENSTOCK" worker --ready "127.0.0.1:$port" --tls tls/ca.pem,tls/cert.pem,tls/key.pem)
serial=$(openssl x509 -in tls/revoked.pem -noout -serial | sed 's/.*=//')
"${asked[@]}" --crl tls/none_crl.pem 2>messages || die "$(cat messages)"
fails 6 "127.0.0.1:$port does not take links: its certificate, serial $serial, is revoked" "${asked[@]}" --crl tls/ca_crl.pem
fails 6 "does not take links: .*old_crl.pem' \('tls: crl'\) has expired" "${asked[@]}" --crl tls/old_crl.pem
fails 2 "none.pem" "${asked[@]}" --crl none.pem
fails 2 "crl is given, but no --tls" "$PENSTOCK" worker --ready "127.0.0.1:$port" --crl tls/ca_crl.pem

# what says how it would listen, or work, is a mistake here; so is a question of a task
for option in --store=kept --mirror=kept --data=. --token-file=token --audit-log=log --allow-coordinator=a --allow-worker=a; do
    fails 2 "^error: --ready: found ${option%=*}, which goes with --listen alone" "$PENSTOCK" worker --ready 127.0.0.1:1 "${option%=*}" "${option#*=}"
    fails 2 "^error: --launched: found ${option%=*}, which goes with --listen alone" "$PENSTOCK" worker --launched job.yaml "${option%=*}" "${option#*=}"
done
for option in --listen=127.0.0.1:0 --ready=127.0.0.1:1 --tls=a,b,c --crl=a; do
    fails 2 "^error: --launched: found ${option%=*}, expected" "$PENSTOCK" worker --launched job.yaml "${option%=*}" "${option#*=}"
done
fails 2 "^error: --launched: found no job" "$PENSTOCK" worker --launched
fails 2 'found the job "job.yaml", expected none without --launched' "$PENSTOCK" worker --ready 127.0.0.1:1 job.yaml
