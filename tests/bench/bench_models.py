"""The models of `make bench`, the same for Penstock and for PyTorch: built from fixed seeds."""
import numpy
import torch
from torch import nn

SEED = 7
BATCHES = 2  # distinct batches in the data files


def mlp4096():
    return nn.Sequential(nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                         nn.Linear(4096, 10))


def mlp2048():
    """Layers of equal work, which two stages share evenly."""
    layers = [nn.Linear(2048, 2048) for _ in range(6)]
    return nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())],
                         nn.Linear(2048, 10))


def resnet18():
    import torchvision
    return torchvision.models.resnet18(weights=None)


def resnet50():
    import torchvision
    return torchvision.models.resnet50(weights=None)


def inception_v3():
    import torchvision
    return torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=False)


def densenet121():
    import torchvision
    return torchvision.models.densenet121(weights=None)


# name: (constructor, shape of one example, classes, batch)
MODELS = {
    "mlp4096": (mlp4096, (784,), 10, 128),
    "mlp2048": (mlp2048, (2048,), 10, 256),
    "resnet18": (resnet18, (3, 224, 224), 1000, 8),
    "resnet50": (resnet50, (3, 224, 224), 1000, 8),
    "inception_v3": (inception_v3, (3, 299, 299), 1000, 8),
    "densenet121": (densenet121, (3, 224, 224), 1000, 8),
}


def build(name):
    """The model in training mode, its initial parameters decided by SEED."""
    torch.manual_seed(SEED)
    return MODELS[name][0]().train()


def data(name):
    """inputs float32 and labels int64 of BATCHES batches."""
    _, shape, classes, batch = MODELS[name]
    random = numpy.random.RandomState(SEED)
    inputs = random.standard_normal((BATCHES * batch,) + shape).astype(numpy.float32)
    return inputs, random.randint(0, classes, BATCHES * batch).astype(numpy.int64)
