"""The classification families of torchvision, each at a size that a test can train for a step.

A family is what its paper calls one. Of each a small member is taken, built by torchvision's own
constructor, with ten classes; ConvNeXt, DenseNet, ViT and Swin have fewer and narrower layers. VGG
ends in a pooling that PyTorch exports for pictures of 224 x 224 only: here it pools to one pixel.

Where there is batch normalization, most of what follows it is open (settle). With the biases of zero
that networks begin with, half of all ReLUs are shut, and a difference grows by a fifth from each
normalization to the next: after the fifty of Inception, one of 1e-7 is 1e-4, decides whether ReLUs
are open, and with each moves a gradient by percents, in PyTorch's single precision as in any. Which
of two neighbours a pooling takes is decided like that, too: there is another draw of pictures for
those where it is.
"""
import torch
from torch import nn
import torchvision.models as vision

CLASSES = 10


def vgg():
    model = vision.vgg11_bn(weights=None, num_classes=CLASSES)
    model.avgpool = nn.AdaptiveAvgPool2d(1)
    model.classifier = nn.Sequential(nn.Linear(512, 256), nn.ReLU(True), nn.Dropout(),
                                     nn.Linear(256, 256), nn.ReLU(True), nn.Dropout(),
                                     nn.Linear(256, CLASSES))
    return model


def alexnet():
    model = vision.alexnet(weights=None, num_classes=CLASSES)
    model.avgpool = nn.AdaptiveAvgPool2d(1)
    model.classifier[1] = nn.Linear(256, 512)
    model.classifier[4] = nn.Linear(512, 512)
    model.classifier[6] = nn.Linear(512, CLASSES)
    return model


def vit():
    from torchvision.models.vision_transformer import VisionTransformer
    model = VisionTransformer(image_size=48, patch_size=16, num_layers=3, num_heads=4,
                              hidden_dim=64, mlp_dim=128, num_classes=CLASSES)
    nn.init.normal_(model.heads.head.weight, std=0.1)  # torchvision begins with zeros
    return model


def swin():
    from torchvision.models.swin_transformer import SwinTransformer
    return SwinTransformer(patch_size=[4, 4], embed_dim=24, depths=[2, 2], num_heads=[2, 4],
                           window_size=[4, 4], num_classes=CLASSES)


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    stages = [CNBlockConfig(24, 48, 2), CNBlockConfig(48, 96, 2), CNBlockConfig(96, None, 2)]
    return ConvNeXt(stages, layer_scale=0.1, num_classes=CLASSES)


def densenet():
    return vision.DenseNet(growth_rate=16, block_config=(3, 4, 4, 3), num_init_features=32,
                           num_classes=CLASSES)


def plain(name, **options):
    return lambda: getattr(vision, name)(weights=None, num_classes=CLASSES, **options)


# name: (constructor, side of the picture, operator set)
FAMILIES = {
    "alexnet": (alexnet, 96, 15),
    "vgg": (vgg, 32, 15),
    "resnet": (plain("resnet18"), 64, 15),
    "squeezenet": (plain("squeezenet1_1"), 64, 15),
    "densenet": (densenet, 64, 15),
    "googlenet": (plain("googlenet", aux_logits=False, init_weights=False), 64, 15),
    "inception": (plain("inception_v3", aux_logits=False, init_weights=False), 128, 15),
    "mobilenet_v2": (plain("mobilenet_v2"), 64, 15),
    "mobilenet_v3": (plain("mobilenet_v3_small"), 64, 15),
    "efficientnet": (plain("efficientnet_b0"), 64, 15),
    "shufflenet": (plain("shufflenet_v2_x0_5"), 64, 15),
    "regnet": (plain("regnet_y_400mf"), 64, 15),
    "mnasnet": (plain("mnasnet0_5"), 64, 15),
    "convnext": (convnext, 64, 15),
    "convnext17": (convnext, 64, 17),
    "vit": (vit, 48, 15),
    "vit17": (vit, 48, 17),
    "swin": (swin, 64, 15),
    "swin17": (swin, 64, 17),
}


def without_chance(model):
    """Dropout and dropped branches keep everything, so that two programs compute the same."""
    for module in model.modules():
        if isinstance(module, (nn.Dropout, vision.convnext.StochasticDepth)):
            module.p = 0.0
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0
        if hasattr(module, "attention_dropout") and isinstance(module.attention_dropout, float):
            module.attention_dropout = 0.0
        if hasattr(module, "drop_rate"):
            module.drop_rate = 0.0
    return model


def settle(model, images):
    """Weights and biases of batch normalization by chance, the biases about 2, and its running
    statistics those of the pictures."""
    generator = torch.Generator().manual_seed(7)
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    if not norms:
        return
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
        for norm in norms:
            norm.weight.copy_(0.5 + torch.rand(norm.weight.shape, generator=generator))
            norm.bias.copy_(2 + 0.3 * torch.randn(norm.bias.shape, generator=generator))
            norm.momentum, momentum = 1.0, norm.momentum
        model.train()(images)
        for norm in norms:
            norm.momentum = momentum


def build(name, draw):
    """(model, one batch of inputs as a dict, labels, operator set); `draw` chooses the inputs"""
    constructor, side, opset = FAMILIES[name]
    torch.manual_seed(5)
    model = without_chance(constructor())
    generator = torch.Generator().manual_seed(6 + draw)
    batch = 8
    inputs = {"image": torch.randn(batch, 3, side, side, generator=generator)}
    labels = torch.randint(0, CLASSES, (batch,), generator=generator)
    settle(model, inputs["image"])
    return model, inputs, labels, opset
