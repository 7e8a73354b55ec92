#!/usr/bin/env python3
"""Makes JPEGs with as much detail as cameras write: 0.5 to 0.8 bytes a pixel, the same every time
with the same Pillow.

usage: camera.py FOLDER [PHOTO…]     SIZES="p24=6000x4000 p100=11648x8736" (the default)

Of every size FOLDER gets NAME_420.jpg and NAME_444.jpg (baseline, the standard Huffman tables, as
cameras write them), and of the first NAME_prog.jpg and NAME_opt.jpg, the 4:2:0 file as progressive
and with its own Huffman tables (jpegtran). The picture is a mosaic of the PHOTOs, a little smaller
than they are, as published photographs are soft at the pixel; without PHOTOs it is a made one. Both
get the grain of a sensor at a high speed. Without sharpness and grain a picture has far fewer codes
a pixel to read than a camera's own file.
"""
import os, random, subprocess, sys
from PIL import Image, ImageChops, ImageFilter, ImageStat

QUALITY = 95
# Levels of 255: grain common to all channels in full light, grain of each channel, its blur.
COMMON, OWN, BLUR, OWN_BLUR = 11.0, 3.0, 0.4, 0.9
# The greatest width of a part of the mosaic, and how much smaller it is than in the photograph.
TILE, SHRINK = 1500, 2


def noise(source, size, sigma, blur):
    """Grain around 128 with a standard deviation of `sigma` levels."""
    image = Image.frombytes("L", size, source.randbytes(size[0] * size[1]))
    image = image.filter(ImageFilter.GaussianBlur(blur))
    gain = sigma / ImageStat.Stat(image.crop((0, 0, 1000, 1000))).stddev[0]
    return image.point([min(255, max(0, round(128 + (level - 128) * gain))) for level in range(256)])


def grained(picture):
    """Adds grain that grows with the root of the light, as the noise of photons does."""
    source = random.Random(93)
    share = [round(255 * (0.15 + 0.85 * level / 255) ** 0.5) for level in range(256)]
    mask = picture.convert("L").point(share)
    common = noise(source, picture.size, COMMON, BLUR)
    channels = []
    for channel in picture.split():
        strong = ImageChops.add(channel, common, 1, -128)
        strong = ImageChops.add(strong, noise(source, picture.size, OWN, OWN_BLUR), 1, -128)
        channels.append(Image.composite(strong, channel, mask))
    return Image.merge("RGB", channels)


def mosaic(photos, size):
    """Middles of the photographs, mirrored and turned when their turn comes again."""
    across = -(-size[0] // TILE)
    tile = -(-size[0] // across), -(-size[1] // across)
    turns = [None, Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.ROTATE_180, Image.Transpose.FLIP_TOP_BOTTOM]
    whole = Image.new("RGB", size)
    for number in range(across * across):
        photo = Image.open(photos[number % len(photos)]).convert("RGB")
        scale = min(SHRINK, photo.width / tile[0], photo.height / tile[1])
        wide, high = tile[0] * scale, tile[1] * scale
        left, top = (photo.width - wide) / 2, (photo.height - high) / 2
        part = photo.resize(tile, Image.Resampling.LANCZOS, (left, top, left + wide, top + high))
        turn = turns[number // len(photos) % len(turns)]
        part = part if turn is None else part.transpose(turn)
        whole.paste(part, (number % across * tile[0], number // across * tile[1]))
    return whole


def made(size):
    """Shapes with hard edges over detail at every scale."""
    source = random.Random(size[0])

    def layer(cells):
        small = max(2, size[0] // cells), max(2, size[1] // cells)
        image = Image.frombytes("L", small, source.randbytes(small[0] * small[1]))
        return image.resize(size, Image.Resampling.BICUBIC)

    def detail(finest):
        image = layer(1200)
        for cells, share in [(300, 0.42), (75, 0.34), (20, 0.24), (6, 0.16), (3, 0.10)]:
            image = Image.blend(image, layer(cells), share) if cells >= finest else image
        return image

    edges = layer(500).point(lambda level: 255 if level > 110 else 0)
    light = Image.composite(detail(3), detail(75), edges)
    channels = [ImageChops.add(light, layer(700).point(lambda level: level // 3), 1, -40) for _ in range(3)]
    return Image.merge("RGB", channels)


def tell(file):
    image = Image.open(file)
    length, pixels = os.path.getsize(file), image.width * image.height
    kind = "progressive" if image.info.get("progressive") else "baseline"
    print(f"{file}: {image.width}x{image.height} {kind}, {length} bytes, {length / pixels:.2f} a pixel", flush=True)


def transform(file, other, option):
    with open(other, "wb") as out:
        subprocess.run(["jpegtran", "-copy", "all", option, file], check=True, stdout=out)
    tell(other)


def main():
    folder, photos = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    Image.MAX_IMAGE_PIXELS = None
    sizes = os.environ.get("SIZES", "p24=6000x4000 p100=11648x8736").split()
    for number, (name, size) in enumerate(part.split("=") for part in sizes):
        size = tuple(map(int, size.split("x")))
        picture = grained(mosaic(photos, size) if photos else made(size))
        for sampling in ("4:2:0", "4:4:4"):
            file = os.path.join(folder, f"{name}_{sampling.replace(':', '')}.jpg")
            picture.save(file, quality=QUALITY, subsampling=sampling)
            tell(file)
        if number == 0:
            start = os.path.join(folder, name)
            transform(f"{start}_420.jpg", f"{start}_prog.jpg", "-progressive")
            transform(f"{start}_420.jpg", f"{start}_opt.jpg", "-optimize")


main()
