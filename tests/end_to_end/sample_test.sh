# A model of language writes on: the same text from the same seed, also where the job has no data to
# evaluate with.
. tests/end_to_end/common.sh

for _ in $(seq 40); do printf 'abcdefgh'; done >text
cat >job.yaml <<'EOF'
version: 1
model:
  inputs: {bytes: {shape: [16], dtype: int64}}
  layers:
    - embedding: {input_dim: 256, output_dim: 16}
    - lstm: {units: 32, return_sequences: true}
    - dense: {units: 256}
data: {train: {format: text, file: text, sequence: 16}}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.03}}, batch: 19, steps: 60, seed: 1}
devices: [{name: a, threads: 1}]
outputs: {dir: run}
EOF
penstock train -q job.yaml 2>said || die "train: $(cat said)"
penstock predict -q job.yaml --sample 16 --prompt abcd --temperature 0 >out 2>said || die "sample: $(cat said)"
[ "$(cat out)" = abcdefghabcdefghabcd ] || die "wrote $(cat out)"
penstock predict -q job.yaml --sample 16 --prompt abcd --temperature 3 --seed 5 >first 2>said || die "$(cat said)"
penstock predict -q job.yaml --sample 16 --prompt abcd --temperature 3 --seed 5 -o second 2>said || die "$(cat said)"
cmp first second || die "one seed wrote two texts"
penstock predict -q job.yaml --sample 16 --prompt abcd --temperature 3 --seed 6 >third 2>said || die "$(cat said)"
cmp -s first third && die "two seeds wrote one text"
penstock predict -q --json job.yaml --sample 3 --prompt abcd --temperature 0 >json 2>said || die "$(cat said)"
check 'd["text"] == "abcdefg" and d["prompt_tokens"] == 4 and len(d["tokens"]) == 7' json
# the outputs of all examples are asked of data to evaluate with
fails 3 "'eval' is missing" "$PENSTOCK" predict job.yaml -o rows.npy
fails 2 '--prompt: found without --sample N, expected it with one' "$PENSTOCK" predict job.yaml -o a.npy --prompt abcd
fails 2 '--temperature: found without --sample' "$PENSTOCK" predict job.yaml -o a.npy --temperature 0
fails 2 '--limit: found together with --sample N, expected it alone' "$PENSTOCK" predict job.yaml --sample 3 --limit 2
fails 2 '--top-k: found "0"' "$PENSTOCK" predict job.yaml --sample 3 --top-k 0
