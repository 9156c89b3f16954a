"""What torch.export notes of the lines that made a node."""
import re

import torch


def shorten(graph_module, keep=True):
    """Leaves of the paths in stack traces what does not depend on where this was run."""
    for node in graph_module.graph.nodes:
        trace = node.meta.pop("stack_trace", None)
        if trace is not None and keep:
            node.meta["stack_trace"] = re.sub(r'"[^"]*/(site-packages/|(?=make_))', r'"\1', trace)
    for child in graph_module.children():
        if isinstance(child, torch.fx.GraphModule):
            shorten(child, keep)
