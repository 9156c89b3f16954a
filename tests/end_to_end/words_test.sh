# Options and keys that users of PyTorch, torchrun, torchtitan, DeepSpeed, Keras, Lightning and Hugging Face type are
# answered with what does the same here; and what is named so is there.
. tests/end_to_end/common.sh
cp reference/mlp/model.onnx model.onnx
cat >good.yaml <<'END_JOB'
version: 1
model: {file: model.onnx}
data: {train: {format: npy, inputs: {input: x.npy}, labels: y.npy}, holdout: 0.25}
train: {loss: softmax_cross_entropy, optimizer: {sgd: {lr: 0.1}}, batch: 8, epochs: 1}
END_JOB

# option "VERB OPTION" PATTERN: how the unknown option is answered, up to the list of those there are
option() { # shellcheck disable=SC2086
    fails 2 "unknown option ${1#* }$2" "$PENSTOCK" ${1%% *} "${1#* }" 3
}
option 'train --nproc-per-node' ': in a job, devices says where it runs, .*; --set PATH=VALUE changes a key; possible: '
option 'train --nproc_per_node' ': in a job, devices says'
option 'train --gpus' ': in a job, devices says'
option 'train --num-gpus' ': in a job, devices says'
option 'train --accelerator' ': in a job, devices says'
option 'train --nnodes' ': `penstock train` is started once; each of devices may have a host, .*worker'
option 'train --master-addr' ': `penstock train` is started once'
option 'train --rdzv_endpoint' ': `penstock train` is started once'
option 'train --local-rank' ': `penstock train` is started once'
option 'train --workers' ': `penstock train` is started once'
option 'train --deepspeed_config' ': `penstock train` is started once'
option 'train --name' ': in a job, outputs.dir is '
option 'train --epochs' ', which is a key of the job: --set train.epochs=VALUE; '
option 'train --train.batch' ', which is a key of the job: --set train.batch=VALUE; '
option 'train --warmup' ', which is a key of the job: --set train.warmup=VALUE; '
option 'train --num_train_epochs' ': in a job, train.epochs says'
option 'train --lr' ": in a job, the rate is the optimizer's: "
option 'train --learning-rate' ": in a job, the rate is the optimizer's: .*, and train.learning_rate says"
option 'train --optimizer.lr' ": in a job, the rate is the optimizer's: "
option 'train --batch-size' ': in a job, train.batch says'
option 'train --training.local_batch_size' ': in a job, train.batch says .*, and train.microbatches'
option 'train --training.steps' ', possible: --steps, .*; did you mean --steps\?'
option 'train --max-steps' ': --steps N is the limit; possible: '
option 'train --parallelism.pipeline_parallel_degree' ': in a job, placement.stages says'
option 'train --job.config_file' ': the job is the argument'
option 'train --fp16' ': in a job, it is numerics: \{precision: float16\}'
option 'train --weight-decay' ": in a job, it is the optimizer's"
option 'train --output-dir' ': --save FILE writes the parameters, outputs.dir'
option 'train --resume-from-checkpoint' ': --continue goes on'
option 'train --save-steps' ': --every N says'
option 'train --dry-run' ': `penstock plan JOB` says'
option 'train --compile' ', possible: --steps, --parameters, .* --help$' # near to none
option 'worker --port' ': --listen HOST:PORT says'
option 'worker --gpus' ': devices of the job say'
option 'worker --cert' ': --tls CA,CERT,KEY are'
option 'serve --port' ': --http HOST:PORT and --grpc HOST:PORT say'
option 'sweep --workers' ': --parallel N, or -j N, is'
option 'eval --batch-size' ': --batch N is'
option 'export --format' ': the ending of --output says it'
option 'certs --host' ', possible: --hosts, .*; did you mean --hosts\?'

# key PATH PATTERN: how a key of other programs is answered, set from the command line
key() {
    fails 2 "unknown key \"${1##*.}\"$2" "$PENSTOCK" plan good.yaml --set "$1=3"
}
key batch_size ': train.batch says'
key train.per_device_train_batch_size ': train.batch says .*, and train.microbatches'
key train.num_epochs ': train.epochs says'
key train.lr ": the rate is the optimizer's"
key train.criterion ': it is train.loss; '
key train.gradient_clip_val ': train.clip_norm, or train.clip_value,'
key train.zero_optimization ': a device keeps only '
key train.max_iters ': train.steps is the limit'
key train.optimizer.sgd.learning_rate ': it is lr; '
key train.optimizer.sgd.wd ': it is weight_decay; '
key train.learning_rate.name ': the name is itself the key'
key data.val ': data.eval is what is evaluated on'
key data.train.targets ': it is labels'
key nodes ': `penstock train` is started once'
key workers ': `penstock train` is started once'
key hosts ': `penstock train` is started once' # not "did you mean costs?"
key gpus ': devices says where it runs'
key test ': data.eval is what is evaluated on' # not "did you mean tls?"
key output ': outputs.dir is the folder'
key resume_from ': `penstock train --continue` goes on'
fails 2 'unknown key "type": the name is itself the key' "$PENSTOCK" plan good.yaml --set 'train.optimizer={type: AdamW}'
fails 2 'unknown key "betas": it is beta1 and beta2; ' "$PENSTOCK" plan good.yaml --set 'train.optimizer={adamw: {betas: 1}}'
fails 2 'unknown key "interval": it is every, ' "$PENSTOCK" plan good.yaml --set 'checkpoint={interval: 3}'
fails 2 'unknown key "monitor": it is metric; ' "$PENSTOCK" plan good.yaml --set 'evaluation={monitor: 3}'
fails 2 'unknown key "r": it is rank; ' "$PENSTOCK" plan good.yaml --set 'adapt={lora: {r: 3}}'
fails 2 'found "mnist", .*; did you mean idx\?' "$PENSTOCK" plan good.yaml --set data.train.format=mnist

# what is named is there: paths of keys, and options of verbs
penstock schema >schema.json
/usr/bin/python3 - "$top" <<'END_PYTHON'
import json, re, subprocess, sys, os
top, schema = sys.argv[1], json.load(open("schema.json"))

def keys(node):
    if isinstance(node, dict):
        if "$ref" in node:
            yield from keys(schema["$defs"][node["$ref"].split("/")[-1]])
        yield from node.get("properties", {})
        for name, inner in node.items():
            if name not in ("properties", "$ref"):
                yield from keys(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from keys(inner)

def strings(path):
    return re.sub(r'"\s*"', "", open(f"{top}/{path}").read().replace("\\\n", "\n"))

said = strings("scheduler/job/job_words.c") + strings("cli/option_words.c")
paths = {p for p in re.findall(r"\b([a-z]+\.[a-z_]+)\b", said) if p.split(".")[0] in schema["properties"]}
assert len(paths) > 25, paths
missing = [p for p in paths if p.split(".")[1] not in keys(schema["properties"][p.split(".")[0]])]
assert not missing, missing
tables = re.findall(r"pen_cli_(\w+)_words\[\] = \{(.*?)\n\};", strings("cli/option_words.c"), re.S)
assert len(tables) == 6
macros = dict(re.findall(r"#define (SAID_\w+)\s+(\"[^\n]*\")", strings("cli/option_words.c")))
for verb, table in tables:
    table = re.sub(r"SAID_\w+", lambda m: macros[m[0]], table)
    help_text = subprocess.run([os.environ.get("PENSTOCK", f"{top}/build/gcc/penstock"),
                                {"trained": "eval"}.get(verb, verb), "--help"],
                               capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"--[a-z]+", table))
    assert options, verb
    assert not [o for o in options if f" {o}" not in help_text], (verb, options)
END_PYTHON
