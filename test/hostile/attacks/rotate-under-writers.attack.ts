import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '../../support/service-process.js';
import { type Attack, ofService, held } from '../attack.js';

const KEYS_PROGRAM = fileURLToPath(new URL('../../../scripts/keys.mjs', import.meta.url));
const WRITERS = 4;
const ENOUGH = 40;

export const rotateUnderWriters: Attack = {
  name: 'rotate-under-writers',
  finding: 'not tried',
  what: 'The encryption key is rotated while four users write keys and secrets; then the old one is taken away.',
  expected: ofService(held('nothing is under the old key, and everybody has what they wrote last')),
  run: async (world) =>
    world.apart({ sandboxes: false }, async (apart) => {
      const file = path.join(apart.dataDir, 'encryption-keys');
      const old = (await readFile(file, 'utf8')).trim();
      const fresh = `rotated:${randomBytes(32).toString('base64')}`;
      const users = await Promise.all(
        Array.from({ length: WRITERS }, async () => ({ client: await apart.createUser(), last: '' })),
      );
      await writeFile(file, `${fresh},${old}\n`, { mode: 0o600 });
      await apart.restart('SIGTERM');
      const rotation = { ended: false, writes: 0 };
      const writing = users.map(async (user, index) => {
        for (let turn = 0; !rotation.ended || rotation.writes < ENOUGH; turn += 1) {
          const key = `sk-writer-${index}-${turn}`;
          await user.client.saveSettings({
            llm_api_key: key,
            secrets_store: { custom_secrets: { WRITTEN: { secret: key } } },
          });
          user.last = key;
          rotation.writes += 1;
        }
      });
      const { stderr } = await promisify(execFile)(process.execPath, [KEYS_PROGRAM, 'reencrypt'], {
        cwd: path.dirname(apart.dataDir),
        env: { ...inheritedEnvironment(), DATA_DIR: apart.dataDir },
      });
      rotation.ended = true;
      await Promise.all(writing);
      // The start itself ends when a secret is still under a key that is gone.
      await writeFile(file, `${fresh}\n`, { mode: 0o600 });
      await apart.restart('SIGTERM');
      const before = apart.llm.requests.length;
      for (const { client } of users) {
        const { id } = await client.started({
          initial_message: { role: 'user', content: [{ type: 'text', text: 'hello' }], run: true },
        });
        await client.conversationIn(id, 'finished', 'error');
      }
      const sent = apart.llm.requests.slice(before).map(({ headers }) => headers['authorization'] ?? '');
      const right = users.filter(({ last }) => sent.some((value) => value.endsWith(last))).length;
      return {
        held: right === WRITERS && stderr.includes('everything is encrypted with the key "rotated"'),
        seen: `${rotation.writes} writes meanwhile; ${right} of ${WRITERS} models got the key that was written last, with the new key alone`,
      };
    }),
};
