# A model of language writes on: the same text from the same seed, also where the job has no data to
# evaluate with; and one that looks back only runs one position a token, with the same text.
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
penstock predict job.yaml --sample 16 --prompt abcd --temperature 0 >out 2>said || die "sample: $(cat said)"
grep -q "each token runs the whole window of 16 tokens: job.yaml:6: lstm 'lstm' does not say which positions it reads" said ||
    die "no word of the window: $(cat said)"
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
fails 2 '--whole-windows: found without --sample' "$PENSTOCK" predict job.yaml -o a.npy --whole-windows

# ---- keys and values are kept

same_text() { # JOB PROMPT N OPTIONS...
    local job=$1 prompt=$2 count=$3
    shift 3
    penstock predict -q --json "$job" --sample "$count" --prompt "$prompt" "$@" >kept.json 2>said || die "$(cat said)"
    penstock predict -q --json "$job" --sample "$count" --prompt "$prompt" "$@" --whole-windows >whole.json 2>said ||
        die "$(cat said)"
    check 'd["kept_bytes"] > 0 and d["windows"] < len(d["tokens"]) / 2' kept.json
    check 'd["kept_bytes"] == 0 and d["windows"] == len(d["tokens"]) - d["prompt_tokens"]' whole.json
    check 'd["tokens"] == json.load(open("whole.json"))["tokens"]' kept.json
}

cat >layers.yaml <<'END'
version: 1
model:
  inputs: {bytes: {shape: [48], dtype: int64}}
  layers:
    - embedding: {input_dim: 256, output_dim: 32, name: words}
    - multi_head_attention: {from: [words, words], num_heads: 4, key_dim: 8, causal: true, name: mixed}
    - add: {from: [words, mixed], name: sum}
    - layer_normalization: {name: norm}
    - dense: {units: 64, activation: gelu}
    - dense: {units: 32, name: narrow}
    - add: {from: [sum, narrow]}
    - dense: {units: 256}
data: {train: {format: text, file: text, sequence: 48}}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.01}}, batch: 6, steps: 40, seed: 1}
devices: [{name: a, threads: 1}]
outputs: {dir: layers}
END
penstock train -q layers.yaml 2>said || die "train: $(cat said)"
for temperature in 0 1 3; do
    same_text layers.yaml abcd 40 --temperature $temperature --seed 4
done
same_text layers.yaml a 47 --temperature 2 --top-k 9 --seed 5
# when the window slides, each token runs it
same_text layers.yaml abcd 60 --temperature 1
check 'd["windows"] >= 1 + 60 - 45' kept.json
penstock predict layers.yaml --sample 20 --prompt abcd >out 2>said || die "$(cat said)"
grep -q "20 tokens, .* a second: .* ran the whole window, the others one position and 0.0 MiB" said || die "$(cat said)"
# ONNX: trained positions, and a mask
python3 "$top/tests/end_to_end/make_training_models.py" . gpt:32
python3 -c 'import struct
open("tokens.bin", "wb").write(b"".join(struct.pack("<H", 7 * i * i % 50) for i in range(640)))'
cat >gpt.yaml <<'END'
version: 1
model: {file: gpt.onnx}
data: {train: {format: tokens, file: tokens.bin, sequence: 32}}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.003}}, batch: 4, steps: 20, seed: 1}
devices: [{name: a, threads: 2}, {name: b, threads: 1}]
outputs: {dir: gpt}
END
penstock train -q gpt.yaml 2>said || die "train: $(cat said)"
same_text gpt.yaml "1 2 3" 29 --temperature 0
same_text gpt.yaml "1 2 3" 29 --temperature 1 --seed 8
# a mask that is trained may come to let rows see what is behind them
python3 "$top/tests/end_to_end/make_training_models.py" . gpt
sed -e 's/sequence: 32/sequence: 6/' -e 's/dir: gpt/dir: trained/' gpt.yaml >trained.yaml
penstock predict trained.yaml --sample 5 --prompt "1 2 3" >out 2>said || die "$(cat said)"
grep -q "each token runs the whole window of 6 tokens: attention '.*' may read all positions of" said || die "$(cat said)"
