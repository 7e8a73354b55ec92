#!/usr/bin/env python3
"""Makes a detailed 24-megapixel baseline 4:2:0 JPEG, the same every time. usage: made.py FILE"""
import random, sys
from PIL import Image, ImageChops, ImageFilter

SIZE = (6000, 4000)
noise = random.Random(24)


def layer(cells, blur=0):
    """Noise at one scale, a grey picture."""
    size = (max(2, SIZE[0] // cells), max(2, SIZE[1] // cells))
    image = Image.frombytes("L", size, noise.randbytes(size[0] * size[1]))
    image = image.resize(SIZE, Image.Resampling.BICUBIC)
    return image.filter(ImageFilter.GaussianBlur(blur)) if blur else image


def channel():
    """Detail at every scale, most of it in the coarse ones, as in photographs."""
    image = layer(1000)
    for cells, share in [(250, 0.42), (60, 0.32), (16, 0.24), (5, 0.16)]:
        image = Image.blend(image, layer(cells), share)
    return image


base, grain = channel(), layer(1, 0.8)
calm = layer(900).point(lambda level: 60 if level > 120 else 8)
mixed = Image.composite(grain, base, calm)
colours = [ImageChops.add(mixed, layer(700).point(lambda level: level // 4)) for _ in range(3)]
Image.merge("RGB", colours).save(sys.argv[1], quality=88, subsampling="4:2:0")
