# penstock inspect --passes, --dump-after: the compiler, pass by pass.
. tests/end_to_end/common.sh
ln -s "$top/examples" examples
model=models/function.onnx job=examples/fashion-cnn/job.yaml

echo "--- $model"
penstock inspect --passes "$model"
for pass in import infer_shapes remove_unread; do
    echo "--- after $pass"
    penstock inspect --dump-after "$pass" "$model"
done
penstock inspect --dump-after order "$model" >last
penstock inspect --fused --dump text "$model" | cmp - last || die "--fused differs from the last pass"
penstock inspect --dump dot --dump-after import "$model" | head -n 1 | grep -q '^digraph' || die "not DOT"

# spellings of layers go where fuse_layers says they go
normed=reference/normed_mlp/model.onnx
penstock inspect --dump-after remove_unread "$normed" >before
penstock inspect --dump-after fuse_layers "$normed" >after
! grep -q 'layer_normalization(' before || die "there was nothing to fuse"
grep -q 'layer_normalization(' after || die "nothing was fused"

# a job has what a model alone lacks: a loss, gradients, a device
penstock inspect --json --passes "$job" >passes.json
check 'd["schema"] == "penstock/inspect/1" and len(d["passes"]) > 20' passes.json
check '[p["train"] for p in d["passes"] if p["name"] == "build_gradients"] == [True]' passes.json
check '[p["predict"] for p in d["passes"] if p["name"] == "attach_loss"] == [False]' passes.json
for pass in import attach_loss build_gradients build_updates assign_layouts order; do
    penstock inspect --dump-after "$pass" "$job" >dump || die "no dump after $pass"
    head -n 1 dump | grep -q '^graph ' || die "after $pass: $(head -n 1 dump)"
done
grep -q '^update ' dump || die "the last pass of a training has no updates"

fails 2 "unknown pass 'fuse', possible: fuse_rows, .*, order; did you mean fuse_rows" "$PENSTOCK" inspect --dump-after fuse "$model"
fails 2 "pass 'attach_loss' does not run for $model" "$PENSTOCK" inspect --dump-after attach_loss "$model"
fails 2 'the one or the other' "$PENSTOCK" inspect --passes --dump-after order "$model"
for option in --nodes --fused; do
    fails 2 "$option changes nothing with --dump-after" "$PENSTOCK" inspect "$option" --dump-after order "$model"
done
penstock inspect --json --dump-after order "$model" >refused.json || [ $? -eq 2 ] || die "not refused"
check '"--json changes nothing" in d["error"] and d["exit_code"] == 2' refused.json
fails 2 '--nodes changes nothing with --passes' "$PENSTOCK" inspect --nodes --passes "$model"
fails 2 'MODEL or JOB is missing' "$PENSTOCK" inspect
fails 4 'nowhere.onnx' "$PENSTOCK" inspect --passes nowhere.onnx
penstock inspect --passes >list || die "no list without a model"
grep -q '^fuse_layers ' list || die "no list without a model"
fails 4 'nowhere.yaml' "$PENSTOCK" inspect --passes nowhere.yaml
