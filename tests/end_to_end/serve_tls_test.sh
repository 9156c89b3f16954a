# Who may ask a server: gRPC with certificates of one authority, or another, or none; tokens over both doors;
# certificates that are replaced while it runs.
. tests/end_to_end/serve.sh
sh "$top/tests/support/make_certificates.sh" tls || die "certificates: $(cat tls/make_certificates.log)"

# outcome EXPECTED CA CERT KEY [AUTHORIZATION]
outcome() {
    local expected=$1 found
    shift
    found=$(client tls "$grpc" net inputs.npy outputs.npy "$@")
    [ "$found" = "$expected" ] || die "with $*: $found, expected $expected: $(cat ./*.log)"
}

keys='tls: {ca: here/ca.pem, cert: here/cert.pem, key: here/key.pem}'
answers='serve: {name: net, max_batch: 16}'
job one '{name: a, threads: 1, kind: reference}'
job secured '{name: a, threads: 1, kind: reference}' "$answers
$keys"
penstock train -q one.yaml
penstock predict -q one.yaml -o outputs.npy --batch 16
mkdir here
cp tls/ca.pem tls/cert.pem tls/key.pem here

# ---- certificates: of the same authority, or none. Then the door may be open to other machines
grpc_at=0.0.0.0:0
serve secured
grpc_at=
outcome OK tls/ca.pem tls/cert.pem tls/key.pem
outcome UNAVAILABLE tls/ca.pem - -
outcome UNAVAILABLE tls/ca.pem tls/other_cert.pem tls/other_key.pem
outcome UNAVAILABLE tls/ca.pem tls/expired.pem tls/key.pem
outcome UNAVAILABLE tls/ca.pem tls/self_signed.pem tls/key.pem
outcome UNAVAILABLE tls/other_ca.pem tls/cert.pem tls/key.pem # the caller does not know the server
plain=$(client plain "$grpc" net)
[ "$plain" = UNAVAILABLE ] || die "without TLS: $plain"

# ---- other certificates, while it runs: each new connection has the files of its time, one that is open goes on
client kept "$grpc" net inputs.npy outputs.npy tls/ca.pem tls/cert.pem tls/key.pem waiting >kept &
keeper=$!
for ((i = 0; i < 200; i++)); do
    [ ! -e waiting ] || break
    sleep 0.05
done
cp tls/other_ca.pem here/ca.pem
cp tls/other_cert.pem here/cert.pem
cp tls/other_key.pem here/key.pem
outcome OK tls/other_ca.pem tls/other_cert.pem tls/other_key.pem
outcome UNAVAILABLE tls/other_ca.pem tls/cert.pem tls/key.pem
outcome UNAVAILABLE tls/ca.pem tls/cert.pem tls/key.pem
kill -HUP "$server" # asks for new parameters, and closes no connection
for ((i = 0; i < 100; i++)); do
    ! grep -q 'serves the parameters' secured.log || break
    sleep 0.1
done
rm waiting
wait "$keeper" || die 'the connection that was open'
[ "$(cat kept)" = 'OK OK' ] || die "the connection that was open: $(cat kept)"
# what is wrong changes nothing
echo nothing >here/cert.pem
outcome OK tls/other_ca.pem tls/other_cert.pem tls/other_key.pem
cp tls/cert.pem here/cert.pem # of another key
outcome OK tls/other_ca.pem tls/other_cert.pem tls/other_key.pem
finish secured
cp tls/ca.pem tls/cert.pem tls/key.pem here

# ---- certificates that were taken back: each call looks at the lists as they are now
cp tls/none_crl.pem list.pem
job listed '{name: a, threads: 1, kind: reference}' "$answers
${keys%\}}, crl: list.pem}"
serve listed
outcome OK tls/ca.pem tls/revoked.pem tls/key.pem
cp tls/ca_crl.pem list.pem
outcome UNAUTHENTICATED tls/ca.pem tls/revoked.pem tls/key.pem
outcome OK tls/ca.pem tls/cert.pem tls/key.pem
finish listed

# ---- a token, too
echo 'a-token-of-32-bytes-that-is-secret' >token
job both '{name: a, threads: 1, kind: reference}' "serve: {name: net, max_batch: 16, token: token}
$keys"
serve both
mine='tls/ca.pem tls/cert.pem tls/key.pem'
# shellcheck disable=SC2086 # three words
{
    outcome OK $mine 'Bearer a-token-of-32-bytes-that-is-secret'
    outcome UNAUTHENTICATED $mine
    outcome UNAUTHENTICATED $mine 'Bearer a-token-of-32-bytes-that-is-secreT'
    outcome UNAUTHENTICATED $mine 'Bearer a-token-of-32-bytes-that-is-secret '
    outcome UNAUTHENTICATED $mine 'a-token-of-32-bytes-that-is-secret'
    outcome UNAUTHENTICATED $mine 'Bearer '
}
client tokens "$http" net "$(cat token)" || die "tokens: $(cat both.log)"
finish both
grep -q "warning: serve.token: '.*token' can be read by everybody on this machine (mode 0644)" both.log || die "nothing of the token: $(cat both.log)"
chmod 600 token

# ---- HTTP with TLS: the server shows its certificate, callers a token
https() { # CODE FILE OF CA [AUTHORIZATION [NEWEST TLS]]
    local expected=$1 found
    shift
    found=$(python3 -W ignore - "$http" "$@" <<'END'
import ssl, sys, urllib.request
port, ca, token, newest = (sys.argv[1:] + ["", ""])[:4]
context = ssl.create_default_context(cafile=ca)
if newest: # which needs ciphers that are off by default
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[newest]
request = urllib.request.Request(f"https://localhost:{port}/v2/models/net", headers={"Authorization": token} if token else {})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
try:
    with opener.open(request, timeout=20) as answer:
        print(answer.status, "net" if b'"net"' in answer.read() else "other")
except urllib.error.HTTPError as error:
    print(error.code)
except urllib.error.URLError as error:
    print("certificate" if "CERTIFICATE" in str(error) else "closed" if "EOF" in str(error) else error)
END
    )
    [ "$found" = "$expected" ] || die "https with $*: $found, expected $expected: $(cat both.log)"
}
: >both.out # of the server before, which else would be read
"$PENSTOCK" serve both.yaml --json --https 0.0.0.0:0 >both.out 2>both.log &
server=$!
for ((i = 0; i < 600; i++)); do
    [ ! -s both.out ] || break
    kill -0 "$server" 2>/dev/null || die "serve both: $(cat both.log)"
    sleep 0.1
done
http=$(json 'd["http_port"]' <both.out)
https '200 net' tls/ca.pem "Bearer $(cat token)"
https 401 tls/ca.pem
https certificate tls/other_ca.pem "Bearer $(cat token)"
https closed tls/ca.pem "Bearer $(cat token)" TLSv1_1
python3 - "$http" <<'END' || die 'it answers without TLS'
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
try:
    connection.request("GET", "/v2/health/live")
    sys.exit(connection.getresponse().status)
except (http.client.HTTPException, OSError):
    pass
END
finish both
fails 2 '--https 0.0.0.0:0 can be reached from other machines: give the job serve: .token: FILE., or say --insecure' \
    "$PENSTOCK" serve secured.yaml --https 0.0.0.0:0
fails 2 '--https needs tls: {ca, cert, key} in the job' "$PENSTOCK" serve one.yaml --https 127.0.0.1:0
fails 2 '--http and --https exclude each other' "$PENSTOCK" serve one.yaml --https 127.0.0.1:0 --http 127.0.0.1:0

# ---- HTTP without TLS: without a token it is for this machine
fails 2 '--http 0.0.0.0:0 can be reached from other machines: give the job serve: .token: FILE., or say --insecure' \
    "$PENSTOCK" serve secured.yaml --http 0.0.0.0:0
for text in '' short; do
    echo "$text" >token
    fails 3 "serve.token: found a first line of ${#text} bytes, expected 16 at least" "$PENSTOCK" serve both.yaml --grpc 127.0.0.1:0
done
rm token
fails 3 token "$PENSTOCK" serve both.yaml --grpc 127.0.0.1:0
