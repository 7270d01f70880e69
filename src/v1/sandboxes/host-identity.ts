import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { randomBase62 } from '../../common/identifiers.js';
import { ConfigError } from '../../config/config.error.js';

export class HostIdentity {
  /** Names this process in leases; no earlier or later process has the same. */
  readonly processId: string;

  /** @param id `HOST_ID`, or what is kept in `DATA_DIR` */
  constructor(readonly id: string) {
    this.processId = `${id}/${randomBase62(16)}`;
  }
}

const HOST_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

/** Replicas that share `DATA_DIR/host-id` share the host's sandboxes. @throws ConfigError for a broken file */
export async function loadHostId(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'host-id');
  const known = await readHostId(file);
  if (known !== null) {
    return known;
  }
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.${randomBase62(6)}`;
  await writeFile(draft, `${randomBase62(12)}\n`, { mode: 0o644 });
  // Of two concurrent first starts one wins, and both read its id.
  await unlessCode('EEXIST', link(draft, file)).finally(() => rm(draft, { force: true }));
  return (await readHostId(file)) ?? loadHostId(dataDir);
}

async function readHostId(file: string): Promise<string | null> {
  const id = (await unlessCode('ENOENT', readFile(file, 'utf8')))?.trim() ?? null;
  if (id !== null && !HOST_ID.test(id)) {
    throw new ConfigError(`HOST_ID: ${file} holds no usable id; remove it, or set HOST_ID`);
  }
  return id;
}
