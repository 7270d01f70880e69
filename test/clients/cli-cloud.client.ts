import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { inheritedEnvironment } from '../support/service-process.js';
import type { Client } from './client.js';
import { DONE } from './support/clients-model.js';

const VERSION = '1.16.0';
const TIMEOUT_MS = 180_000;
const run = promisify(execFile);

export const cliCloud: Client = {
  name: 'cli-cloud',
  what: `the command line openhands ${VERSION}, with the service as its cloud`,
  install: async (cache) => {
    const programs = await cache.pythonPackages('cli', [`openhands==${VERSION}`]);
    return {
      run: async (world, steps) => {
        const { key, api } = await world.settledUser();
        const home = await mkdtemp(path.join(tmpdir(), 'openhands-cli-'));
        const openhands = async (...args: string[]): Promise<string> => {
          const { stdout, stderr } = await run(path.join(programs, 'openhands'), args, {
            cwd: home,
            timeout: TIMEOUT_MS,
            env: { ...inheritedEnvironment(), HOME: home, OPENHANDS_PERSISTENCE_DIR: home, NO_COLOR: '1' },
          });
          return `${stdout}${stderr}`;
        };
        try {
          // As docs/clients.md says: where `openhands login` keeps the key that it was given.
          await mkdir(path.join(home, 'cloud'));
          await writeFile(path.join(home, 'cloud', 'api_key.txt'), key, { mode: 0o600 });
          await steps.step(
            'openhands login, with the key that is stored, takes the settings over',
            async () => {
              const said = await openhands('login', '--server-url', world.url);
              if (!said.includes('synchronized')) {
                throw new Error(said);
              }
              return lastLines(said);
            },
            TIMEOUT_MS,
          );
          await steps.step(
            'openhands cloud -t: a conversation is made',
            async () => {
              const said = await openhands('cloud', '-t', 'Make the check pass.', '--server-url', world.url);
              if (!said.includes('created successfully')) {
                throw new Error(said);
              }
              return lastLines(said);
            },
            TIMEOUT_MS,
          );
          await steps.step('the conversation works on what was asked', async () => {
            const page = await api.get('/api/v1/app-conversations/search');
            const id = jsonText(jsonList(page, 'items')[0], 'id') ?? '';
            await api.conversationIn(id, 'finished');
            const events = JSON.stringify(await api.events(id));
            if (!events.includes(DONE)) {
              throw new Error(`no event says "${DONE}"`);
            }
            return DONE;
          });
        } finally {
          await rm(home, { recursive: true, force: true });
        }
      },
    };
  },
};

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join(' ');
}
