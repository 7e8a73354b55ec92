// A small node:http server on sharp: what an image service built in house costs.
//   /<jpeg|webp|avif>/<long side>/<quality>/<file>   /crop/<x>_<y>_<width>_<height>/<quality>/<file>
//   /mark/<long side, 0: that of the original>/<mark>_<left>_<top>/<quality>/<file>
// Environment: PORT, PHOTOS (folder of the pictures and marks), NODE_PACKAGES.
// A picture in the size of the original keeps its chroma subsampling, smaller ones are 4:2:0; both as ours does it.
import { createRequire } from 'node:module';
import http from 'node:http';
import path from 'node:path';

const { NODE_PACKAGES, PHOTOS, PORT } = process.env;
const sharp = createRequire(path.join(NODE_PACKAGES, '/'))('sharp');
sharp.cache(false); // otherwise every second request would be answered from memory

const marks = new Map();
// A mark is decoded once and kept as pixels.
async function pixels(name) {
  if (!marks.has(name)) {
    const { data, info } = await sharp(path.join(PHOTOS, name)).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
    marks.set(name, { input: data, raw: { width: info.width, height: info.height, channels: info.channels } });
  }
  return marks.get(name);
}

async function render([operation, ...words]) {
  const file = path.join(PHOTOS, path.basename(words.pop()));
  const quality = +words.pop();
  let image = sharp(file), chromaSubsampling = '4:2:0';
  const side = operation === 'crop' ? 0 : +words[0];
  if (side) image = image.resize({ width: side, height: side, fit: 'inside' });
  else chromaSubsampling = (await sharp(file).metadata()).chromaSubsampling === '4:4:4' ? '4:4:4' : '4:2:0';
  if (operation === 'crop') {
    const [left, top, width, height] = words[0].split('_').map(Number);
    image = image.extract({ left, top, width, height });
  } else if (operation === 'mark') {
    const [mark, left, top] = words[1].split('_');
    image = image.composite([{ ...(await pixels(mark)), left: +left, top: +top }]);
  }
  if (operation === 'webp') return image.webp({ quality }).toBuffer();
  if (operation === 'avif') return image.avif({ quality, chromaSubsampling }).toBuffer();
  // Huffman tables made for the picture would take time and save a hundredth of the bytes.
  return image.jpeg({ quality, chromaSubsampling, optimiseCoding: false }).toBuffer();
}

http.createServer(async (request, response) => {
  try {
    const words = request.url.split('/').slice(1);
    const picture = await render([...words]);
    const format = ['webp', 'avif'].includes(words[0]) ? words[0] : 'jpeg';
    response.writeHead(200, { 'content-type': `image/${format}`, 'content-length': picture.length });
    response.end(picture);
  } catch (error) {
    response.writeHead(500);
    response.end(String(error));
  }
}).listen(+PORT, '127.0.0.1');
