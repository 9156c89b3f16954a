"""Metrics of made-up scores, as scikit-learn has them: values.txt.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scikit-learn==1.9.1
    /tmp/venv/bin/python tests/reference/metrics/make_metric_references.py >tests/reference/metrics/values.txt

A line is CASE METRIC VALUE. tests/scheduler/metric/metric_tally_test.c makes the same numbers by the same rule.
"""
import numpy as np
from sklearn import metrics

CLASSES, TARGETS = 7, 400


class Numbers:
    """Any numbers, the same in C."""

    def __init__(self, seed):
        self.state = seed

    def next(self, below):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) % below


def say(case, name, value):
    print(case, name, repr(float(value)))


def say_counts(case, truth, answer, binary):
    say(case, "accuracy", metrics.accuracy_score(truth, answer))
    for name, score in (("precision", metrics.precision_score), ("recall", metrics.recall_score),
                        ("f1", metrics.f1_score)):
        averages = ("binary" if binary else "macro", "macro", "micro", "weighted")
        for average, end in zip(averages, ("", "_macro", "_micro", "_weighted")):
            say(case, name + end, score(truth, answer, average=average, zero_division=0))
    say(case, "mean_iou", metrics.jaccard_score(truth, answer, average="macro", zero_division=0))


def classes():
    """Of seven classes: no answer is the fourth, no target has the sixth, the last has neither; a fifth is ignored."""
    numbers = Numbers(1)
    scores, labels = np.zeros((TARGETS, CLASSES)), np.zeros(TARGETS, int)
    for i in range(TARGETS):
        labels[i] = numbers.next(5)
        for c in range(CLASSES):
            scores[i, c] = numbers.next(8) + c / 8
        scores[i, labels[i]] += 2
        scores[i, [3, 6]] = -5, -6
        if numbers.next(5) == 0:
            labels[i] = -1
    kept = labels >= 0
    scores, labels = scores[kept], labels[kept]
    say_counts("classes", labels, scores.argmax(1), False)
    for k in 2, 3, 5:
        say("classes", f"top_{k}", metrics.top_k_accuracy_score(labels, scores, k=k, labels=range(CLASSES)))
    # the last two classes have no example, so that they have no curve
    powers = np.exp(scores - scores.max(1, keepdims=True))
    powers /= powers.sum(1, keepdims=True)
    say("classes", "auc", np.mean([metrics.roc_auc_score(labels == c, powers[:, c]) for c in range(5)]))
    say("classes", "perplexity", np.exp(metrics.log_loss(labels, powers, labels=range(CLASSES))))


def two():
    """Of two classes."""
    numbers = Numbers(2)
    scores, labels = np.zeros((TARGETS, 2)), np.zeros(TARGETS, int)
    for i in range(TARGETS):
        labels[i] = numbers.next(3) == 0
        for c in range(2):
            scores[i, c] = numbers.next(8) + c / 8
        scores[i, labels[i]] += 1
    say_counts("two", labels, scores.argmax(1), True)
    say("two", "auc", metrics.roc_auc_score(labels, scores[:, 1] - scores[:, 0]))


def decisions():
    """Of one score each, with many that are equal; 0 is no."""
    numbers = Numbers(3)
    scores, labels = np.zeros(TARGETS), np.zeros(TARGETS, int)
    for i in range(TARGETS):
        labels[i] = numbers.next(3) == 0
        scores[i] = (numbers.next(9) - 4.0 + labels[i]) / 2
    say_counts("decisions", labels, (scores > 0).astype(int), True)
    say("decisions", "auc", metrics.roc_auc_score(labels, scores))


def values():
    """Numbers."""
    numbers = Numbers(4)
    truth, found = np.zeros(TARGETS), np.zeros(TARGETS)
    for i in range(TARGETS):
        truth[i] = (numbers.next(1000) - 500) / 64
        found[i] = truth[i] + (numbers.next(100) - 40) / 128
    say("values", "mean_absolute_error", metrics.mean_absolute_error(truth, found))
    say("values", "mean_squared_error", metrics.mean_squared_error(truth, found))
    say("values", "root_mean_squared_error", metrics.root_mean_squared_error(truth, found))


classes()
two()
decisions()
values()
