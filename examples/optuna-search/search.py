"""Searches a learning rate and a batch size with Optuna, over what `penstock train --log -` says while it runs.

  python search.py [--trials 10] [--penstock penstock] [--job job.yaml]
"""
import argparse
import json
import subprocess

import optuna


def train(trial, arguments):
    """One training: the loss of the evaluation, or pruned after an epoch that promises nothing."""
    settings = {"train.optimizer.sgd.lr": trial.suggest_float("lr", 1e-4, 1.0, log=True),
                "train.batch": trial.suggest_categorical("batch", [5, 10, 20])}
    command = [arguments.penstock, "train", "-q", arguments.job, "--log", "-"]
    for path, value in settings.items():
        command += ["--set", f"{path}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        loss = None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "epoch":
                trial.report(event["loss"], event["epoch"])
                if trial.should_prune():
                    process.terminate() # the step under way is finished
                    process.stdout.read()
                    raise optuna.TrialPruned()
            elif event["event"] == "evaluation":
                loss = event["loss"]
    if process.returncode == 8: # numbers that are not finite: an answer, too
        raise optuna.TrialPruned()
    if loss is None:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--penstock", default="penstock")
    parser.add_argument("--job", default="job.yaml")
    arguments = parser.parse_args()
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1),
                                pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=1))
    study.optimize(lambda trial: train(trial, arguments), n_trials=arguments.trials)
    print(json.dumps({"loss": study.best_value, **study.best_params,
                      "trials": len(study.trials),
                      "pruned": sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)}))


if __name__ == "__main__":
    main()
