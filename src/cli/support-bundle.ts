import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { pack } from 'tar-stream';
import { productVersion } from '../common/product.js';
import { configurationReport } from '../config/load-config.js';
import type { Invocation } from './service-client.js';

/** Writes `slipway-support-<time>.tgz` into the current folder, and prints its name. */
export async function writeSupportBundle(invocation: Invocation): Promise<void> {
  const name = `slipway-support-${new Date().toISOString().slice(0, 19).replaceAll(/[:-]/g, '')}.tgz`;
  const archive = pack();
  for (const [file, content] of Object.entries(await contents(invocation))) {
    const text = typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`;
    archive.entry({ name: `slipway-support/${file}` }, text);
  }
  archive.finalize();
  await pipeline(archive, createGzip(), createWriteStream(name, { flags: 'wx', mode: 0o600 }));
  invocation.output.result(name);
}

/** What the service says of itself to an administrator, or where that fails why, and what this process knows. */
async function contents({ client, output }: Invocation): Promise<Record<string, unknown>> {
  try {
    const body = await client.http.get('/api/v1/diagnostics').json();
    return {
      'versions.json': jsonAt(body, 'versions'),
      'configuration.json': jsonAt(body, 'configuration'),
      'readiness.json': jsonList(body, 'parts'),
      'log.txt': `${jsonList(body, 'log').join('\n')}\n`,
    };
  } catch (error) {
    const problem = errorMessage(error);
    output.note(`slipway: without what the service says of itself: ${problem}`);
    return {
      'versions.json': { slipway: productVersion(), node: process.versions.node, platform: process.platform },
      'configuration.json': configurationReport(),
      'readiness.json': { unavailable: problem },
    };
  }
}
