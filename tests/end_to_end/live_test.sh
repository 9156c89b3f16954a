# The page of a training while it runs (--live): what it says, who may read it, and that the numbers stay the same.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/followed_job.sh"

# long enough to be looked at, and evaluated while it runs
sed -i 's/epochs: 2/epochs: 200000/; /^checkpoint/d' job.yaml
echo 'evaluation: {every: 2 epochs, metric: loss}' >>job.yaml
echo 'a token of many letters' >token

cat >look.py <<'PY'
import base64, json, re, socket, ssl, sys, time

HOST, PORT = "127.0.0.1", int(sys.argv[1])
TOKEN = sys.argv[2] if len(sys.argv) > 2 else None
CA = sys.argv[3] if len(sys.argv) > 3 else None
tls = ssl.create_default_context(cafile=CA) if CA else None

def ask(head, body=b""):
    """The whole answer to bytes that may be no request: status, headers, body."""
    with socket.create_connection((HOST, PORT), timeout=60) as plain:
        caller = tls.wrap_socket(plain, server_hostname="localhost") if tls else plain
        caller.sendall(head.encode() + body)
        answer = b""
        try:
            while piece := caller.recv(65536):
                answer += piece
        except (ConnectionResetError, ssl.SSLEOFError): # what it sent was not read to its end
            pass
    head, _, body = answer.partition(b"\r\n\r\n")
    return (0, "", b"") if not head else (int(head.split()[1]), head.decode(), body)

def get(path, host="localhost", method="GET", more=()):
    lines = [f"{method} {path} HTTP/1.1", "Connection: close", *([f"Host: {host}"] if host else []), *more]
    return ask("\r\n".join(lines) + "\r\n\r\n")

def status(*given, **named):
    return get(*given, **named)[0]

allowed = [f"Authorization: Bearer {TOKEN}"] if TOKEN else []
end = time.monotonic() + 60
while True:
    told = json.loads(get("/data", more=allowed)[2])
    if told["live"]["state"] == "running" and len(told.get("evaluations", {}).get("series", [])) > 0:
        break
    assert time.monotonic() < end, told["live"]
    time.sleep(0.05)
code, head, page = get("/", more=allowed)
assert code == 200 and b'"is_live": true' in page and b"connect-src 'self'" in page, head
for header in ("Cache-Control: no-store", "X-Content-Type-Options: nosniff", "X-Frame-Options: DENY",
               "Cross-Origin-Resource-Policy: same-origin"):
    assert header in head, head
assert "Access-Control-Allow-Origin" not in head
live = told["live"]
assert 0 < live["step"] <= live["steps"] == 600000 and live["loss"] > 0 and live["left_seconds"] > 0, live
assert [one["name"] for one in told["losses"]["series"]] == ["loss"] and told["rate"]["points"][0][1] == 0.01
assert told["evaluations"]["deciding"] == "loss" and told["evaluations"]["best_step"] > 0
while json.loads(get("/data", more=allowed)[2])["live"]["step"] == live["step"]:
    assert time.monotonic() < end, "it does not go on"
assert status("/nothing", more=allowed) == status("/../data", more=allowed) == 404

# it is for reading
assert status("/", method="POST", more=[*allowed, "Content-Length: 0"]) == 405
assert status("/data", method="DELETE", more=allowed) == 405
assert get("/", method="HEAD", more=allowed)[0::2] == (200, b"")
assert ask("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3\r\n" +
           "".join(one + "\r\n" for one in allowed) + "\r\n", b"abc")[0] in (0, 413)

# names that a stranger's page could have made to mean this machine
for host in ("evil.example", "localhost.evil.example", f"evil.example:{PORT}", "127.0.0.1.evil.example", "localhost:x",
             "[::1", "[evil]", "::1", "0x7f.1"):
    assert status("/", host=host, more=allowed) == 421, host
assert status("/", host="", more=allowed) in (400, 421)
assert ask("GET /data HTTP/1.0\r\n\r\n")[0] == 421
for host in ("localhost", f"LOCALHOST:{PORT}", "127.0.0.1", "192.0.2.7:1", "[::1]", f"[::1]:{PORT}"):
    assert status("/data", host=host, more=allowed) == 200, host

if TOKEN:
    code, head, _ = get("/")
    assert code == 401 and 'WWW-Authenticate: Basic realm="penstock"' in head, head
    def password(text):
        return ["Authorization: Basic " + base64.b64encode(text.encode()).decode()]
    assert status("/data", more=password("anyone:" + TOKEN)) == 200
    assert status("/data", more=password(":" + TOKEN)) == 200
    for wrong in (TOKEN, "a:" + TOKEN[:-1], "a:" + TOKEN + "x", "a:", TOKEN + ":", "a:" + TOKEN * 300):
        assert status("/data", more=password(wrong)) in (0, 401, 431), wrong
    for wrong in ("Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"bearer {TOKEN}", "Basic !!", "Basic"):
        assert status("/data", more=[f"Authorization: {wrong}"]) == 401, wrong
    assert status("/data", host="evil.example", more=allowed) == 421

if CA: # nothing is told to whoever speaks no TLS, or does not trust the authority
    with socket.create_connection((HOST, PORT), timeout=60) as caller:
        caller.sendall(b"GET /data HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            assert b"live" not in caller.recv(65536)
        except ConnectionResetError:
            pass
    try:
        with socket.create_connection((HOST, PORT), timeout=60) as caller:
            ssl.create_default_context().wrap_socket(caller, server_hostname="localhost")
        raise AssertionError("a stranger's certificate is trusted")
    except ssl.SSLCertVerificationError:
        pass

# many of another address who say nothing: all others are answered still
idle = []
for _ in range(100):
    try:
        idle.append(socket.create_connection((HOST, PORT), timeout=60, source_address=("127.0.0.2", 0)))
    except OSError:
        break
assert status("/data", more=allowed) == 200
print(len(idle))
PY

# look ADDRESS [TOKEN [taken|CA]]: a training that is looked at, and then stopped
look() {
    local scheme=http ca=''
    case $1 in https://*) scheme=https ca=$3 ;; esac
    "$PENSTOCK" train job.yaml --live "$1" ${2:+--live-token token} >out 2>said &
    local pid=$!
    for _ in $(seq 600); do
        grep -q "the page is at $scheme://" said && break
        sleep 0.1
    done
    port=$(sed -n 's,^the page is at https\?://.*:\([0-9]*\)/$,\1,p' said)
    /usr/bin/python3 look.py "$port" ${2:+"$2"} ${ca:+"$ca"} >looked 2>&1 || {
        kill -KILL $pid
        die "--live $1: $(cat looked)"
    }
    if [ "${3:-}" = taken ]; then # a second one finds the port taken
        fails 2 "cannot listen at 127.0.0.1:$port: the port is taken; stop what listens there, or" "$PENSTOCK" train job.yaml --live "127.0.0.1:$port"
    fi
    kill -KILL $pid
    wait $pid || : # nothing of it is kept
}
look 127.0.0.1:0 '' taken
look 0.0.0.0:0 'a token of many letters'
sh "$top/tests/support/make_certificates.sh" tls || die "certificates: $(cat tls/make_certificates.log)"
echo 'tls: {ca: tls/ca.pem, cert: tls/cert.pem, key: tls/key.pem}' >>job.yaml
look https://0.0.0.0:0 'a token of many letters' tls/ca.pem
fails 2 '--live 0.0.0.0:0 can be reached' "$PENSTOCK" train job.yaml --live https://0.0.0.0:0
sed -i '/^tls:/d' job.yaml
fails 2 '--live https://127.0.0.1:0 needs tls: {ca, cert, key} in the job' \
    "$PENSTOCK" train job.yaml --live https://127.0.0.1:0

# the numbers are what they are without it
sed -i 's/epochs: 200000/epochs: 4/' job.yaml
penstock train job.yaml --json >plain.json 2>/dev/null
penstock train job.yaml --json --live localhost:0 >live.json 2>/dev/null
[ "$(json 'd["parameters_hash"]' <plain.json)" = "$(json 'd["parameters_hash"]' <live.json)" ] || die "other parameters"

# what is wrong
fails 2 '--live 0.0.0.0:0 can be reached from other machines: give --live-token FILE' \
    "$PENSTOCK" train job.yaml --live 0.0.0.0:0
fails 2 "address 'nonsense': expected host:port" "$PENSTOCK" train job.yaml --live nonsense
fails 2 '--live-token: found no page' "$PENSTOCK" train job.yaml --live-token token
echo short >short
fails 2 "found a first line of 5 bytes in 'short', expected 16" \
    "$PENSTOCK" train job.yaml --live 127.0.0.1:0 --live-token short
fails 2 'no-such-file' "$PENSTOCK" train job.yaml --live 127.0.0.1:0 --live-token no-such-file
