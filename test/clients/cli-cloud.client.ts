import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { inheritedEnvironment } from '../support/service-process.js';
import { until } from '../support/until.js';
import type { Client } from './client.js';
import { DONE } from './support/clients-model.js';

const VERSION = '1.16.0';
const TIMEOUT_MS = 180_000;
const run = promisify(execFile);
const USER_CODE = /user_code=([A-Z]{4}-[A-Z]{4})/;

export const cliCloud: Client = {
  name: 'cli-cloud',
  what: `the command line openhands ${VERSION}, with the service as its cloud`,
  install: async (cache) => {
    const programs = await cache.pythonPackages('cli', [`openhands==${VERSION}`]);
    return {
      run: async (world, steps) => {
        const { key, api } = await world.settledUser();
        const home = await mkdtemp(path.join(tmpdir(), 'openhands-cli-'));
        const begin = (...args: string[]): ReturnType<typeof run> =>
          run(path.join(programs, 'openhands'), args, {
            cwd: home,
            timeout: TIMEOUT_MS,
            env: {
              ...inheritedEnvironment(),
              HOME: home,
              OPENHANDS_PERSISTENCE_DIR: home,
              NO_COLOR: '1',
              BROWSER: 'true',
              COLUMNS: '200',
            },
          });
        const openhands = async (...args: string[]): Promise<string> => {
          const { stdout, stderr } = await begin(...args);
          return stderr.toString() + stdout.toString();
        };
        const login = async (): Promise<string> => {
          const running = begin('login', '--server-url', world.url);
          let page = '';
          running.child.stdout?.on('data', (text: Buffer) => {
            page += text.toString();
          });
          await until(() => USER_CODE.test(page) || running.child.exitCode !== null);
          await decide(world.url, key, USER_CODE.exec(page)?.[1] ?? '');
          return (await running).stdout.toString();
        };
        try {
          await steps.step(
            'openhands login shows a code, and gets a key when a person lets it in',
            async () => {
              const said = await login();
              const stored = await readFile(path.join(home, 'cloud', 'api_key.txt'), 'utf8');
              if (!said.includes('synchronized') || !stored.startsWith('slw_') || stored.trim() === key) {
                throw new Error(said);
              }
              return lastLines(said);
            },
            TIMEOUT_MS,
          );
          await steps.step(
            'openhands login, with the key that is stored, takes the settings over',
            async () => {
              const said = await openhands('login', '--server-url', world.url);
              if (!said.includes('already logged in') || !said.includes('synchronized')) {
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
          await rm(home, { recursive: true, force: true, maxRetries: 10 });
        }
      },
    };
  },
};

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join(' ');
}

/** What the page of the console sends. */
async function decide(url: string, key: string, code: string): Promise<void> {
  const response = await fetch(`${url}/oauth/device/verify-authenticated`, {
    method: 'POST',
    headers: { 'X-Session-API-Key': key },
    body: new URLSearchParams({ user_code: code }),
  });
  if (!response.ok) {
    throw new Error(await response.text());
  }
}
