#!/usr/bin/env bash
# Trains the example and checks that it learned; run it from the top of the source tree.
. examples/common.sh tensorflow-finetune
needs /usr/share/datasets/fashion-mnist dataset-fashion-mnist

penstock inspect clothes.pb >inspected || fail "clothes.pb is not understood"
penstock eval -q --json job.yaml >before.json
before=$(figure before.json accuracy)
least "accuracy of the graph as TensorFlow left it" "$before" 0.75
say "training over two devices"
penstock train --json job.yaml >train.json
after=$(figure train.json evaluation accuracy)
least "accuracy after an epoch on all pictures" "$after" 0.84

say "the graph that was written back says the same as the trained parameters"
sed -e 's/file: clothes.pb/file: run\/tuned.pb/' -e '/^outputs:/d' job.yaml >again.yaml
penstock predict -q job.yaml --limit 100 -o own.npy
penstock predict -q again.yaml --limit 100 -o again.npy
cmp own.npy again.npy || fail "tuned.pb gives other outputs"
penstock export -q job.yaml -o tuned.onnx
sed -e 's/model: .*/model: {file: tuned.onnx}/' -e '/^outputs:/d' job.yaml >onnx.yaml
penstock predict -q onnx.yaml --limit 100 -o onnx.npy
python3 - <<'END' || fail "tuned.onnx gives other outputs"
import struct
own, other = ([v[0] for v in struct.iter_unpack("<f", open(name, "rb").read()[128:])] for name in ("own.npy", "onnx.npy"))
raise SystemExit(len(own) != 1000 or max(abs(a - b) for a, b in zip(own, other)) > 1e-4)
END
