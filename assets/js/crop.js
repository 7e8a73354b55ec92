// The arithmetic of crops: whole pixels in, whole pixels out, nothing of the page.
//
// A size is {width, height}, a rectangle {x, y, width, height}, a ratio [a, b] for a:b. Rectangles
// are in pixels of the upright Hires unless it says otherwise. What scales a crop is the same as
// on the server (crates/geometry/src/lib.rs), to the pixel.

/** `px * to / from`, rounded to the nearest whole number, a half upwards.
 *
 *  Exact as long as `2 * px * to` is below 2^53: the quotient of two such whole numbers is never
 *  rounded up to the next whole one. A JPEG has 65535 pixels a side at most. */
export function scalePx(px, to, from) {
  return Math.floor((2 * px * to + from) / (2 * from));
}

const clamp = (value, low, high) => Math.max(low, Math.min(value, high));

function scaleSpan(start, length, from, to) {
  const left = Math.min(scalePx(start, to, from), to - 1);
  const right = clamp(scalePx(start + length, to, from), left + 1, to);
  return [left, right - left];
}

/** The crop `rect` of a picture of size `hires` on a rendition of size `target`. */
export function scaleCrop(rect, hires, target) {
  const [x, width] = scaleSpan(rect.x, rect.width, hires.width, target.width);
  const [y, height] = scaleSpan(rect.y, rect.height, hires.height, target.height);
  return { x, y, width, height };
}

/** The operator of media addresses that cuts `rect`. */
export function cropOperator(rect) {
  return `-crop_w${rect.width}_h${rect.height}_x${rect.x}_y${rect.y}`;
}

/** The address of a rendition of `item` with a crop in its own pixels; `width` is that of the result,
 *  where it is not the crop's own. */
export function renditionUrl(item, name, rect, isMarked, width = null, extension = "jpg") {
  const fit = width === null ? "" : `-fit_w${width}`;
  return `${item}${cropOperator(rect)}${fit}${isMarked ? "-watermark" : ""}_${name}.${extension}`;
}

export function wholeOf(image) {
  return { x: 0, y: 0, width: image.width, height: image.height };
}

export function isSame(a, b) {
  return a.x === b.x && a.y === b.y && a.width === b.width && a.height === b.height;
}

/** Whether `rect` is made of whole numbers, holds a pixel and lies in `image`. */
export function isInside(rect, image) {
  const { x, y, width, height } = rect;
  return [x, y, width, height].every(Number.isSafeInteger) && x >= 0 && y >= 0 && width >= 1
    && height >= 1 && x + width <= image.width && y + height <= image.height;
}

/** `text` as a whole number of pixels; nothing when it is none. */
export function parsePx(text) {
  const digits = text.trim();
  return /^[0-9]{1,9}$/.test(digits) ? Number(digits) : null;
}

const divisor = (a, b) => (b ? divisor(b, a % b) : a);

/** The ratio of `text`: two numbers of up to 10000 with a colon or an x between them, in whole numbers
 *  that are as small as can be. */
export function parseRatio(text) {
  const part = "([0-9]{1,5})(?:[.,]([0-9]{1,3}))?";
  const found = new RegExp(`^\\s*${part}\\s*[:x×/]\\s*${part}\\s*$`, "i").exec(text);
  if (!found) return null;
  const thousandths = (whole, decimals) => Number(whole) * 1000 + Number((decimals ?? "").padEnd(3, "0"));
  const ratio = [thousandths(found[1], found[2]), thousandths(found[3], found[4])];
  if (!ratio.every((number) => number >= 1 && number <= 10_000_000)) return null;
  const common = divisor(...ratio);
  return ratio.map((number) => number / common);
}

/** The height that goes with `width`, and the reverse; at least 1. */
const heightFor = (width, [a, b]) => Math.max(1, scalePx(width, b, a));
const widthFor = (height, [a, b]) => Math.max(1, scalePx(height, a, b));

/** Whether no whole numbers of that width, or of that height, come closer to the ratio. */
export function hasRatio(rect, ratio) {
  return rect.height === heightFor(rect.width, ratio) || rect.width === widthFor(rect.height, ratio);
}

const byWidth = (width, ratio) => ({ width, height: heightFor(width, ratio) });
const byHeight = (height, ratio) => ({ width: widthFor(height, ratio), height });

/** `size` itself where there is room for it, else the largest one of the ratio that fits. */
function fitting(size, ratio, room) {
  if (size.width <= room.width && size.height <= room.height) return size;
  const wide = byWidth(Math.min(size.width, room.width), ratio);
  if (wide.height <= room.height) return wide;
  const high = byHeight(room.height, ratio);
  return { width: Math.min(high.width, room.width), height: high.height };
}

/** `size` around the centre of `rect`, moved into `image`. */
function around(rect, size, image) {
  const place = (start, length, own, whole) =>
    clamp(Math.floor((2 * start + length - own) / 2), 0, whole - own);
  return {
    x: place(rect.x, rect.width, size.width, image.width),
    y: place(rect.y, rect.height, size.height, image.height),
    width: size.width,
    height: size.height,
  };
}

/** `rect` with that ratio: its centre and, as far as the picture allows, its area stay.
 *  A rectangle that has the ratio stays as it is. With `preview`, the size of the Preview, the cut of
 *  that has the ratio too where a place nearby gives it. */
export function shaped(rect, ratio, image, preview) {
  if (!ratio || hasRatio(rect, ratio)) return rect;
  const width = Math.round(Math.sqrt((rect.width * rect.height * ratio[0]) / ratio[1]));
  const placed = around(rect, fitting(byWidth(Math.max(1, width), ratio), ratio, image), image);
  return preview ? aligned(placed, ratio, image, preview) : placed;
}

/** Pixels that a crop is moved at most, so that its cut of the Preview has the ratio too. */
const STEPS_MAX = 64;

/** The same as `aligned` on the server (src/http/site/studio/aspect_ratio.rs). */
function aligned(rect, ratio, image, preview) {
  const reach = Math.min(Math.ceil(image.width / preview.width), STEPS_MAX);
  for (let distance = 0; distance <= 2 * reach; distance += 1) {
    const most = Math.min(distance, reach);
    for (let across = Math.max(0, distance - reach); across <= most; across += 1) {
      const down = distance - across;
      for (const [dx, dy] of [[across, down], [-across, down], [across, -down], [-across, -down]]) {
        const place = { ...rect, x: rect.x + dx, y: rect.y + dy };
        if (isInside(place, image) && hasRatio(scaleCrop(place, image, preview), ratio)) return place;
      }
    }
  }
  return rect;
}

/** `rect` with `width` or `height` set; the other one follows where there is a ratio. It moves only
 *  when it would leave the picture otherwise. */
export function sized(rect, { width, height }, ratio, image) {
  let size = { width: width ?? rect.width, height: height ?? rect.height };
  if (ratio) {
    size = fitting(width ? byWidth(width, ratio) : byHeight(height, ratio), ratio, image);
  }
  const wide = clamp(size.width, 1, image.width);
  const high = clamp(size.height, 1, image.height);
  return {
    x: clamp(rect.x, 0, image.width - wide),
    y: clamp(rect.y, 0, image.height - high),
    width: wide,
    height: high,
  };
}

/** `rect` moved as far as the picture allows. */
export function moved(rect, dx, dy, image) {
  const x = clamp(rect.x + dx, 0, image.width - rect.width);
  const y = clamp(rect.y + dy, 0, image.height - rect.height);
  return { ...rect, x, y };
}

/** `rect` on its side. */
export function turned(rect, image) {
  const scale = Math.min(1, image.width / rect.height, image.height / rect.width);
  const side = (px, room) => clamp(Math.round(px * scale), 1, room);
  const size = { width: side(rect.height, image.width), height: side(rect.width, image.height) };
  return around(rect, size, image);
}

/** `rect` after `handle` (n, ne, e, …) was moved by dx and dy.
 *
 *  What lies opposite of the handle stays. With a ratio the other side follows: of a corner the
 *  side that was pulled further counts, or the one that `lead` (x or y) names; of an edge the
 *  middle of the frame stays where there is room. */
export function resized(rect, handle, dx, dy, image, ratio, lead) {
  const [north, south, west, east] = ["n", "s", "w", "e"].map((side) => handle.includes(side));
  const right = rect.x + rect.width;
  const bottom = rect.y + rect.height;
  const free = {
    left: west ? clamp(rect.x + dx, 0, right - 1) : rect.x,
    top: north ? clamp(rect.y + dy, 0, bottom - 1) : rect.y,
    right: east ? clamp(right + dx, rect.x + 1, image.width) : right,
    bottom: south ? clamp(bottom + dy, rect.y + 1, image.height) : bottom,
  };
  const width = free.right - free.left;
  const height = free.bottom - free.top;
  if (!ratio) return { x: free.left, y: free.top, width, height };
  const isCorner = handle.length === 2;
  const further = width >= widthFor(height, ratio) ? "x" : "y";
  const axis = isCorner ? lead ?? further : west || east ? "x" : "y";
  const wanted = axis === "x" ? byWidth(width, ratio) : byHeight(height, ratio);
  const room = {
    width: west ? right : east ? image.width - rect.x : image.width,
    height: north ? bottom : south ? image.height - rect.y : image.height,
  };
  const size = fitting(wanted, ratio, room);
  const middle = around(rect, size, image);
  return {
    x: west ? right - size.width : east ? rect.x : middle.x,
    y: north ? bottom - size.height : south ? rect.y : middle.y,
    ...size,
  };
}

/** The rectangle between two points of the picture, from the first towards the second. */
export function drawn(from, to, image, ratio) {
  const handle = (to.y < from.y ? "n" : "s") + (to.x < from.x ? "w" : "e");
  const x = clamp(from.x, 0, image.width - 1);
  const y = clamp(from.y, 0, image.height - 1);
  const seed = { x, y, width: 1, height: 1 };
  return resized(seed, handle, to.x - from.x, to.y - from.y, image, ratio);
}
