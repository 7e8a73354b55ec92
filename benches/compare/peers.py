#!/usr/bin/env python3
"""The same operations in libvips or Pillow, behind the commands of crates/imaging/benches/render.rs.

usage: peers.py vips|pillow PHOTO MARK   (MARK: a PNG, scaled here beforehand as BENCH_PLACES says)

Every operation starts at the file and ends with the JPEG in memory, as ours does. Each program is
used the way its manual recommends for speed: libvips with shrink-on-load and sequential access,
Pillow with draft mode and a reducing gap.
"""
import io, json, os, sys, time

peer, photo, mark = sys.argv[1:4]
# {"preview": [x, y, width, height], "hires": [...]}: where ours puts the mark.
places = json.loads(os.environ["BENCH_PLACES"])


def vips():
    import pyvips

    pyvips.cache_set_max(0)  # or every second call would be answered from memory

    def stamp(place):
        picture = pyvips.Image.thumbnail(mark, place[2], height=place[3], size="force")
        return picture.copy_memory()

    stamps = {name: stamp(place) for name, place in places.items()}

    def save(image, quality, mode="on"):
        return image.jpegsave_buffer(Q=quality, subsample_mode=mode, keep="none") if newer \
            else image.jpegsave_buffer(Q=quality, subsample_mode=mode, strip=True)

    newer = (pyvips.version(0), pyvips.version(1)) >= (8, 15)

    def full():
        return pyvips.Image.new_from_file(photo, access="sequential")

    def keeping():
        """The subsampling of the original."""
        fields = pyvips.Image.new_from_file(photo)
        name = "jpeg-chroma-subsample"
        known = name in fields.get_fields()
        return "off" if known and fields.get(name) == "4:4:4" else "on"

    mode = keeping()

    def marked(image, name):
        x, y, _, _ = places[name]
        return image.composite2(stamps[name], "over", x=x, y=y).flatten()

    def run(operation, x=0, y=0):
        if operation == "preview":
            return save(pyvips.Image.thumbnail(photo, 1024, size="down"), 85)
        if operation == "thumbnail":
            return save(pyvips.Image.thumbnail(photo, 256, size="down"), 85)
        if operation == "crop":
            return save(full().crop(x, y, 800, 600), 85, mode)
        if operation == "watermark_preview":
            small = pyvips.Image.thumbnail(photo, 1024, size="down")
            return save(marked(small, "preview"), 85)
        if operation == "watermark_hires":
            return save(marked(full(), "hires"), 90, mode)
        raise ValueError(operation)

    return run, f"libvips {pyvips.version(0)}.{pyvips.version(1)}.{pyvips.version(2)}"


def pillow():
    import PIL
    from PIL import Image, JpegImagePlugin

    def stamp(place):
        return Image.open(mark).convert("RGBA").resize(tuple(place[2:]), Image.Resampling.LANCZOS)

    stamps = {name: stamp(place) for name, place in places.items()}
    sampling = JpegImagePlugin.get_sampling(Image.open(photo))
    keep = sampling if sampling in (0, 1, 2) else 0

    def save(image, quality, sampling=2):
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality, subsampling=sampling)
        return out.getvalue()

    def small(side):
        image = Image.open(photo)
        image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2.0)
        return image

    def marked(image, name):
        image.paste(stamps[name], tuple(places[name][:2]), stamps[name])
        return image

    def run(operation, x=0, y=0):
        if operation == "preview":
            return save(small(1024), 85)
        if operation == "thumbnail":
            return save(small(256), 85)
        if operation == "crop":
            return save(Image.open(photo).crop((x, y, x + 800, y + 600)), 85, keep)
        if operation == "watermark_preview":
            return save(marked(small(1024), "preview"), 85)
        if operation == "watermark_hires":
            image = Image.open(photo)
            image.load()
            return save(marked(image, "hires"), 90, keep)
        raise ValueError(operation)

    return run, f"Pillow {PIL.__version__}"


run, version = {"vips": vips, "pillow": pillow}[peer]()
print(version, flush=True)
for line in sys.stdin:
    words = line.split()
    target = words[1] if words[0] == "save" else None
    operation, *at = words[2:] if target else words[1:]
    start = time.perf_counter()
    jpeg = run(operation, *map(int, at))
    ms = (time.perf_counter() - start) * 1e3
    if target:
        with open(target, "wb") as file:
            file.write(jpeg)
    print(f"{ms:.3f} {len(jpeg)}", flush=True)
