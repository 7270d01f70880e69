import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { pack } from 'tar-stream';
import { productVersion } from '../common/product.js';
import { configurationReport } from '../config/load-config.js';
import type { ServiceClient } from './service-client.js';

interface SupportBundle {
  name: string;
  /** Why the service said nothing of itself. */
  problem: string | null;
}

/**
 * Writes `slipway-support-<time>.tgz` into the current folder and returns its name: what the service says of itself to an
 * administrator, or where that fails why, and the configuration of this process.
 */
export async function writeSupportBundle(client: ServiceClient, now: Date): Promise<SupportBundle> {
  const files: Record<string, unknown> = {
    'versions.json': { slipway: productVersion(), node: process.versions.node, platform: process.platform },
    'configuration.json': configurationReport(),
  };
  let problem: string | null = null;
  try {
    const body = await client.http.get('/api/v1/diagnostics').json();
    files['versions.json'] = jsonAt(body, 'versions');
    files['configuration.json'] = jsonAt(body, 'configuration');
    files['readiness.json'] = jsonList(body, 'parts');
    files['log.txt'] = `${jsonList(body, 'log').join('\n')}\n`;
  } catch (error) {
    problem = errorMessage(error);
    files['readiness.json'] = { unavailable: problem };
  }
  const name = `slipway-support-${now.toISOString().slice(0, 19).replaceAll(/[:-]/g, '')}.tgz`;
  const archive = pack();
  for (const [file, content] of Object.entries(files)) {
    const text = typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`;
    archive.entry({ name: `slipway-support/${file}`, mtime: now }, text);
  }
  archive.finalize();
  await pipeline(archive, createGzip(), createWriteStream(name, { flags: 'wx', mode: 0o600 }));
  return { name, problem };
}
