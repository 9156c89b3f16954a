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
option 'worker --cacert' ': --tls CA,CERT,KEY are'
option 'worker --key-file' ': --tls CA,CERT,KEY are'
option 'train --threads' ': in a job, each of devices may have threads; data.threads says how many decode pictures; '
option 'certs --host' ', possible: --hosts, .*; did you mean --hosts\?'

# a whole path of the job is answered with that path, also where its last key is an option or a word
path() { # VERB OPTION PATH
    option "$1 $2" ", which is a key of the job: --set $3=VALUE; possible: [^?]*$"
}
path train --data.train.file data.train.file
path eval --data.eval.file data.eval.file
path train --evaluation.every evaluation.every
path train --evaluation-every evaluation.every
path train --evaluation.metric evaluation.metric
path train --serve.name serve.name
path train --outputs.dir outputs.dir
path train --checkpoint.dir checkpoint.dir
path plan --pipeline.time_limit pipeline.time_limit
path train --train.optimizer.sgd.weight-decay train.optimizer.sgd.weight_decay

option 'train --evaluation.batch' ', and evaluation of the job has no key batch; possible: [^?]*$' # not train.batch
option 'train --data.train.step' ', and data.train of the job has no key step; possible: [^?]*$'   # not --steps

# far from all, and no word that only begins or ends like one
nothing() { # VERB OPTION
    option "$1" ', possible: [^;]*$'
}
fails 2 "unknown option --q{98}, possible: [^;]*$" "$PENSTOCK" train "--$(printf 'q%.0s' {1..300})"
nothing 'worker --cache'
nothing 'worker --capacity'
nothing 'worker --keyboard'
nothing 'train --distill'
nothing 'train --emacs'
nothing 'train --testimony'
nothing 'train --valve'

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
key data.train.port ': it is part of connection, of format sql: '
key train.distance ', possible: '
key train.tpu ', possible: '
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

def inner(node, name):
    """What is behind a key of a mapping: each description that the schema has of it."""
    if isinstance(node, list):
        return [found for one in node for found in inner(one, name)]
    if not isinstance(node, dict):
        return []
    found = []
    if "$ref" in node:
        found += inner(schema["$defs"][node["$ref"].split("/")[-1]], name)
    if name in node.get("properties", {}):
        found.append(node["properties"][name])
    for way in ("oneOf", "anyOf", "allOf", "if", "then", "else"):
        found += inner(node.get(way, []), name)
    return found

def is_path(path):
    at = [schema]
    for name in path.split("."):
        at = inner(at, name)
    return bool(at)

assert is_path("train.average.decay") and not is_path("train.decay") and is_path("data.train.weights")

def strings(path):
    return re.sub(r'"\s*"', "", open(f"{top}/{path}").read().replace("\\\n", "\n"))

def keys_of_flow(before, text):
    """The paths of `a.b: {c: {d: 1}, e: 2}`."""
    at, path, name = [], [before], None
    for token in re.findall(r"[{}]|[a-z_0-9]+(?=:)", text):
        if token == "{":
            path += [name] if name else []
            at.append(len(path))
        elif token == "}":
            at.pop()
            path = path[:at[-1]] if at else path[:1]
            if not at:
                break
        else:
            name = token
            yield ".".join(path + [name])

job_said, option_said = strings("scheduler/job/job_words.c"), strings("cli/option_words.c")
said = job_said + option_said
paths = {p for p in re.findall(r"\b([a-z]+(?:\.[a-z_]+)+)\b", said) if p.split(".")[0] in schema["properties"]}
for m in re.finditer(r"\b([a-z]+(?:\.[a-z_]+)*): (?=\{)", said):
    if m[1].split(".")[0] in schema["properties"]:
        paths.update(keys_of_flow(m[1], said[m.end():said.index('"', m.end())]))
assert len(paths) > 30 and "train.optimizer.adamw.weight_decay" in paths, paths
missing = [p for p in paths if not is_path(p)]
assert not missing, missing

helps = {}
def options_of(verb):
    """The options that a verb's own help lists."""
    if verb not in helps:
        shown = subprocess.run([os.environ.get("PENSTOCK", f"{top}/build/gcc/penstock"), verb, "--help"],
                               capture_output=True, text=True, check=True).stdout
        helps[verb] = set(re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", shown, re.M)) | {"--set"}
    return helps[verb]

def check_options(text, verbs):
    """Each option is one of the verb that the sentence named last, as in `penstock train --log FILE`; else of `verbs`."""
    count = 0
    for token in re.findall(r"`penstock ([a-z]+)|(?<![\w-])(--[a-z][a-z0-9-]*)", text):
        if token[0]:
            verbs = [token[0]]
            options_of(token[0])
        else:
            for verb in verbs:
                assert token[1] in options_of(verb), (text, verb, token[1])
            count += 1
    return count

def sentences(code):
    return re.findall(r'"((?:[^"\\]|\\.)*)"', code)

assert sum(check_options(text, ["train"]) for text in sentences(job_said)) > 5
macros = dict(re.findall(r"#define (SAID_\w+)\s+(\"[^\n]*\")", option_said))
tables = re.findall(r"pen_cli_(?:(\w+)_)?words\[\] = \{(.*?)\n\};", option_said, re.S)
assert len(tables) == 7
of_tables = {"": ["train", "plan", "worker", "serve"], "trained": ["eval", "predict"]}
for verb, table in tables:
    table = re.sub(r"SAID_\w+", lambda m: macros[m[0]], table)
    table = table.replace("`penstock --version`", "")
    count = sum(check_options(text, of_tables.get(verb, [verb])) for text in sentences(table))
    assert count, verb
END_PYTHON
