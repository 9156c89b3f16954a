# Rows of an SQLite file train as files do, bit for bit, whoever reads them; what is wrong with a
# query or a row is named, and nothing half made is left.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/data_jobs.sh"
python3 "$top/tests/end_to_end/make_data.py" . 42
python3 "$top/tests/end_to_end/make_database.py" . base.db
connection=sqlite:base.db
pixels=$(seq -s , -f p%g 0 783)

job files '{format: npy, inputs: {input: inputs.npy}, labels: labels.npy}' "$one"
expected=$(numbers files)
job png "$(sql 'query: "select * from examples", inputs: {input: png}, labels: label, partition: id,
  size: 28, channels: 1')" "$one"
job raw "$(sql 'query: "select * from examples order by id -- all", inputs: {input: raw}, labels: label,
  element: float32')" "$one"
job shaped "$(sql 'query: select * from examples, partition: id, inputs: {input: raw}, labels: label,
  element: float32, shape: [1, 784], cache: elsewhere')" "$started" workers
job columns "$(sql "query: 'select * from examples; ', partition: id, inputs: {input: [$pixels]}, labels: label")" \
    "$started" workers
job pictures "$(sql 'query: "select id, label as \"a \"\"b\", png from examples", partition: id, inputs: {input: png},
  labels: "a \"b", size: 28, channels: 1')" "$started" workers
for name in png raw shaped columns pictures; do
    found=$(numbers "$name")
    [ "$found" = "$expected" ] || die "$name: $found, files have $expected"
    grep -q 'read all 42 rows' messages || die "$name: it is not told what was read: $(cat messages)"
done
[ "$(find elsewhere -name manifest.json | wc -l)" -eq 1 ] || die 'cache: is not where the rows are kept'
no_halves

# what was read is found again, also by others; a changed file, `refresh`, and damage are read anew
found=$(numbers png)
[ "$found" = "$expected" ] || die "what is kept has other numbers: $found"
! grep -q 'read all' messages || die 'what is kept is read again'
sed 's/partition: id/partition: id, refresh: true/' png.yaml >refresh.yaml
sleep 1.1
found=$(numbers refresh)
[ "$found" = "$expected" ] || die "read anew, it has other numbers: $found"
[ "$(grep -c 'read all' messages)" -eq 1 ] || die "refresh reads once a command: $(cat messages)"
kept=$(grep -l '"is_pictures": true' penstock-cache/*/manifest.json | head -n 1)
printf x | dd of="$(dirname "$kept")/0.data" bs=1 seek=100 conv=notrunc status=none
for name in png pictures; do
    found=$(numbers "$name")
    [ "$found" = "$expected" ] || die "$name: after damage it has other numbers: $found"
done
python3 -c 'import sqlite3
base = sqlite3.connect("base.db")
base.execute("update examples set label = 9 - label")
base.commit()'
changed=$(numbers png)
[ "$changed" != "$expected" ] || die 'a changed file is not read again'
# a change that is in the log beside the file, as long as somebody has it open
python3 -c 'import sqlite3, time
base = sqlite3.connect("base.db")
base.execute("pragma journal_mode = wal")
base.execute("update examples set label = 9 - label")
base.commit()
print("ready", flush=True)
time.sleep(60)' >ready &
holder=$!
for ((i = 0; i < 100; i++)); do
    [ -s ready ] && break
    sleep 0.1
done
[ "$(numbers png)" = "$expected" ] || die 'a change in the log is not read'
kill "$holder"
wait "$holder" 2>/dev/null || :
python3 -c 'import sqlite3
sqlite3.connect("base.db").execute("pragma journal_mode = delete")'

# what is wrong is named
refused "no column 'pgn', but png" 'query: select * from examples, inputs: {input: pgn}, labels: label, size: 28'
refused 'no such table: example' 'query: select * from example, inputs: {input: png}, labels: label'
refused 'near .1.: syntax error' 'query: selec 1, inputs: {input: png}, labels: label'
refused "row 5 has NULL in the column 'n'" 'query: select * from broken, partition: id, inputs: {input: n}'
refused "row 5 has 8 bytes in the column 'l', expected 4 bytes, as in the first" \
    'query: select * from broken, inputs: {input: l}, element: float32'
refused "row 1 has 4 bytes in the column 'l', expected a JPEG, PNG, WebP or BMP file; or say with 'element'" \
    'query: select * from broken, inputs: {input: l}'
refused "row 1 has 4 bytes in the column 'l', expected 1 numbers of float64" \
    'query: select * from broken, inputs: {input: l}, element: float64'
refused "row 5 has a number of float64 in the column 't', expected a number of int64" \
    'query: select * from broken, inputs: {input: t}'
refused "row 5 has a value of type text in the column 'w'" 'query: select * from broken, inputs: {input: [id, w]}' \
    ', partition: id, limit: 3'
refused 'two rows have 0 in the column .label.' \
    'query: select * from examples where label < 2, partition: label, inputs: {input: png}'
refused 'the query gives no rows' 'query: select * from examples where id < 0, inputs: {input: png}'
job refused '{format: sql, connection: "sqlite:none.db", query: select 1, inputs: {input: x}}' "$one"
fails 3 "cannot find the database .none.db.: No such file" "$PENSTOCK" train refused.yaml
job refused '{format: sql, connection: "mysql://me:secret@host/x", query: select 1, inputs: {input: x}}' "$one"
fails 3 'another kind of address, expected postgresql://' "$PENSTOCK" train refused.yaml
! grep -q secret fails.err || die "a message has a password: $(cat fails.err)"

# a disk that fails, or a process that is killed, leaves nothing that is taken for whole
rm -rf penstock-cache
PENSTOCK_FAILPOINT=file.written:20:fail fails 9 'cannot write' "$PENSTOCK" train columns.yaml
no_halves
(trap '' XFSZ && ulimit -f 8 && fails 9 'File too large' "$PENSTOCK" train columns.yaml) || die 'a full disk'
no_halves
PENSTOCK_FAILPOINT=sql.row_taken:20:kill timeout 60 "$PENSTOCK" train columns.yaml >killed 2>&1 || :
[ -n "$(find penstock-cache -name '*.part')" ] || die 'the process was not killed where it should be'
numbers columns >after
grep -q 'read all 42 rows' messages || die 'rows that were read half are taken for whole'
no_halves

# of two processes that want the same at once, one reads it
rm -rf penstock-cache
PENSTOCK_FAILPOINT=sql.row_taken:20:sleep=2 "$PENSTOCK" train columns.yaml >first 2>&1 &
for ((i = 0; i < 200; i++)); do
    ! grep -q failpoint first || break
    sleep 0.05
done
"$PENSTOCK" train columns.yaml >second 2>&1 || die "the second: $(cat second)"
wait $! || die "the first: $(cat first)"
grep -q 'read all 42 rows' first || die "the first: $(cat first)"
grep -q 'waiting for another process' second || die "the second: $(cat second)"
! grep -q 'read all' second || die "the second has waited, and reads the same again: $(cat second)"
