# The first job of a model: what init writes for each kind of data trains as it is.
. tests/end_to_end/common.sh
/usr/bin/python3 "$top/tests/end_to_end/make_data.py" data 40

cat >rows.yaml <<'YAML'
inputs: {pixels: {shape: [784]}}
layers: [dense: {units: 16, activation: relu}, dense: 10]
YAML
cat >pictures.yaml <<'YAML'
inputs: {pixels: {shape: [28, 28, 1]}}
layers: [conv2d: {filters: 4, kernel_size: 5, strides: 3}, flatten: {}, dense: {units: 10, activation: softmax}]
YAML
cat >numbers.yaml <<'YAML'
inputs: {a: {shape: [784]}}
layers: [dense: {units: 1, activation: sigmoid}]
YAML
cat >letters.yaml <<'YAML'
inputs: {letters: {shape: [24], dtype: int64}}
layers: [embedding: {input_dim: 256, output_dim: 8}, dense: 256]
YAML
/usr/bin/python3 -c 'import numpy as np
x = np.load("data/inputs.npy"); np.save("flat.npy", x.reshape(len(x), -1))
np.save("shares.npy", (np.load("data/labels.npy") / 9.).astype(np.float32)[:, None])'

# trains LOSS OPERANDS...: the job has the loss, and nothing is missing
trains() {
    local loss=$1
    shift
    rm -rf checkpoints trained
    penstock init --overwrite -o job.yaml "$@" 2>messages || die "$*: $(cat messages)"
    grep -q 'warning' messages && die "$*: $(cat messages)"
    grep -q "^  loss: $loss\$" job.yaml || die "$*: another loss: $(grep loss: job.yaml)"
    penstock train -q --steps 2 job.yaml 2>messages || die "$*: $(cat messages)"
    [ ! -s messages ] || die "$*: $(cat messages)"
    [ -s trained/parameters.safetensors ] || die "$*: nothing is left"
}

trains softmax_cross_entropy reference/mlp/model.onnx reference/mlp/inputs.npy reference/mlp/labels.npy
trains softmax_cross_entropy rows.yaml flat.npy data/labels.npy
trains softmax_cross_entropy rows.yaml labels=data/labels.npy pixels=flat.npy
trains softmax_cross_entropy rows.yaml data/images.idx data/labels.idx
trains softmax_cross_entropy rows.yaml data/table.csv
trains softmax_cross_entropy pictures.yaml data/pictures
trains binary_cross_entropy numbers.yaml flat.npy shares.npy
cp "$top/README.md" text.txt
trains softmax_cross_entropy letters.yaml text.txt
printf 'size,colour,kind\n%s' "$(for i in 1 2 3 4 5 6 7 8; do echo "$i,red,good"; echo "$i.5,blue,bad"; done)" >words.csv
cat >words.yaml <<'YAML'
inputs: {columns: {shape: [3]}}
layers: [dense: 2]
YAML
trains softmax_cross_entropy words.yaml words.csv
grep -q '^    categories: *one_hot ' job.yaml && ! grep -q missing job.yaml || die "words: $(cat job.yaml)"
# words as one number each, where the model has no more columns; empty fields; both
sed 's/3/2/' words.yaml >narrow.yaml
trains softmax_cross_entropy narrow.yaml words.csv
grep -q '^    categories: *index ' job.yaml || die "words as numbers: $(cat job.yaml)"
printf 'size,weight,kind\n%s' "$(for i in 1 2 3 4 5 6 7 8; do echo "$i,,good"; echo "$i.5,3,bad"; done)" >gaps.csv
trains softmax_cross_entropy narrow.yaml gaps.csv
grep -q '^    missing: mean ' job.yaml && grep -q '^    # categories' job.yaml || die "empty fields: $(cat job.yaml)"
(cat words.csv && printf '\n,red,good\n') >both.csv
trains softmax_cross_entropy words.yaml both.csv
grep -q '^    missing: mean ' job.yaml && grep -q '^    categories: *one_hot ' job.yaml || die "both: $(cat job.yaml)"

# a job in another folder finds its files
mkdir there
penstock init -q -o there/job.yaml rows.yaml flat.npy data/labels.npy
(cd there && penstock train -q --steps 1 job.yaml)

# without data, it says what is missing; with data that do not suit the model, what is wrong
rm job.yaml
penstock init rows.yaml 2>messages
grep -q 'job.yaml: written; it needs data' messages || die "no data: $(cat messages)"
penstock init --overwrite rows.yaml flat.npy 2>messages
grep -q 'model and data do not go together yet: job.yaml:[0-9]*:[0-9]*: error: ' messages || die "$(cat messages)"
fails 2 'found job.yaml, which is there from before' "$PENSTOCK" init rows.yaml flat.npy
/usr/bin/python3 -c 'import numpy as np
np.save("one.npy", np.load("flat.npy")[:1]); np.save("one_label.npy", np.load("data/labels.npy")[:1])'
penstock init --overwrite rows.yaml one.npy one_label.npy 2>messages
grep -q 'holding out 0.1 of 1 examples leaves none' messages || die "one example: $(cat messages)"
rm job.yaml
fails 2 '"nothing.npy" is not there' "$PENSTOCK" init rows.yaml nothing.npy
fails 2 'found one array too many' "$PENSTOCK" init rows.yaml flat.npy data/labels.npy flat.npy
fails 2 'found "flat.npy" beside files of another kind' "$PENSTOCK" init rows.yaml data/table.csv flat.npy
fails 2 'found "rows.yaml", expected a folder of pictures' "$PENSTOCK" init rows.yaml rows.yaml
fails 2 "found two arrays for the model's input 'pixels'" "$PENSTOCK" init rows.yaml pixels=flat.npy pixels=flat.npy data/labels.npy
fails 2 "an array for 'pixel', but the model has no such input; one is called 'pixels'" "$PENSTOCK" init rows.yaml pixel=flat.npy
fails 2 'found one array too many' "$PENSTOCK" init rows.yaml pixels=flat.npy data/labels.npy data/labels.npy
for file in rows.yaml flat.npy data/labels.npy; do # what the job is of stays
    cp "$file" before
    fails 2 "found $file, which the job is to be of" "$PENSTOCK" init --overwrite -o "$file" rows.yaml pixels=flat.npy data/labels.npy
    cmp "$file" before || die "$file was replaced"
done
: >empty.csv
fails 3 "'empty.csv' is empty" "$PENSTOCK" init rows.yaml empty.csv
[ "$(grep -c 'is empty' fails.err)" = 1 ] || die "said twice: $(cat fails.err)"
fails 4 'nothing.onnx' "$PENSTOCK" init nothing.onnx
fails 2 'there/job.yaml is a job already' "$PENSTOCK" init there/job.yaml
[ ! -e job.yaml ] || die 'a mistake leaves a job'
