# penstock diagnose: dumps of flight recorders merged, replayed, and wrong files refused.
. tests/end_to_end/common.sh

mkdir -p job/flight
cp "$top"/tests/fuzz/corpus/flight/coordinator job/flight/flight-g3-w0-1.bin
cp "$top"/tests/fuzz/corpus/flight/worker job/flight/flight-g3-w2-2.bin

"$PENSTOCK" diagnose job >found || die "diagnose"
grep -q 'device 1 waits for worker 1 (one) to send' found || die "who waits for whom: $(cat found)"
grep -q "device 'a' has nothing to do" found || die "notes"
[ "$(grep -cE 'replayed [0-9]+ events' found)" = 2 ] || die "replays: $(cat found)"
"$PENSTOCK" diagnose --json --events 5 job/flight/*.bin job/flight >found.json || die "diagnose --json"
[ "$(json '[len(d["dumps"]), len(d["events"]), d["events"][-1]["seconds"], d["dumps"][1]["worker"]]' <found.json)" = \
    '[2, 5, 0, 2]' ] || die "json: $(cat found.json)"
"$PENSTOCK" diagnose --replay job/flight/flight-g3-w2-2.bin >found || die "diagnose --replay"
grep -q 'say that it is ready' found || die "actions: $(cat found)"

fails 3 'there is no such file' "$PENSTOCK" diagnose missing.bin
mkdir empty
fails 3 'found no dumps of flight recorders' "$PENSTOCK" diagnose empty
echo "not a dump" >text.bin
fails 3 'text.bin: error: this is not a dump' "$PENSTOCK" diagnose text.bin
head -c 1000 job/flight/flight-g3-w0-1.bin >cut.bin
fails 3 'cut.bin: error: its checksum is wrong' "$PENSTOCK" diagnose job cut.bin
fails 2 'is missing' "$PENSTOCK" diagnose
