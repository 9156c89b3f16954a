#include "scheduler/job/job.h"

#include "tests/support/check.h"

#include "base/memory.h"

// Every key of a job, once. Lines are numbered by the mistakes below.
static const char job_whole[] = "version: 1\n"                                               // 1
                                "model: {file: m.onnx}\n"                                    // 2
                                "data:\n"                                                    // 3
                                "  train: {format: idx, images: a.gz, labels: b.gz}\n"       // 4
                                "  eval:\n"                                                  // 5
                                "    format: npy\n"                                          // 6
                                "    inputs: {x: x.npy, y: /abs/y.npy}\n"                    // 7
                                "    labels: l.npy\n"                                        // 8
                                "    limit: 1000\n"                                          // 9
                                "    label_type: index\n"                                    // 10
                                "  normalize: {mean: [0.1, 2e-1], std: 0.5, scale: 0.004}\n" // 11
                                "  flatten: true\n"                                          // 12
                                "train:\n"                                                   // 13
                                "  loss: softmax_cross_entropy\n"                            // 14
                                "  optimizer: {sgd: {lr: 0.05, momentum: 0.9, nesterov: true, "
                                "weight_decay: 1e-4}}\n"                                       // 15
                                "  learning_rate: {step: {every: 2 epochs, factor: 0.5}}\n"    // 16
                                "  warmup: 100 steps\n"                                        // 17
                                "  clip_norm: 1.5\n"                                           // 18
                                "  batch: 128\n"                                               // 19
                                "  microbatches: 8\n"                                          // 20
                                "  epochs: 3\n"                                                // 21
                                "  steps: 500\n"                                               // 22
                                "  seed: 7\n"                                                  // 23
                                "  freeze: \"^conv[0-9]+\"\n"                                  // 24
                                "  shuffle: false\n"                                           // 25
                                "  drop_last: true\n"                                          // 26
                                "devices:\n"                                                   // 27
                                "  - {name: a, kind: reference, memory: 1.5GiB, threads: 2}\n" // 28
                                "  - name: b\n"                                                // 29
                                "outputs: {dir: run, export: out.onnx}\n";                     // 30

static pen_status parse(pen_arena *arena, const char *text, const pen_job **out_job) {
    return pen_job_parse("jobs/job.yaml", text, strlen(text), arena, out_job);
}

static void every_key_is_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job;
    CHECK_OK(parse(arena, job_whole, &job));
    assert_string_equal(job->file, "jobs/job.yaml");
    assert_string_equal(job->model.file, "jobs/m.onnx");
    assert_true(job->data.has_train && job->data.has_eval);
    assert_int_equal(job->data.train.format, PEN_JOB_IDX);
    assert_string_equal(job->data.train.idx.images, "jobs/a.gz");
    assert_string_equal(job->data.train.idx.labels, "jobs/b.gz");
    assert_int_equal(job->data.eval.format, PEN_JOB_NPY);
    const pen_job_array *arrays = job->data.eval.npy.inputs.items;
    assert_int_equal(job->data.eval.npy.inputs.count, 2);
    assert_string_equal(arrays[0].name, "x");
    assert_string_equal(((const char *const *)arrays[0].files.items)[0], "jobs/x.npy");
    assert_string_equal(((const char *const *)arrays[1].files.items)[0], "/abs/y.npy");
    assert_int_equal(job->data.eval.limit, 1000);
    assert_int_equal(job->data.eval.label_type, PEN_JOB_LABEL_INDEX);
    assert_int_equal(job->data.normalize.mean.count, 2);
    assert_true(((const double *)job->data.normalize.mean.items)[1] == 0.2);
    assert_true(((const double *)job->data.normalize.std.items)[0] == 0.5);
    assert_true(job->data.normalize.scale == 0.004 && job->data.flatten);
    const pen_job_train *train = &job->train;
    assert_int_equal(train->optimizer.kind, PEN_OPTIMIZER_SGD);
    assert_true(train->optimizer.lr == 0.05 && train->optimizer.momentum == 0.9);
    assert_true(train->optimizer.nesterov && train->optimizer.weight_decay == 1e-4);
    assert_int_equal(train->learning_rate.kind, PEN_LEARNING_RATE_STEP);
    assert_int_equal(train->learning_rate.step.every.unit, PEN_INTERVAL_EPOCHS);
    assert_int_equal(train->warmup.count, 100);
    assert_true(train->clip_norm == 1.5 && train->drop_last && !train->shuffle);
    assert_int_equal(train->batch, 128);
    assert_int_equal(train->microbatches, 8);
    assert_int_equal(train->epochs, 3);
    assert_int_equal(train->steps, 500);
    assert_int_equal(train->seed, 7);
    assert_string_equal(train->freeze, "^conv[0-9]+");
    assert_int_equal(job->cluster.device_count, 2);
    assert_int_equal(job->cluster.devices[0].kind, PEN_CLUSTER_REFERENCE);
    assert_true(job->cluster.devices[0].memory_bytes == 3ull << 29);
    assert_int_equal(job->cluster.devices[0].threads, 2);
    assert_string_equal(job->cluster.devices[1].name, "b");
    assert_string_equal(job->outputs.export, "jobs/out.onnx");
    pen_arena_destroy(arena);
}

static void constraints_are_read(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job;
    CHECK_OK(parse(arena,
                   "version: 1\nmodel: {file: m.onnx}\ndata: {train: {format: idx, images: a}}\n"
                   "train: {loss: output, optimizer: adam, batch: 4}\n"
                   "cluster:\n"
                   "  devices: [{name: a}, {name: \"n[1-2]\", host: \"n[1-2]\", memory: 1GiB}]\n"
                   "  links: [{between: [a, n1], bandwidth: 1GB/s}]\n"
                   "placement:\n"
                   "  {strategy: greedy, objective: traffic, time_limit: 2s, seed: 9,\n"
                   "   contiguous: true, pin: [{nodes: \"^/layer4/\", to: n1}],\n"
                   "   colocate: [{nodes: [\"^/fc/\", x]}, {nodes: y}], no_split: [{nodes: z}],\n"
                   "   forbid: [{nodes: u, on: \"^n\"}], stages: {minimum: 2, maximum: 3}}\n"
                   "pipeline: {schedule: 1f1b}\ncosts: costs.yaml\n",
                   &job));
    assert_int_equal(job->cluster.device_count, 3);
    assert_string_equal(job->cluster.devices[2].host, "n2");
    assert_int_equal(job->cluster.written_links.count, 1);
    const pen_placement_spec *placement = &job->placement;
    const pen_constraints *constraints = &placement->constraints;
    assert_string_equal(placement->strategy, "greedy");
    assert_int_equal(placement->objective, PEN_OBJECTIVE_TRAFFIC);
    assert_true(placement->time_limit_seconds == 2 && placement->contiguous);
    assert_int_equal(placement->seed, 9);
    const pen_constraint_pin *pin = constraints->pins.items;
    assert_string_equal(pin->nodes, "^/layer4/");
    assert_string_equal(pin->to, "n1");
    const pen_constraint_colocate *colocate = constraints->colocated.items;
    assert_int_equal(constraints->colocated.count, 2);
    assert_int_equal(colocate[0].nodes.count, 2);
    assert_string_equal(((const char *const *)colocate[0].nodes.items)[1], "x");
    assert_string_equal(((const char *const *)colocate[1].nodes.items)[0], "y");
    assert_string_equal(((const pen_constraint_no_split *)constraints->no_splits.items)->nodes,
                        "z");
    assert_string_equal(((const pen_constraint_forbid *)constraints->forbidden.items)->on, "^n");
    assert_int_equal(constraints->stages.minimum, 2);
    assert_int_equal(constraints->stages.maximum, 3);
    assert_string_equal(pen_job_schedule_name(job->pipeline.schedule), "1f1b");
    assert_string_equal(job->costs, "jobs/costs.yaml");
    CHECK_ERROR(pen_constraints_blame(constraints, &pin->nodes, pen_error(PEN_NOT_FOUND, "x")),
                PEN_NOT_FOUND, "jobs/job.yaml:10:36: error: x");
    pen_arena_destroy(arena);
}

#define JOB_SMALL                                                                                  \
    "version: 1\nmodel: {file: m.onnx}\ndata: {train: {format: idx, images: a}}\n"                 \
    "train: {loss: output, optimizer: "

static void defaults_are_set(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job;
    CHECK_OK(parse(arena, JOB_SMALL "adam, batch: 4}\n", &job));
    assert_int_equal(job->train.optimizer.kind, PEN_OPTIMIZER_ADAM);
    assert_true(job->train.optimizer.lr == 0.001 && job->train.optimizer.beta2 == 0.999);
    assert_int_equal(job->train.learning_rate.kind, PEN_LEARNING_RATE_CONSTANT);
    assert_int_equal(job->train.epochs, 1);
    assert_int_equal(job->train.microbatches, 1);
    assert_int_equal(job->train.lanes, 1);
    assert_true(job->train.shuffle && !job->train.drop_last);
    assert_int_equal(job->cluster.device_count, 1);
    assert_int_equal(job->cluster.devices[0].kind, PEN_CLUSTER_CPU);
    assert_null(job->train.freeze);
    assert_string_equal(job->cluster.devices[0].name, "cpu");
    assert_string_equal(job->placement.strategy, "auto");
    assert_int_equal(job->placement.objective, PEN_OBJECTIVE_STEP_TIME);
    assert_true(job->placement.time_limit_seconds == 5 && !job->placement.contiguous);
    assert_int_equal(job->pipeline.schedule, PEN_JOB_SCHEDULE_AUTO);
    assert_null(job->costs);
    CHECK_OK(parse(arena, JOB_SMALL "{adamw: {lr: 1}}, batch: 4, steps: 9}\n", &job));
    assert_true(job->train.optimizer.weight_decay == 0.01);
    assert_int_equal(job->train.epochs, 0);
    assert_int_equal(pen_job_get_step_count(job, 4), 9);
    CHECK_OK(parse(arena, JOB_SMALL "adam, batch: 4}\npipeline: {transport: grpc}\n", &job));
    assert_true(job->cluster.uses_grpc_alone);
    assert_true(job->checkpoint.retry_seconds == 600);
    CHECK_OK(parse(arena, JOB_SMALL "adam, batch: 4}\ncheckpoint: {retry: 1 min}\n", &job));
    assert_true(job->checkpoint.dir == NULL && job->checkpoint.retry_seconds == 60);
    pen_arena_destroy(arena);
}

// `line` of job_whole is replaced by `text`; the error is at line:column and has the three parts.
typedef struct mistake {
    unsigned line;
    unsigned column;
    const char *text;
    const char *where;
    const char *found;
    const char *expected;
} mistake;

static const mistake job_mistakes[] = {
    {1, 10, "version: 2", "version: ", "found \"2\"", "an integer, 1"},
    {1, 10, "version: one", "version: ", "found \"one\"", "an integer"},
    {1, 1, "versoin: 1", "", "unknown key \"versoin\"",
     "possible: version, model, data, train, devices, links, cluster, placement, "
     "pipeline, numerics, tls, token_file, costs, evaluation, adapt, checkpoint, recovery, serve, "
     "outputs"},
    {1, 1, "lora: {rank: 4}", "",
     "unknown key \"lora\", which is a key of adapt; possible: version", ""},
    {1, 1, "early_stopping: 3", "", "unknown key \"early_stopping\": evaluation: {every: 1 epoch",
     "ends a training; possible: "},
    {2, 1, "modle: {file: x}", "", "unknown key \"modle\"", "possible: model, "},
    {2, 8, "model: {}", "model: ", "'file' is missing", "a path"},
    {2, 8, "model: [x]", "model: ", "found a list", "or the path of a file with it"},
    {2, 7, "model:", "model: ", "found nothing", "a mapping with file"},
    {2, 9, "model: {graphdef: x.pb}", "model: ", "unknown key \"graphdef\"", "possible: file"},
    {2, 15, "model: {file: [m]}", "model.file: ", "found a list", "a path"},
    {2, 15, "model: {file: \"\"}", "model.file: ", "found \"\"", "a path"},
    {2, 8, "model: other.yaml", "model: ", "found \"other.yaml\"", "no other file"},
    {4, 10, "  train: {images: a}", "data.train: ", "'format' is missing",
     "one of idx, npy, csv, images"},
    {4, 19, "  train: {format: mnist}", "data.train.format: ", "found \"mnist\"",
     "one of idx, npy, csv, images"},
    {4, 24, "  train: {format: idx, on_error: skip}",
     "data.train: ", "unknown key \"on_error\", which goes with format: images; ", ""},
    {4, 24, "  train: {format: idx, image: a}", "data.train: ", "unknown key \"image\"",
     "possible: images, format, limit, label_type, labels, weights, input"},
    {4, 10, "  train: {format: idx, labels: a}", "data.train: ", "'images' is missing", "a path"},
    {4, 32, "  train: {format: idx, images: {}}", "data.train.images: ", "found a mapping",
     "a path"},
    {4, 43, "  train: {format: idx, images: a, labels: []}", "data.train.labels: ", "found a list",
     "a path"},
    {4, 42, "  train: {format: idx, images: a, input: ~}", "data.train.input: ", "found nothing",
     "text"},
    {4, 10, "  train: {format: csv}", "data.train: ", "'file' is missing", "a path"},
    {4, 30, "  train: {format: csv, file: {}}", "data.train.file: ", "found a mapping", "a path"},
    {4, 47, "  train: {format: csv, file: f, label_column: []}",
     "data.train.label_column: ", "found a list", "text"},
    {4, 41, "  train: {format: csv, file: f, header: 3}", "data.train.header: ", "found \"3\"",
     "true or false"},
    {4, 44, "  train: {format: csv, file: f, delimiter: ab}", "delimiter: ", "found \"ab\"",
     "one ASCII character"},
    {4, 40, "  train: {format: csv, file: f, input: []}", "data.train.input: ", "found a list",
     "text"},
    {4, 35, "  train: {format: images, folder: []}", "data.train.folder: ", "found a list",
     "a path"},
    {4, 44, "  train: {format: images, folder: f, size: 0}", "data.train.size: ", "found \"0\"",
     "an integer from 1 to 16384"},
    {4, 44, "  train: {format: images, folder: f, size: [1, 2, 3]}",
     "data.train.size: ", "found 3 items", "at most 2"},
    {4, 48, "  train: {format: images, folder: f, size: [1, x]}",
     "data.train.size[1]: ", "found \"x\"", "an integer"},
    {4, 48, "  train: {format: images, folder: f, channels: 2}", "channels: ", "found 2",
     "1 (gray) or 3 (colour)"},
    {4, 48, "  train: {format: images, folder: f, channels: 4}",
     "data.train.channels: ", "found \"4\"", "an integer from 1 to 3"},
    {4, 45, "  train: {format: images, folder: f, input: []}", "data.train.input: ", "found a list",
     "text"},
    {4, 24, "  train: {format: idx, batch_size: 4}", "data.train: ", "\": train.batch says", ""},
    {11, 3, "  num_workers: 4", "data: ", "\": data.threads says", ""},
    {7, 13, "    inputs: x.npy", "data.eval.inputs: ", "found \"x.npy\"",
     "a mapping like {NAME: VALUE}, each value a path"},
    {7, 13, "    inputs: {}", "data.eval.inputs: ", "found 0 items", "at least 1"},
    {7, 17, "    inputs: {x: []}", "data.eval.inputs.x: ", "found 0 items", "at least 1"},
    {8, 13, "    labels: {}", "data.eval.labels: ", "found 0 items", "at least 1"},
    {8, 13, "    labels: []", "data.eval.labels: ", "found a list",
     "a path, or a mapping like {NAME: VALUE}, each value a path"},
    {9, 12, "    limit: 0", "data.eval.limit: ", "found \"0\"", "an integer of at least 1"},
    {10, 17, "    label_type: float", "data.eval.label_type: ", "found \"float\"",
     "one of auto, index, number"},
    {11, 21, "  normalize: {mean: x}", "data.normalize.mean: ", "found \"x\"", "a number"},
    {11, 25, "  normalize: {mean: [1, x]}", "data.normalize.mean[1]: ", "found \"x\"", "a number"},
    {11, 20, "  normalize: {std: 0}", "data.normalize.std: ", "found \"0\"", "a number above 0"},
    {11, 22, "  normalize: {scale: inf}", "data.normalize.scale: ", "found \"inf\"",
     "a number above 0"},
    {11, 14, "  normalize: 3", "data.normalize: ", "found \"3\"",
     "a mapping with mean, std, scale"},
    {12, 12, "  flatten: yes", "data.flatten: ", "found \"yes\"", "true or false"},
    {12, 12, "  flatten: \"true\"", "data.flatten: ", "found \"true\" in quotes", "true or false"},
    {12, 12, "  holdout: 1", "data.holdout: ", "found \"1\"", "a number of at least 0 and below 1"},
    {12, 12, "  holdout: 0.5", "data.holdout: ", "found together with data.eval", "one of the two"},
    {14, 3, "  class_axis: 1", "train: ", "'loss' is missing", "'losses', a list"},
    {14, 11, "  loss: l1\n  losses:      [{kind: l1}]",
     "train.losses: ", "found together with loss", "in the list"},
    {14, 11, "  losses: []", "train.losses: ", "found 0 items", "at least 1"},
    {14, 12, "  losses: [{output: x}]", "train.losses[0]: ", "'kind' is missing", "one of"},
    {14, 54, "  losses: [{kind: softmax_cross_entropy, class_axis: 0}]", "class_axis: ", "found 0",
     "the first counts the examples"},
    {14, 35, "  losses: [{kind: l1, class_axis: 1}]", "class_axis: ", "found",
     "softmax_cross_entropy or negative_log_likelihood"},
    {14, 29, "  losses: [{kind: l1, beta: 1}]", "beta: ", "found", "smooth_l1; huber has delta"},
    {14, 40, "  losses: [{kind: l1, label_smoothing: 0.1}]", "label_smoothing: ", "found",
     "only with softmax_cross_entropy"},
    {14, 9, "  loss: softmax", "train.loss: ", "found \"softmax\"",
     "one of softmax_cross_entropy, negative_log_likelihood"},
    {15, 3, "  patience: 3",
     "train: ", "unknown key \"patience\", which is a key of evaluation; possible: ", ""},
    {15, 3, "  ema: 0.99", "train: ", "unknown key \"ema\": ", "train.average: {decay: 0.999}; "},
    {15, 3, "  step: 1", "train: ", "possible: steps, ",
     "; did you mean steps? (\"step\" is a key of train.learning_rate)"},
    {15, 3, "  outputs: {}", "train: ", "which is a key of the top of the file", ""},
    {15, 14, "  optimizer: rprop", "train.optimizer: ", "unknown key \"rprop\"",
     "possible: rmsprop, sgd, adam, adamw"},
    {15, 15, "  optimizer: {adm: {}}", "train.optimizer: ", "unknown key \"adm\"",
     "possible: adam, sgd, adamw, rmsprop"},
    {15, 25, "  optimizer: {adam: {}, sgd: {lr: 1}}",
     "train.optimizer: ", "found both adam and sgd", "one"},
    {15, 14, "  optimizer: sgd", "train.optimizer.sgd: ", "'lr' is missing", "a number above 0"},
    {15, 14, "  optimizer: {}", "train.optimizer: ", "found a mapping",
     "a mapping with one of sgd, adam, adamw, rmsprop"},
    {15, 25, "  optimizer: {sgd: {lr: -1}}", "train.optimizer.sgd.lr: ", "found \"-1\"",
     "a number above 0"},
    {15, 38, "  optimizer: {sgd: {lr: 1, momentum: 1}}",
     "train.optimizer.sgd.momentum: ", "found \"1\"", "a number of at least 0 and below 1"},
    {15, 38, "  optimizer: {sgd: {lr: 1, nesterov: 1}}",
     "train.optimizer.sgd.nesterov: ", "found \"1\"", "true or false"},
    {15, 38, "  optimizer: {sgd: {lr: 1, nesterov: true}}",
     "nesterov: ", "found true with momentum 0", "a momentum above 0"},
    {15, 42, "  optimizer: {sgd: {lr: 1, weight_decay: -1}}",
     "train.optimizer.sgd.weight_decay: ", "found \"-1\"", "a number of at least 0"},
    {15, 26, "  optimizer: {adam: {lr: \"1\"}}",
     "train.optimizer.adam.lr: ", "found \"1\" in quotes", "a number above 0"},
    {15, 29, "  optimizer: {adam: {beta1: 1}}", "train.optimizer.adam.beta1: ", "found \"1\"",
     "below 1"},
    {15, 29, "  optimizer: {adam: {beta2: x}}", "train.optimizer.adam.beta2: ", "found \"x\"",
     "below 1"},
    {15, 31, "  optimizer: {adam: {epsilon: 0}}", "train.optimizer.adam.epsilon: ", "found \"0\"",
     "a number of at least 1.17549435082229e-38"},
    {15, 34, "  optimizer: {rmsprop: {epsilon: 1e-60}}",
     "train.optimizer.rmsprop.epsilon: ", "found \"1e-60\"", "of at least 1.17549435082229e-38"},
    {15, 37, "  optimizer: {adamw: {weight_decay: 1e}}",
     "train.optimizer.adamw.weight_decay: ", "found \"1e\"", "a number of at least 0"},
    {15, 0, "  optimizer: lamb\n  shard:       [{nodes: a, ways: 2}]",
     "train.shard: ", "found together with optimizer lamb", "another optimizer"},
    {16, 18, "  learning_rate: cosin", "train.learning_rate: ", "unknown key \"cosin\"",
     "possible: cosine, constant, step, linear, polynomial, one_cycle, chained"},
    {16, 18, "  learning_rate: step", "train.learning_rate.step: ", "'every' is missing",
     "\"100 steps\" or \"3 epochs\""},
    {16, 33, "  learning_rate: {step: {every: 3}}",
     "train.learning_rate.step.every: ", "found \"3\"", "\"100 steps\" or \"3 epochs\""},
    {16, 34, "  learning_rate: {step: {factor: 0, every: 1 step}}",
     "train.learning_rate.step.factor: ", "found \"0\"", "a number above 0"},
    {16, 35, "  learning_rate: {cosine: {final: -1}}",
     "train.learning_rate.cosine.final: ", "found \"-1\"", "a number of at least 0"},
    {16, 28, "  learning_rate: {linear: {until: 1}}",
     "train.learning_rate.linear: ", "unknown key \"until\"", "possible: final"},
    {16, 30, "  learning_rate: {constant: {lr: 1}}",
     "train.learning_rate.constant: ", "unknown key \"lr\"", "possible: "},
    {16, 39, "  learning_rate: {polynomial: {power: 0}}",
     "train.learning_rate.polynomial.power: ", "found \"0\"", "a number above 0"},
    {16, 42, "  learning_rate: {one_cycle: {pct_start: 0.6, three_phase: true}}",
     "pct_start: ", "found 0.6 with three_phase", "at most 0.5"},
    {16, 18, "  learning_rate: chained", "train.learning_rate.chained: ", "found", "a list"},
    {16, 41, "  learning_rate: {chained: [{schedule: {chained: []}}]}",
     "train.learning_rate.chained[0].schedule: ", "unknown key \"chained\"", "polynomial"},
    {16, 29, "  learning_rate: {chained: [{schedule: cosine}, {schedule: constant}]}",
     "train.learning_rate.chained[0]: ", "'length' is missing", "each schedule but the last"},
    {17, 11, "  warmup: 5s", "train.warmup: ", "found \"5s\"", "\"100 steps\" or \"3 epochs\""},
    {18, 14, "  clip_norm: 0", "train.clip_norm: ", "found \"0\"", "a number of at least 1e-30"},
    {18, 0, "  clip_norm: 1.5\n  clip_value:  2",
     "train.clip_value: ", "found together with clip_norm", "one of the two"},
    {19, 10, "  batch: 0", "train.batch: ", "found \"0\"", "an integer from 1 to 1"},
    {19, 10, "  batch: 12.5", "train.batch: ", "found \"12.5\"", "an integer"},
    {19, 10, "  batch: 99999999999999999999", "train.batch: ", "found \"99999999999999999999\"",
     "an integer from 1 to 1073741824"},
    {20, 17, "  microbatches: 3", "train.microbatches: ", "found 3", "a divisor of the batch, 128"},
    {20, 10, "  lanes: 2", "train.lanes: ", "found 2", "at most as many as train.microbatches, 1"},
    {20, 10, "  lanes: 0", "train.lanes: ", "found \"0\"", "an integer"},
    {20, 17, "  microbatches: -8", "train.microbatches: ", "found \"-8\"", "an integer"},
    {21, 11, "  epochs: 0", "train.epochs: ", "found \"0\"", "an integer from 1 to 1"},
    {22, 10, "  steps: 1k", "train.steps: ", "found \"1k\"", "an integer of at least 1"},
    {23, 9, "  seed: -1", "train.seed: ", "found \"-1\"", "an integer of at least 0"},
    {24, 11, "  freeze: \"a(\"", "train.freeze: ", "found \"a(\"",
     "a regular expression (POSIX extended)"},
    {24, 11, "  freeze: \"(a{100}){100}\"", "train.freeze: ", "(a{100}){100}",
     "without repetitions it has more than 2000 signs"},
    {25, 12, "  shuffle: on", "train.shuffle: ", "found \"on\"", "true or false"},
    {26, 14, "  drop_last: 0", "train.drop_last: ", "found \"0\"", "true or false"},
    {28, 5, "  - {kind: cpu}", "devices[0]: ", "'name' is missing", "text"},
    {29, 11, "  - name: a", "devices[1].name: ", "found \"a\"", "another name"},
    {28, 12, "  - {name: []}", "devices[0].name: ", "found a list", "text"},
    {28, 21, "  - {name: a, kind: gpu}", "devices[0].kind: ", "found \"gpu\"",
     "one of cpu, reference, cuda"},
    {28, 23, "  - {name: a, memory: 12}", "devices[0].memory: ", "found \"12\"",
     "a size like 12GiB (units: B, kB,"},
    {28, 23, "  - {name: a, memory: 0GiB}", "devices[0].memory: ", "found \"0GiB\"", "at least 1"},
    {28, 24, "  - {name: a, threads: 0}", "devices[0].threads: ", "found \"0\"",
     "an integer from 1 to 1"},
    {28, 15, "  - {name: a, hots: localhost}", "devices[0]: ", "unknown key \"hots\"",
     "possible: host, name, per, kind, memory, reserve, threads, gpu, model, flops, "
     "memory_bandwidth"},
    {28, 5, "  - 3", "devices[0]: ", "found \"3\"",
     "a mapping with name, per, kind, host, memory, reserve, threads, gpu, model, flops, "
     "memory_bandwidth"},
    {28, 24, "  - {name: a, reserve: 1}", "devices[0].reserve: ", "found \"1\"",
     "a size like 12GiB"},
    {28, 21, "  - {name: a, host: \"n:x\"}", "devices[0].host: ", "found \"n:x\"",
     "NAME or NAME:PORT"},
    {28, 12, "  - {name: \"a[2-1]\"}", "devices[0].name: ", "found \"a[2-1]\"",
     "a range that begins with its smaller number"},
    {30, 23, "numerics: {libraries: required}", "numerics.libraries: ", "found required", "cuda"},
    {30, 10, "cluster: {}", "cluster: ", "'devices' is missing", "a list of at least 1"},
    {30, 10, "cluster: c.yaml", "cluster: ", "found \"c.yaml\"", "no other file"},
    {30, 9, "links: [{between: [a, b]}]", "links[0]: ", "'bandwidth' is missing",
     "a bandwidth like 10Gbit/s"},
    {30, 9, "links: [{bandwidth: 1GB/s}]", "links: ", "'between' is missing",
     "between: [A, B], or from: A and to: B"},
    {30, 12, "placement: []", "placement: ", "found a list", "a mapping with strategy, objective"},
    {30, 23, "placement: {strategy: gredy}", "placement.strategy: ", "unknown strategy 'gredy'",
     "possible: greedy, "},
    {30, 24, "placement: {objective: speed}", "placement.objective: ", "found \"speed\"",
     "one of throughput, latency, step_time, traffic"},
    {30, 25, "placement: {time_limit: 5}", "placement.time_limit: ", "found \"5\"",
     "a duration like 5s"},
    {30, 25, "placement: {time_limit: 0s}", "placement.time_limit: ", "found \"0s\"", "above 0"},
    {30, 19, "placement: {seed: -1}", "placement.seed: ", "found \"-1\"",
     "an integer of at least 0"},
    {30, 25, "placement: {contiguous: 1}", "placement.contiguous: ", "found \"1\"",
     "true or false"},
    {30, 18, "placement: {pin: {nodes: a}}", "placement.pin: ", "found a mapping", "a list"},
    {30, 19, "placement: {pin: [{nodes: a}]}", "placement.pin[0]: ", "'to' is missing", "text"},
    {30, 27, "placement: {pin: [{nodes: \"(\", to: b}]}", "placement.pin[0].nodes: ", "found \"(\"",
     "a regular expression"},
    {30, 32, "placement: {colocate: [{nodes: []}]}",
     "placement.colocate[0].nodes: ", "found 0 items", "at least 1"},
    {30, 33, "placement: {colocate: [{nodes: [\"a[\"]}]}",
     "placement.colocate[0].nodes[0]: ", "found \"a[\"", "a regular expression"},
    {30, 25, "placement: {no_split: [{node: x}]}",
     "placement.no_split[0]: ", "unknown key \"node\"", "possible: nodes"},
    {30, 22, "placement: {forbid: [{nodes: x}]}", "placement.forbid[0]: ", "'on' is missing",
     "text"},
    {30, 31, "placement: {stages: {minimum: 0}}", "placement.stages.minimum: ", "found \"0\"",
     "an integer from 1 to 4096"},
    {30, 43, "placement: {stages: {minimum: 3, maximum: 2}}",
     "placement.stages.maximum: ", "found 2", "at least the minimum, 3"},
    {30, 22, "pipeline: {schedule: 2f2b}", "pipeline.schedule: ", "found \"2f2b\"",
     "one of auto, gpipe, 1f1b"},
    {30, 8, "costs: []", "costs: ", "found a list", "a path"},
    {30, 21, "recovery: {on_loss: never}", "recovery.on_loss: ", "found \"never\"",
     "wait, spare, replan"},
    {30, 21, "recovery: {on_loss: spare}", "", "on_loss: found spare", "no `spares`"},
    {30, 21, "recovery: {spares: [n1]}", "", "'n1'", ""},
    {30, 28, "recovery: {spares: [\"a:1\", \"a:1\"]}", "", "found 'a:1' twice", ""},
    {30, 19, "recovery: {grace: soon}", "recovery.grace: ", "found \"soon\"", "a duration"},
    {30, 28, "checkpoint: {dir: x, keep: 1}", "checkpoint.keep: ", "found \"1\"", "2 to"},
    {30, 21, "checkpoint: {every: 2 steps}", "every: ", "found, but no `dir`", "the folder"},
    {30, 34, "checkpoint: {retry: 1 min, keep: 3}", "keep: ", "found, but no `dir`", "the folder"},
    {30, 14, "checkpoint: {save_best_only: 1}", "checkpoint: ", "\": evaluation.keep_best", ""},
    {30, 14, "evaluation: {early_stopping: 3}", "evaluation: ", "patience: 5} ends", ""},
    {30, 16, "outputs: {dir: []}", "outputs.dir: ", "found a list", "a path"},
    {30, 19, "outputs: {export: {}}", "outputs.export: ", "found a mapping", "a path"},
    {30, 11, "outputs: {expotr: x}", "outputs: ", "unknown key \"expotr\"",
     "possible: export, dir"},
};

// job_whole with one line replaced.
static const char *replace_line(pen_arena *arena, unsigned line, const char *text) {
    pen_text changed;
    const char *whole;
    pen_text_init(&changed, arena);
    unsigned number = 1;
    for (const char *at = job_whole; *at != '\0'; number++) {
        const char *end = strchr(at, '\n') + 1;
        if (number == line) {
            pen_text_print(&changed, "%s\n", text);
        } else {
            pen_text_append(&changed, at, (size_t)(end - at));
        }
        at = end;
    }
    CHECK_OK(pen_text_finish(&changed, &whole));
    return whole;
}

static void every_mistake_is_explained(void **state) {
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof job_mistakes / sizeof *job_mistakes; i++) {
        const mistake *given = &job_mistakes[i];
        pen_arena *arena = check_arena();
        const pen_job *job = NULL;
        const pen_status status = parse(arena, replace_line(arena, given->line, given->text), &job);
        char text[4096];
        char start[128];
        pen_status_format(status, text, sizeof text);
        // a line break in the replacement moves the mistake to the next line
        const bool moved = strchr(given->text, '\n') != NULL;
        snprintf(start, sizeof start, "jobs/job.yaml:%u:%u: error: %s", given->line + moved,
                 moved ? 16 : given->column, given->where);
        const bool right =
            pen_status_get_code(status) == PEN_INVALID_INPUT &&
            strncmp(text, start, strlen(start)) == 0 && strstr(text, given->found) != NULL &&
            strstr(text, given->expected) != NULL && pen_status_exit_code(status, 3) == 3;
        if (!right) {
            print_error("%s\n gave      %s expected  %s ... %s ... %s\n", given->text, text, start,
                        given->found, given->expected);
            wrong += 1;
        }
        pen_status_ignore(status, "compared");
        pen_arena_destroy(arena);
    }
    assert_int_equal(wrong, 0);
}

static void missing_parts_are_named(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job;
    CHECK_ERROR(parse(arena, "", &job), PEN_INVALID_INPUT,
                "job.yaml:1:1: error: the file is empty");
    CHECK_ERROR(parse(arena, "[]", &job), PEN_INVALID_INPUT,
                "found a list, expected a mapping with version, model, data, train");
    CHECK_ERROR(parse(arena, "version: 1\n", &job), PEN_INVALID_INPUT, "'model' is missing");
    CHECK_ERROR(parse(arena, "version: 1\nmodel: {file: m}\ndata: {}\n", &job), PEN_INVALID_INPUT,
                "job.yaml:3:7: error: data: found neither train nor eval");
    CHECK_ERROR(parse(arena, JOB_SMALL "adam}\n", &job), PEN_INVALID_INPUT, "'batch' is missing");
    CHECK_ERROR(parse(arena,
                      JOB_SMALL "adam, batch: 4, warmup: 1 epoch, learning_rate: one_cycle}\n",
                      &job),
                PEN_INVALID_INPUT, "train.warmup: found together with learning_rate one_cycle");
    static const char both[] =
        JOB_SMALL "adam, batch: 4}\ncluster: {devices: [{name: x}]}\nlinks: []\n";
    CHECK_ERROR(parse(arena, both, &job), PEN_INVALID_INPUT,
                "job.yaml:6:1: error: links: found together with cluster, expected one of the two");
    pen_arena_destroy(arena);
}

static void a_cut_file_is_an_error_or_a_job(void **state) {
    (void)state;
    const size_t length = strlen(job_whole);
    for (size_t cut = 0; cut < length; cut++) {
        pen_arena *arena = check_arena();
        // an exact copy, so that the sanitizer sees a read past the end
        char *copy = malloc(cut + 1);
        assert_non_null(copy);
        memcpy(copy, job_whole, cut);
        const pen_job *job = NULL;
        const pen_status status = pen_job_parse("cut.yaml", copy, cut, arena, &job);
        CHECK((status == PEN_OK) == (job != NULL), "cut at %zu", cut);
        if (status != PEN_OK) {
            char text[4096];
            pen_status_format(status, text, sizeof text);
            CHECK(pen_status_get_code(status) == PEN_INVALID_INPUT &&
                      strncmp(text, "cut.yaml:", 9) == 0,
                  "cut at %zu: %s", cut, text);
        }
        pen_status_ignore(status, "expected");
        free(copy);
        pen_arena_destroy(arena);
    }
}

static void every_failing_allocation_is_reported(void **state) {
    (void)state;
    // the arena takes memory in blocks: start each time with one that is nearly full
    unsigned failures = 0;
    for (size_t filler = 0; filler < 16000; filler += 97) {
        for (uint64_t call = 1; call <= 3; call++) {
            pen_arena *arena = check_arena();
            assert_non_null(pen_arena_allocate(arena, 1, filler + 1, 1));
            const pen_job *job = NULL;
            pen_memory_fail_at(call, 1);
            const pen_status status = parse(arena, job_whole, &job);
            pen_memory_fail_at(0, 0);
            CHECK((status == PEN_OK) == (job != NULL), "filler %zu", filler);
            if (status != PEN_OK) {
                assert_int_equal(pen_status_get_code(status), PEN_OUT_OF_MEMORY);
                failures += 1;
            }
            pen_status_ignore(status, "expected");
            pen_arena_destroy(arena);
        }
    }
    CHECK(failures > 100, "only %u allocations failed", failures);
}

static void conversions_reach_the_training(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    const pen_job *job;
    CHECK_OK(parse(arena, job_whole, &job));
    pen_dataset_options options;
    CHECK_OK(pen_job_get_dataset(job, PEN_DATASET_PART_TRAIN, arena, &options));
    assert_string_equal(options.format, "idx");
    assert_string_equal(options.path, "jobs/a.gz");
    assert_int_equal(options.mean_count, 2);
    CHECK_OK(pen_job_get_dataset(job, PEN_DATASET_PART_EVAL, arena, &options));
    assert_string_equal(options.format, "npy");
    assert_int_equal(options.part, PEN_DATASET_PART_TRAIN);
    assert_string_equal(options.inputs[1].path, "/abs/y.npy");
    assert_int_equal(options.example_limit, 1000);
    pen_learning_rate_options rate;
    CHECK_OK(pen_job_get_learning_rate(job, 50, &rate));
    assert_int_equal(rate.curves[0].every, 100);
    assert_int_equal(rate.warmup, 100);
    assert_int_equal(pen_job_get_step_count(job, 50), 150);
    assert_int_equal(pen_job_get_step_count(job, 1000), 500);
    CHECK_OK(parse(arena, JOB_SMALL "adam, batch: 4}\n", &job));
    CHECK_ERROR(pen_job_get_dataset(job, PEN_DATASET_PART_EVAL, arena, &options), PEN_NOT_FOUND,
                "job.yaml:3:7: error: data: 'eval' is missing");
    CHECK_OK(parse(arena,
                   "version: 1\nmodel: {file: m}\ndata: {train: {format: images, folder: f, size: "
                   "[32, 64]}, holdout: 0.1}\ntrain: {loss: output, optimizer: adam, batch: 1}\n",
                   &job));
    CHECK_OK(pen_job_get_dataset(job, PEN_DATASET_PART_EVAL, arena, &options));
    assert_int_equal(options.part, PEN_DATASET_PART_EVAL);
    assert_true(options.holdout == 0.1);
    assert_int_equal(options.image_height, 32);
    assert_int_equal(options.image_width, 64);
    pen_arena_destroy(arena);
}

PEN_TEST_MAIN(cmocka_unit_test(every_key_is_read), cmocka_unit_test(constraints_are_read),
              cmocka_unit_test(defaults_are_set), cmocka_unit_test(every_mistake_is_explained),
              cmocka_unit_test(missing_parts_are_named),
              cmocka_unit_test(a_cut_file_is_an_error_or_a_job),
              cmocka_unit_test(every_failing_allocation_is_reported),
              cmocka_unit_test(conversions_reach_the_training))
