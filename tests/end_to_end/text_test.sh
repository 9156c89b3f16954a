# Models of language: trained on a text and on tokens, over one device and three, and what they
# write.
. tests/end_to_end/common.sh

python3 - <<'END'
import struct
text = b"abcdefghijklmnopqrstuvwxyz0123456789; " * 60
open("text.txt", "wb").write(text)
open("tokens.bin", "wb").write(b"".join(struct.pack("<H", b) for b in text))
END

cat >text.yaml <<'END'
version: 1
model:
  seed: 1
  inputs: {tokens: {shape: [32], dtype: int64}}
  layers:
    - embedding: {input_dim: 128, output_dim: 16}
    - lstm: {units: 48, return_sequences: true}
    - dense: {units: 128}
data: {train: {format: text, file: text.txt, sequence: 32, stride: 5}, eval: {format: text, file: text.txt, sequence: 32}}
train: {loss: softmax_cross_entropy, optimizer: {adam: {lr: 0.02}}, batch: 16, epochs: 3, seed: 1}
devices: [{name: a, threads: 1}]
outputs: {dir: run}
END
sed -e 's/format: text, file: text.txt/format: tokens, file: tokens.bin/g' -e 's/dir: run/dir: run-tokens/' text.yaml >tokens.yaml
sed -e 's/^devices:.*/devices: [{name: a, threads: 1}, {name: b, threads: 1}, {name: c, threads: 1}]/' \
    -e 's/dir: run/dir: run-three/' text.yaml >three.yaml

penstock train --json text.yaml >one.json
check 'd["evaluation"]["accuracy"] > 0.9' one.json "the text is not learned"
penstock train --json tokens.yaml >tokens.json
penstock train --json three.yaml >three.json
for run in run-tokens run-three; do
    cmp run/parameters.safetensors "$run/parameters.safetensors" || die "$run gives other parameters"
done

# the likeliest continuation is the text itself; beyond the sequence's length the window moves on
expected="klmnopqrstuvwxyz0123456789; abcdefghijklmnopqrstuvwxyz0123456789; abcdefgh"
found=$(penstock predict -q text.yaml --sample 70 --prompt klmn --temperature 0)
[ "$found" = "$expected" ] || die "wrote '$found', expected '$expected'"
numbers() { python3 -c 'import sys; print(*sys.argv[1].encode())' "$1"; }
found=$(penstock predict -q tokens.yaml --sample 70 --prompt "$(numbers klmn)" --temperature 0)
[ "$found" = "$(numbers "$expected")" ] || die "wrote '$found'"

# chance is the seed's
for seed in 1 1 2; do
    penstock predict -q text.yaml --sample 60 --temperature 3 --top-k 20 --seed $seed -o "sample.$seed"
    penstock predict -q text.yaml --sample 60 --temperature 3 --top-k 20 --seed $seed --json >"sample.json"
    check 'd["prompt_tokens"] == 1 and len(d["tokens"]) == 61 and d["text"][0] == "\n"' sample.json
    [ "$(json 'd["text"]' <sample.json)" = "$(cat "sample.$seed")" ] || die "two forms, two samples"
done
! cmp -s sample.1 sample.2 || die "two seeds wrote the same"

# predictions of a dataset of text are those of any other
penstock predict -q text.yaml --limit 2 -o outputs.npy
[ "$(head -c 200 outputs.npy | grep -ac '(2, 32, 128)')" -eq 1 ] || die "outputs.npy has another shape"

fails 2 "output is missing.*--sample" "$PENSTOCK" predict text.yaml
fails 2 "expected tokens: numbers" "$PENSTOCK" predict -q tokens.yaml --sample 3 --prompt quick
fails 2 "needs a --prompt" "$PENSTOCK" predict -q tokens.yaml --sample 3
fails 3 "token 1 of the beginning is 128, expected 0 to 127" "$PENSTOCK" predict -q tokens.yaml --sample 3 --prompt "5 128"
fails 2 "temperature" "$PENSTOCK" predict -q text.yaml --sample 3 --temperature -1
sed 's/sequence: 32/sequence: 16/' text.yaml >short.yaml
fails 3 "16" "$PENSTOCK" train -q --overwrite short.yaml
printf 'a \303\244' >>text.txt
fails 3 "has the token 195, but the model's vocabulary is 0 to 127" "$PENSTOCK" train -q --overwrite text.yaml
sed 's/sequence: 32}/sequence: 32, limit: 1}/' text.yaml | sed 's/text.txt/none.txt/' >none.yaml
fails 3 "none.txt" "$PENSTOCK" train -q --overwrite none.yaml
