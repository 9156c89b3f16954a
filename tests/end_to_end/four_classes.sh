# shellcheck shell=bash
# Data of four classes that noise mixes, so that evaluations go up and down: source behind common.sh. Makes train_x.npy
# and train_y.npy of 96 examples, eval_x.npy and eval_y.npy of 64, with 12 numbers each.
/usr/bin/python3 - <<'PY'
import numpy as np
random = np.random.RandomState(1)
truth = random.randn(12, 4)
inputs = random.randn(160, 12).astype(np.float32)
labels = (inputs @ truth + 3 * random.randn(160, 4)).argmax(1)
for name, part in (("train", slice(0, 96)), ("eval", slice(96, 160))):
    np.save(f"{name}_x.npy", inputs[part])
    np.save(f"{name}_y.npy", labels[part])
PY
