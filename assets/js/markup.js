// The markup that shows a crop on another page: a <picture> as AVIF and JPEG in several widths.
// `src/http/site/studio/markup.rs` writes the same on the server; a test holds both to the same text.

import { renditionUrl, scalePx } from "./crop.js";

const NAME = "NormalPreview";

/** The widths in which a crop is offered, in ascending order: `own`, that of its cut of the Preview,
 *  and others of `smaller` that are at most two thirds of the next one. A picture that is `hires` wide
 *  is open up to the width `whole`, and the crop, `width` wide, in proportion. */
export function candidateWidths(own, width, hires, { whole, smaller }) {
  const open = smaller.filter((one) => one <= scalePx(width, whole, hires));
  const chosen = [own];
  for (const one of [...open].reverse()) {
    if (one * 3 <= chosen.at(-1) * 2) chosen.push(one);
  }
  chosen.reverse();
  for (const one of open) {
    if (one * 2 >= chosen.at(-1) * 3) chosen.push(one);
  }
  return chosen;
}

/** The markup. `hires` and `preview` are the crop on each of them with its address, `alt` is escaped. */
export function pictureMarkup({ uri, hires, preview, isMarked, widths, alt }) {
  const own = preview.width;
  const url = (width, extension) =>
    renditionUrl(uri, NAME, preview, isMarked, width === own ? null : width, extension);
  const sizes = `    sizes="(max-width: ${own}px) 100vw, ${own}px"`;
  const candidates = (extension) => {
    if (widths.length === 1) return `    srcset="${url(own, extension)}"`;
    const listed = widths.map((width) => `${url(width, extension)} ${width}w`);
    return `    srcset="${listed.join(",\n            ")}"\n${sizes}`;
  };
  const jpegs = widths.length === 1 ? "" : `${candidates("jpg")}\n`;
  return `<!-- This is the preview. The original, ${hires.width} × ${hires.height}, with a key: ${hires.url} -->
<picture>
  <source
    type="image/avif"
${candidates("avif")}>
  <img
    src="${preview.url}"
${jpegs}    width="${own}" height="${preview.height}"
    alt="${alt}" loading="lazy">
</picture>`;
}
