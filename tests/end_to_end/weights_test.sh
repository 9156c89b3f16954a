# Weights of examples: equal numbers from every format, whoever reads, on any devices, with replicas, after a stop and
# where a worker is lost; a weight of 2 is an example that comes twice; what cannot be is named.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/data_jobs.sh"
python3 "$top/tests/end_to_end/make_data.py" . 42
python3 "$top/tests/end_to_end/make_database.py" . base.db
connection=sqlite:base.db
/usr/bin/python3 - <<'END'
import csv
import io
import json
import sqlite3
import tarfile

import numpy

weights = numpy.random.default_rng(3).gamma(0.7, size=42).astype(numpy.float32)
weights[5::7] = 0
numpy.save("weights.npy", weights)
numpy.save("weights-0.npy", weights[:9])
numpy.save("weights-1.npy", weights[9:])
numpy.save("column.npy", weights[:, None])
rows = list(csv.reader(open("table.csv")))
texts = ["w", *(repr(float(weight)) for weight in weights)]
with open("weighted.csv", "w") as file:  # in the midst of the inputs
    for row, text in zip(rows, texts):
        print(*row[:100], text, *row[100:], sep=",", file=file)
base = sqlite3.connect("base.db")
base.execute("alter table examples add column w real")
base.executemany("update examples set w = ? where id = ?", [(float(w), i) for i, w in enumerate(weights)])
base.commit()
with open("pictures.csv", "w") as file:  # names in no order; a head, and a mark before names as find has it
    print("picture,weight", file=file)
    names = [f"class{i * 10 // 42}/{i:04}.png" for i in range(42)]
    for i in reversed(range(42)):
        print("./" * (i % 3) + names[i], repr(float(weights[i])), sep=",", file=file)
with tarfile.open("w.tar", "w") as tar:
    for i, name in enumerate(names):
        parts = {"png": open(f"pictures/{name}", "rb").read(), "cls": b"%d\n" % (i * 10 // 42),
                 "weight": b" %r\n" % float(weights[i]),
                 "json": json.dumps({"trust": float(weights[i]), "by": "x"}).encode()}
        for part, data in parts.items():
            member = tarfile.TarInfo(f"{i:04}.{part}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
numpy.save("by_class.npy", numpy.where(numpy.arange(42) * 10 // 42 == 3, 0.25, 1) + numpy.eye(42)[7])
with open("by_class.csv", "w") as file:
    print(*(f"class{c},{0.25 if c == 3 else 1}" for c in range(10)), f"{names[7]},2", sep="\n", file=file)
for name, place, value in ("negative", 7, -1), ("infinite", 8, numpy.inf), ("none", 9, numpy.nan):
    changed = weights.copy()
    changed[place] = value
    numpy.save(f"{name}.npy", changed)
numpy.save("short.npy", weights[:41])
zeros = weights.copy()
zeros[16:32] = 0
numpy.save("zeros.npy", zeros)
END

npy='format: npy, inputs: {input: inputs.npy}, labels: labels.npy'
job plain "{$npy}" "$one"
job alone "{$npy, weights: weights.npy}" "$one"
expected=$(numbers alone)
[ "$expected" != "$(numbers plain)" ] || die 'weights change nothing'
job parts "{$npy, weights: weights-*.npy}" "$one"
job idx '{format: idx, images: images.idx, labels: labels.idx, weights: [weights-0.npy, weights-1.npy]}' "$started" workers
job many "{$npy, weights: weights.npy}" "$started" workers
job fed "{$npy, weights: column.npy}" "$started" coordinator
job csv '{format: csv, file: weighted.csv, label_column: label, weight_column: w}' "$started" workers \
    'scale: 0.00392156862745098'
job sql "$(sql 'query: "select * from examples", inputs: {input: raw}, labels: label, weights: w, partition: id,
  element: float32')" "$started" workers
pictures='format: images, folder: pictures, size: 28, channels: 1'
tar='format: webdataset, shards: w.tar, inputs: {input: png}, labels: cls, size: 28, channels: 1'
job images "{$pictures, weights: pictures.csv}" "$one"
job images_many "{$pictures, weights: pictures.csv}" "$started" workers
job tar "{$tar, weights: weight}" "$started" workers
job tar_json "{$tar, weights: \"json:trust\"}" "$one"
for name in parts idx many fed csv sql images images_many tar tar_json; do
    found=$(numbers "$name")
    [ "$found" = "$expected" ] || die "$name: $found, one device has $expected"
done

# a class, but for a picture of its own; and pictures that are left out leave their weights behind
job by_class "{$pictures, weights: by_class.csv}" "$one"
job by_class_array "{$npy, weights: by_class.npy}" "$one"
[ "$(numbers by_class)" = "$(numbers by_class_array)" ] || die 'weights of classes are others'
cp -r pictures broken
cp -r pictures whole
echo damaged >broken/class4/0019.png
rm whole/class4/0019.png
grep -v 0019 pictures.csv >whole.csv
job broken "{${pictures/pictures/broken}, on_error: skip, weights: pictures.csv}" "$started" workers
job whole "{${pictures/pictures/whole}, weights: whole.csv}" "$one"
[ "$(numbers broken)" = "$(numbers whole)" ] || die 'a picture that is left out changes the weights of others'

# examples held out keep their weights, and evaluations are weighed as steps are
job held "{$npy, weights: weights.npy}" "$one" auto '' 'holdout: 0.25'
job held_many '{format: csv, file: weighted.csv, label_column: label, weight_column: w}' "$started" workers \
    'scale: 0.00392156862745098' 'holdout: 0.25'
[ "$(numbers held)" = "$(numbers held_many)" ] || die 'other weights of what is left after a holdout'
penstock train -q held.yaml --save held.safetensors 2>messages || die "$(cat messages)"
loss() { penstock eval --json "$1.yaml" --parameters held.safetensors "${@:2}" 2>messages | json 'd["loss"]'; }
[ "$(loss held)" = "$(loss held_many)" ] || die 'an evaluation is weighed otherwise'
job unweighed "{$npy}" "$one" auto '' 'holdout: 0.25'
[ "$(loss held)" != "$(loss unweighed)" ] || die 'evaluations are not weighed'

# a weight of 2 is an example that comes twice, and one of 0 an example that does not
/usr/bin/python3 - <<'END'
import numpy

inputs, labels = numpy.load("inputs.npy"), numpy.load("labels.npy")
counts = numpy.arange(42) % 3
numpy.save("counts.npy", counts)
numpy.save("repeated.npy", numpy.repeat(inputs, counts, 0))
numpy.save("repeated_labels.npy", numpy.repeat(labels, counts, 0))
END
job counted "{$npy, weights: counts.npy}" "$one"
job repeated '{format: npy, inputs: {input: repeated.npy}, labels: repeated_labels.npy}' "$one"
sed -i 's/batch: 16, microbatches: 4,/batch: 42, shuffle: false,/' counted.yaml repeated.yaml
close() {
    python3 -c "import sys; a, b = [[float(x) for x in t.split()] for t in sys.argv[1:]]
assert len(a) == len(b) and all(abs(x - y) < 1e-5 for x, y in zip(a, b))" "$1" "$2"
}
counted=$(train_losses counted.yaml)
repeated=$(train_losses repeated.yaml)
close "$counted" "$repeated" || die "counted $counted, repeated $repeated"

# replicas, a stop, and a worker that is lost
lanes() { sed "s/microbatches: 4,/microbatches: 4, lanes: 4,/; $2" "many.yaml" >"$1.yaml"; }
lanes lanes '/^devices/s/\[.*/[{name: a, threads: 1}]/'
lanes replicas 's/^devices/placement: {replicas: 2}\n&/'
whole=$(numbers lanes)
found=$(numbers replicas)
[ "$found" = "$whole" ] || die "two replicas: $found, one device $whole"
first=$(train_losses alone.yaml --steps 2 --checkpoint kept)
rest=$(train_losses many.yaml --resume kept)
[ "$first $rest" = "$(head -n 1 <<<"$expected")" ] || die "after a stop: $first $rest, not $expected"
sed 's/^devices:/checkpoint: {dir: lost, every: 1 steps}\nrecovery: {on_loss: wait}\n&/' many.yaml >lost.yaml
found=$(PENSTOCK_FAILPOINT=worker.task_done:20:kill numbers lost)
check 'd["measured"]["recoveries"] > 0' losses.json
[ "$found" = "$expected" ] || die "a worker is lost: $found, not $expected"

# classes that are balanced are weighed, too, but batches that are mixed are not
job balanced "{$npy, weights: weights.npy}" "$one" auto '' 'balance: class'
job balanced_many "{$npy, weights: weights.npy}" "$started" auto '' 'balance: class'
[ "$(numbers balanced)" = "$(numbers balanced_many)" ] || die 'balanced: two devices differ'
job mixed "{$npy, weights: weights.npy}" "$one" auto '' 'mix: {mixup: 0.2, classes: 10}'
sed -i 's/softmax_cross_entropy/&, probabilities: true/' mixed.yaml
fails 3 'mixed.yaml:.*data.mix: found together with weights of the examples' "$PENSTOCK" train mixed.yaml

wrong() { # PATTERN DATA
    job wrong "$2" "$one"
    fails 3 "$1" "$PENSTOCK" train wrong.yaml
}
wrong "'negative.npy': the weight of example 7 .counted from 0. is -1, expected a number of at least 0" \
    "{$npy, weights: negative.npy}"
wrong "'infinite.npy': the weight of example 8 .counted from 0. is inf" "{$npy, weights: infinite.npy}"
wrong "'none.npy': the weight of example 9 .counted from 0. is -*nan" "{$npy, weights: none.npy}"
wrong "'short.npy' has 41 weights of 1 numbers, but there are 42 examples" "{$npy, weights: short.npy}"
wrong "'inputs.npy' has 42 weights of 784 numbers" "{$npy, weights: inputs.npy}"
wrong "no column is called 'v'" '{format: csv, file: weighted.csv, label_column: label, weight_column: v}'
wrong 'column 100 is both label_column and weight_column' \
    '{format: csv, file: weighted.csv, label_column: w, weight_column: w}'
sed '4s/^\(\([^,]*,\)\{100\}\)[^,]*/\1-0.5/' weighted.csv >negative.csv
wrong 'negative.csv:4:.*the weight is -0.5, expected at least 0' \
    '{format: csv, file: negative.csv, label_column: label, weight_column: w}'
grep -v 0019 pictures.csv >lacks.csv
wrong "'lacks.csv' has no weight for 'class4/0019.png', expected a line for each picture, or for its class" \
    "{$pictures, weights: lacks.csv}"
sed 's/0019/0091/' by_class.csv >other.csv
echo class4/0091.png,1 >>other.csv
wrong "other.csv:12:1: error: 'class4/0091.png' is no picture of the folder 'pictures', and none of its classes" \
    "{$pictures, weights: other.csv}"
sed '9s/,.*/,-2/' pictures.csv >below.csv
wrong 'below.csv:9:[0-9]*: error: the weight is -2, expected a number of at least 0' "{$pictures, weights: below.csv}"
sed '$p' pictures.csv >twice.csv
wrong "twice.csv:44:1: error: 'class0/0000.png' has a weight in line 43 already" "{$pictures, weights: twice.csv}"
sed '1s/.*/class0,O.5/' pictures.csv >slip.csv
wrong "slip.csv:1:1: error: the weight of 'class0' is no number" "{$pictures, weights: slip.csv}"
wrong 'table.csv:1:1: error: the line has more than two fields' "{$pictures, weights: table.csv}"
wrong "'w.tar': the member '0000.json' says no weight under the key w" "{$tar, weights: \"json:w\"}"
wrong "'w.tar': the example '0000' has no member '0000.none'" "{$tar, weights: none}"
job wrong "{$npy, weights: zeros.npy}" "$one"
sed -i 's/seed: 3/shuffle: false/' wrong.yaml
fails 3 "'zeros.npy': the weights of all 16 examples of a step are 0, as of example 16 .counted from 0." \
    "$PENSTOCK" train wrong.yaml
job wrong "{$npy, weights: weights.npy}" "$one"
sed -i 's/^devices/evaluation: {metrics: perplexity}\n&/; s/^data:/&\n  holdout: 0.25/' wrong.yaml
fails 3 'found perplexity, but the loss is no plain cross-entropy: it has weights of classes or examples' \
    "$PENSTOCK" train wrong.yaml
