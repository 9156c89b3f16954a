"""Networks for pictures that are exported as .pt2: torchvision's families, segmentation, timm.

Each is built by its library's own constructor, with few layers and narrow ones where it takes sizes.
"""
import functools

import timm
import torch
import torchvision.models as vision
from torch import nn

import vision_models
from vision_models import CLASSES, plain

BATCH = 4


def vgg():
    """VGG, a quarter as wide; it pools to one pixel."""
    layers = vision.vgg.make_layers([16, "M", 32, "M", 64, 64, "M", 128, "M", 128, "M"], batch_norm=True)
    model = vision.VGG(nn.Identity(), init_weights=False)
    model.features, model.avgpool = layers, nn.AdaptiveAvgPool2d(1)
    model.classifier = nn.Sequential(nn.Linear(128, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, CLASSES))
    return model


def resnet():
    return vision.ResNet(vision.resnet.BasicBlock, [1, 1, 1, 1], num_classes=CLASSES)


def resnext():
    return vision.ResNet(vision.resnet.Bottleneck, [1, 1, 1, 1], num_classes=CLASSES, groups=8,
                         width_per_group=4)


def efficientnet():
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig
    stages = [MBConvConfig(1, 3, 1, 32, 16, 1, width_mult=0.5), MBConvConfig(6, 3, 2, 16, 24, 2, width_mult=0.5),
              MBConvConfig(6, 5, 2, 24, 40, 1, width_mult=0.5)]
    return EfficientNet(stages, dropout=0.2, last_channel=64, num_classes=CLASSES)


def efficientnet_v2():
    from torchvision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig
    stages = [FusedMBConvConfig(1, 3, 1, 16, 16, 1), FusedMBConvConfig(4, 3, 2, 16, 24, 2),
              MBConvConfig(4, 3, 2, 24, 32, 1)]
    return EfficientNet(stages, dropout=0.2, last_channel=64, num_classes=CLASSES)


def maxvit():
    from torchvision.models.maxvit import MaxVit
    return MaxVit(input_size=(32, 32), stem_channels=8, partition_size=4, block_channels=[8, 16],
                  block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.1, num_classes=CLASSES)


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    stages = [CNBlockConfig(24, 48, 2), CNBlockConfig(48, 96, 2), CNBlockConfig(96, None, 2)]
    return ConvNeXt(stages, layer_scale=0.1, stochastic_depth_prob=0.1, num_classes=CLASSES)


def swin_v2():
    from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2
    return SwinTransformer(patch_size=[4, 4], embed_dim=24, depths=[2, 2], num_heads=[2, 4],
                           window_size=[4, 4], num_classes=CLASSES, block=SwinTransformerBlockV2,
                           downsample_layer=PatchMergingV2)


class Thin(vision.inception.BasicConv2d):
    """An eighth of the channels. Those of the picture stay."""

    def __init__(self, in_channels, out_channels, **options):
        super().__init__(in_channels // 8 or in_channels, out_channels // 8, **options)


def inception():
    from torchvision.models import inception as parts
    blocks = [functools.partial(block, conv_block=Thin) for block in (
        parts.InceptionA, parts.InceptionB, parts.InceptionC, parts.InceptionD, parts.InceptionE,
        parts.InceptionAux)]
    model = vision.Inception3(num_classes=CLASSES, aux_logits=False, init_weights=False,
                              inception_blocks=[Thin, *blocks])
    model.fc = nn.Linear(2048 // 8, CLASSES)
    return model


def googlenet():
    from torchvision.models.googlenet import Inception, InceptionAux
    blocks = [functools.partial(block, conv_block=Thin) for block in (Inception, InceptionAux)]
    model = vision.GoogLeNet(num_classes=CLASSES, aux_logits=False, init_weights=False, blocks=[Thin, *blocks])
    model.fc = nn.Linear(1024 // 8, CLASSES)
    return model


def backbone():
    """Half a ResNet, whose last stride is a dilation, as segmentation has it."""
    from torchvision.models._utils import IntermediateLayerGetter
    whole = vision.ResNet(vision.resnet.Bottleneck, [1, 2, 1, 1], num_classes=CLASSES, width_per_group=16,
                          replace_stride_with_dilation=[True, False, False])
    return IntermediateLayerGetter(whole, {"layer2": "out"})


def fcn():
    from torchvision.models.segmentation.fcn import FCN, FCNHead
    return FCN(backbone(), FCNHead(512, 5))


def deeplab():
    from torchvision.models.segmentation.deeplabv3 import DeepLabHead, DeepLabV3
    return DeepLabV3(backbone(), DeepLabHead(512, 5, atrous_rates=(2, 4, 6)))


def lraspp():
    return vision.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)


class UNet(nn.Module):
    """Down twice and up twice, with transposed convolutions and what was kept on the way down."""

    def __init__(self, classes=5, width=8):
        super().__init__()
        sizes = [3, width, 2 * width, 4 * width]
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip(sizes, sizes[1:]))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(sizes[2:0:-1], sizes[3:1:-1]))
        self.merge = nn.ModuleList(self.block(2 * a, a) for a in sizes[2:0:-1])
        self.drop = nn.Dropout2d(0.1)
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                             nn.ReLU(inplace=True), nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
                             nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))

    def forward(self, image):
        kept = []
        for block in self.down[:-1]:
            image = block(image)
            kept.append(image)
            image = self.pool(image)
        image = self.drop(self.down[-1](image))
        for up, merge in zip(self.up, self.merge):
            image = merge(torch.cat([kept.pop(), up(image)], dim=1))
        return self.head(image)


def mixer():
    from timm.models.mlp_mixer import MlpMixer
    model = MlpMixer(num_classes=CLASSES, img_size=64, patch_size=16, num_blocks=2, embed_dim=48)
    nn.init.normal_(model.head.weight, std=0.1)  # timm begins with zeros
    return model


def from_timm(name, **options):
    return lambda: timm.create_model(name, pretrained=False, num_classes=CLASSES, **options)


# name: (constructor, side of the picture, classes are the last dimension of the first output or dimension 1)
FAMILIES = {
    "alexnet": (vision_models.alexnet, 96, -1),
    "vgg": (vgg, 32, -1),
    "resnet": (resnet, 64, -1),
    "resnext": (resnext, 64, -1),
    "squeezenet": (plain("squeezenet1_1"), 64, -1),
    "densenet": (vision_models.densenet, 64, -1),
    "inception": (inception, 96, -1),
    "googlenet": (googlenet, 64, -1),
    "shufflenet": (plain("shufflenet_v2_x0_5"), 64, -1),
    "mobilenet_v2": (plain("mobilenet_v2", width_mult=0.35), 64, -1),
    "mobilenet_v3": (plain("mobilenet_v3_small"), 64, -1),
    "mnasnet": (plain("mnasnet0_5"), 64, -1),
    "efficientnet": (efficientnet, 64, -1),
    "efficientnet_v2": (efficientnet_v2, 64, -1),
    "regnet": (plain("regnet_y_400mf"), 64, -1),
    "vit": (vision_models.vit, 48, -1),
    "swin": (vision_models.swin, 64, -1),
    "swin_v2": (swin_v2, 64, -1),
    "maxvit": (maxvit, 32, -1),
    "convnext": (convnext, 64, -1),
    "fcn": (fcn, 32, 1),
    "deeplab": (deeplab, 32, 1),
    "lraspp": (lraspp, 64, 1),
    "unet": (UNet, 32, 1),
    "timm_vit": (from_timm("vit_tiny_patch16_224", img_size=48, embed_dim=48, depth=2, num_heads=3,
                           drop_rate=0.1), 48, -1),
    "timm_deit": (from_timm("deit_tiny_distilled_patch16_224", img_size=48, embed_dim=48, depth=2,
                            num_heads=3), 48, -1),
    "timm_beit": (from_timm("beit_base_patch16_224", img_size=48, embed_dim=48, depth=2, num_heads=3), 48, -1),
    "timm_mixer": (mixer, 64, -1),
    "timm_convnext": (from_timm("convnext_atto", depths=(1, 1, 1, 1), dims=(16, 24, 32, 48),
                                drop_path_rate=0.1), 64, -1),
    "timm_mobilenet_v4": (from_timm("mobilenetv4_conv_small_050"), 64, -1),
    "timm_ghostnet": (from_timm("ghostnet_050"), 64, -1),
    "timm_nfnet": (from_timm("nf_resnet26", channels=(32, 64, 96, 128)), 64, -1),
    "timm_swin": (from_timm("swin_tiny_patch4_window7_224", img_size=64, window_size=4, embed_dim=24,
                            depths=(2, 2), num_heads=(2, 4)), 64, -1),
    "timm_coat": (from_timm("coat_lite_tiny", img_size=64, embed_dims=(16, 16, 32, 32), serial_depths=(1, 1, 1, 1)),
                  64, -1),
    "timm_eva": (from_timm("eva02_tiny_patch14_224", img_size=56, embed_dim=48, depth=2, num_heads=3), 56, -1),
}


def build(name):
    """(model, inputs, labels, loss, dimension of the classes)"""
    constructor, side, axis = FAMILIES[name]
    torch.manual_seed(5)
    model = constructor()
    generator = torch.Generator().manual_seed(6)
    argument = {"unet": "image", "lraspp": "input"}.get(name, "x")
    inputs = {argument: torch.randn(BATCH, 3, side, side, generator=generator)}
    shape = (BATCH, side, side) if axis == 1 else (BATCH,)
    labels = torch.randint(0, 5 if axis == 1 else CLASSES, shape, generator=generator)
    return model, inputs, labels, "softmax_cross_entropy", axis
