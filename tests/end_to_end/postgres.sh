# shellcheck shell=bash
# A PostgreSQL server of a test's own, on a socket and on a port of 127.0.0.1 that was free: source
# this behind common.sh. `postgres_start` starts it; it ends with the script, and leaves nothing.
# Without the server's programs the test is skipped.

postgres_programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -x "$postgres_programs/initdb" ] || {
    echo 'no PostgreSQL server is installed (./dependencies.sh databases)'
    exit 77
}
postgres_folder=$(mktemp -d /tmp/penstock-postgres.XXXXXX)
postgres_pid=

# The server refuses to run as root.
postgres_run() {
    if [ "$(id -u)" -eq 0 ]; then
        local user=postgres
        id -u postgres >/dev/null 2>&1 || user=nobody
        chown "$user" "$postgres_folder"
        (cd / && exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups "$@")
    else
        "$@"
    fi
}

# The server that is running: sets postgres_pid.
postgres_launch() {
    # shellcheck disable=SC2024 # this shell writes
    postgres_run "$postgres_programs/postgres" -D "$postgres_folder/data" -k "$postgres_folder" \
        -c listen_addresses=127.0.0.1 -p "$PGPORT" -c fsync=off -c max_connections=20 >>"$postgres_log" 2>&1 &
    postgres_pid=$!
    for ((i = 0; i < 300; i++)); do
        "$postgres_programs/pg_isready" -q && return
        sleep 0.1
    done
    die "the server does not start: $(cat "$postgres_log")"
}

postgres_stop() { # SIGNAL
    [ -n "$postgres_pid" ] || return 0
    local server
    server=$(head -n 1 "$postgres_folder/data/postmaster.pid" 2>/dev/null || :)
    [ -z "$server" ] || kill -s "$1" "$server" 2>/dev/null || :
    wait "$postgres_pid" 2>/dev/null || :
    postgres_pid=
}

# A cluster with a user `keeper`, who needs no password on the socket and one over TCP.
postgres_start() {
    export PGHOST=$postgres_folder PGUSER=keeper PGDATABASE=postgres PGPORT
    postgres_log=$work/postgres.log
    PGPORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    trap 'case $BASHPID in $$) postgres_stop QUIT; rm -rf "$work" "$postgres_folder" ;; esac' EXIT
    postgres_run "$postgres_programs/initdb" -D "$postgres_folder/data" -U keeper --auth-local=trust \
        --auth-host=scram-sha-256 -E UTF8 --locale=C --no-sync >"$work/initdb.log" 2>&1 || die "$(cat "$work/initdb.log")"
    postgres_launch
}

query() { # SQL
    "$postgres_programs/psql" -q -X -v ON_ERROR_STOP=1 -A -t -c "$1"
}
