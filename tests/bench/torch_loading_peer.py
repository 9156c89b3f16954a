"""Pictures through PyTorch's DataLoader with Pillow: epochs, one for each line of the input.

  torch_loading_peer.py --make FOLDER COUNT     writes pictures of 500 x 375 to two classes
  torch_loading_peer.py FOLDER BATCH WORKERS    prints a line of JSON for each epoch: pictures,
                                                seconds, and seconds of processor time, from
                                                the end of batch AHEAD on: those before may have
                                                been loaded while nobody looked
"""
import json
import os
import sys
import time

import numpy
from PIL import Image

AHEAD = 4


def make(folder, count):
    """Smooth shapes and the noise of a camera: files of about 80 KB, as photos of this size have."""
    random = numpy.random.default_rng(1)
    for index in range(count):
        coarse = random.integers(0, 256, (12, 16, 3), dtype=numpy.uint8)
        smooth = Image.fromarray(coarse).resize((500, 375), Image.BICUBIC)
        pixels = numpy.asarray(smooth) + random.normal(0, 9, (375, 500, 1))
        path = f"{folder}/class{index % 2}"
        os.makedirs(path, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).save(
            f"{path}/{index:05}.jpg", quality=90)


def processor_seconds(workers):
    """Of this process and of those that load."""
    total = time.process_time()
    for worker in workers:
        with open(f"/proc/{worker.pid}/stat", encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        total += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return total


def load(folder, batch, workers):
    import torch
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    steps = [transforms.Resize((224, 224)), transforms.ToTensor(),
             transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    data = datasets.ImageFolder(folder, transforms.Compose(steps))
    loader = torch.utils.data.DataLoader(data, batch, shuffle=True, num_workers=workers,
                                         drop_last=True, persistent_workers=True)
    batches = iter(loader)
    for _ in sys.stdin:
        helpers = batches._workers  # they stay from epoch to epoch
        count = 0
        for number, (inputs, _) in enumerate(batches):
            if number >= AHEAD:
                count += len(inputs)
            if number + 1 == AHEAD:
                began, processor = time.perf_counter(), processor_seconds(helpers)
        print(json.dumps({"pictures": count, "seconds": time.perf_counter() - began,
                          "processor": processor_seconds(helpers) - processor}), flush=True)
        batches = iter(loader)


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        load(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
