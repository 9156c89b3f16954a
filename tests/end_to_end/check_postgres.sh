# Rows of a PostgreSQL server train as files do, bit for bit, whoever reads them. Passwords are taken
# from where they belong, and told nowhere. A connection that is lost is made anew.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/data_jobs.sh"
. "$top/tests/end_to_end/postgres.sh"
python3 "$top/tests/end_to_end/make_data.py" . 42
postgres_start
python3 "$top/tests/end_to_end/make_database.py" . >base.sql
"$postgres_programs/psql" -q -X -v ON_ERROR_STOP=1 -f base.sql
query "alter user keeper password 'sesam/öffne:dich@'"
pixels=$(seq -s , -f p%g 0 783)
connection="postgresql:///postgres?host=$postgres_folder"

job files '{format: npy, inputs: {input: inputs.npy}, labels: labels.npy}' "$one"
expected=$(numbers files)
job png "$(sql 'query: "select * from examples", inputs: {input: png}, labels: label, partition: id,
  size: 28, channels: 1')" "$one"
job raw "$(sql 'query: "select * from examples order by id;", inputs: {input: raw}, labels: label,
  element: float32')" "$one"
job array "$(sql 'query: "select * from examples -- all", partition: id, inputs: {input: pixels}, labels: label')" \
    "$started" workers
job columns "$(sql "query: select * from examples, partition: id, inputs: {input: [$pixels]}, labels: label")" \
    "$started" workers
job numeric "$(sql "query: 'select id, pixels::float8[]::numeric[] as \"P\", label::numeric(3, 1) from examples', partition: id,
  inputs: {input: P}, labels: label, label_type: index")" "$started"
job pictures "$(sql 'query: "select * from examples", partition: id, inputs: {input: png},
  labels: label, size: 28, channels: 1, cache: elsewhere')" "$started" workers
for name in png raw array columns numeric pictures; do
    found=$(numbers "$name")
    [ "$found" = "$expected" ] || die "$name: $found, files have $expected"
    grep -q 'read all 42 rows' messages || die "$name: it is not told what was read: $(cat messages)"
done
no_halves
found=$(numbers array)
[ "$found" = "$expected" ] || die "what is kept has other numbers: $found"
! grep -q 'read all' messages || die 'what is kept is read again'

# what is wrong is named
refused "no column 'pgn', but png" 'query: select * from examples, inputs: {input: pgn}, labels: label'
refused 'relation "example" does not exist' 'query: select * from example, inputs: {input: png}'
refused 'syntax error at or near "1"' 'query: selec 1, inputs: {input: png}'
refused 'syntax error at or near ";"' 'query: select 1; drop table examples, inputs: {input: png}'
refused "subquery in FROM must have an alias|syntax error" 'query: "select 1) to program $$touch x$$ --", inputs: {input: png}'
refused 'division by zero' 'query: select 1 / (id - 3) as x from examples, inputs: {input: x}'
refused "the column 'w' has the type text, expected numbers" 'query: select * from broken, inputs: {input: w}'
refused "row 5 has NULL in the column 'n'" 'query: select * from broken, partition: id, inputs: {input: n}'
refused "row 5 has an array of float32, 3 in the column 'l', expected an array of float32, 2, as in the first" \
    'query: select * from broken order by id, inputs: {input: l}'
refused "in the column 'h'" 'query: select * from broken order by id, inputs: {input: h}'
refused "row 1 has .* in the column 'l', expected a number, as one" \
    'query: select * from broken, inputs: {input: [n, l]}'
refused 'two rows have 0 in' 'query: select * from examples where label < 2, partition: label, inputs: {input: png}'
refused 'the query gives no rows' 'query: select * from examples where id < 0, inputs: {input: png}'
query 'create sequence counted'
refused 'cannot execute nextval.. in a read-only transaction' \
    "query: 'select nextval(''counted'') as x', inputs: {input: x}"

# passwords: in the address, the environment, a file; and none
password='sesam%2Föffne%3Adich%40'
host=127.0.0.1:$PGPORT
reads="query: select * from examples, partition: id, inputs: {input: pixels}, labels: label"
connection="postgresql://keeper:$password@$host/postgres"
job address "$(sql "$reads, cache: address")" "$started" workers
connection="postgresql://keeper@$host/postgres?password=$password"
job option "$(sql "$reads, cache: option")" "$one"
connection="postgresql://keeper@$host/postgres"
job plain "$(sql "$reads, cache: plain")" "$started" workers
for name in address option; do
    found=$(numbers "$name")
    [ "$found" = "$expected" ] || die "$name: $found"
    cp messages "$name.messages"
done
PGPASSWORD='sesam/öffne:dich@' numbers plain >found || die 'PGPASSWORD is not taken'
[ "$(cat found)" = "$expected" ] || die "plain: $(cat found)"
rm -r plain
printf '%s:%s:*:keeper:sesam/öffne\\:dich@\n' 127.0.0.1 "$PGPORT" >pgpass
chmod 600 pgpass
PGPASSFILE=$PWD/pgpass numbers plain >found || die '.pgpass is not taken'
[ "$(cat found)" = "$expected" ] || die "plain: $(cat found)"
rm -r plain
fails 6 'fe_sendauth: no password supplied' "$PENSTOCK" train plain.yaml
penstock plan address.yaml -o address.plan >plan.out 2>plan.err
connection="postgresql://keeper:falsch@$host/postgres"
job wrong "$(sql "$reads, cache: wrong")" "$one"
fails 6 'password authentication failed for user "keeper"' "$PENSTOCK" train wrong.yaml
connection="postgresql://keeper:fal/sch@$host/postgres"
job wrong "$(sql "$reads")" "$one"
fails 3 "connection: found '@' behind '/'" "$PENSTOCK" train wrong.yaml
told=$(grep -rlE 'sesam|falsch|fal/sch' --exclude=*.yaml --exclude=pgpass . || :)
[ -z "$told" ] || die "a password is told in $told"

# a million rows of sixteen numbers take less than a minute, on any machine
query "create table large as select i as id, array[i, i + 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]::float4[] as x,
  i % 3 as y from generate_series(1, 1000000) i"
connection="postgresql:///postgres?host=$postgres_folder"
cat >large.yaml <<YAML
version: 1
model: {inputs: {x: {shape: [16]}}, layers: [{dense: {units: 3}}]}
data: {train: $(sql 'query: select * from large, partition: id, inputs: {x: x}, labels: y')}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 64}
devices: [$one]
YAML
timeout 60 "$PENSTOCK" train large.yaml --steps 1 >large.out 2>large.err || die "a million rows: $(cat large.err)"
sed -n 's/^read all/a million rows: read all/p' large.err

# a server that is not there is told at once; one that is lost is waited for
connection="postgresql://keeper@127.0.0.1:1/postgres"
job nobody "$(sql "$reads")" "$one"
fails 6 'Connection refused' "$PENSTOCK" train nobody.yaml
connection="postgresql:///postgres?host=$postgres_folder"
job lost "$(sql "query: 'select *, pg_sleep(0.1) from examples', partition: id, inputs: {input: pixels}, labels: label,
  cache: lost")" "$one"
(for ((i = 0; i < 100; i++)); do
    sleep 0.1
    [ "$(query "select count(pg_terminate_backend(pid)) from pg_stat_activity where query like '%pg_sleep%' and
        application_name = 'penstock'")" = 0 ] || exit 0
done
exit 1) &
cutter=$!
found=$(numbers lost)
wait "$cutter" || die 'no connection was there to be cut'
[ "$found" = "$expected" ] || die "after a lost connection: $found"
grep -q 'warning: .*terminating connection due to administrator command.*; beginning anew in 1 s' messages ||
    die "a lost connection is not told: $(cat messages)"
no_halves
postgres_stop INT
