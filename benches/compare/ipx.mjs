// The ipx image server on node:http, over a folder. It keeps no results.
// Environment: PORT, PHOTOS (the folder), NODE_PACKAGES.
import { createServer } from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { NODE_PACKAGES, PHOTOS, PORT } = process.env;
const from = path.join(NODE_PACKAGES, 'node_modules/ipx/dist/index.mjs');
const { createIPX, createIPXNodeServer, ipxFSStorage } = await import(pathToFileURL(from).href);
const ipx = createIPX({ storage: ipxFSStorage({ dir: PHOTOS }) });
createServer(createIPXNodeServer(ipx)).listen(+PORT, '127.0.0.1');
