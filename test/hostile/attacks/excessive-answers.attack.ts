import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

/** Speaks the protocol until it is asked for events: then it sends 120 MB of empty objects. */
const LIAR = `
const segment = Buffer.from('{},'.repeat(100000));
require('http').createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    response.setHeader('content-type', 'application/json');
    if (request.url.includes('/events/search')) {
      let left = 400;
      response.on('error', () => {});
      response.write('[');
      const more = () => {
        while (left-- > 0) if (!response.write(segment)) return response.once('drain', more);
        response.end('{}]');
      };
      return more();
    }
    let body = {};
    try { body = JSON.parse(Buffer.concat(chunks)); } catch {}
    const [, id] = /conversations\\/([0-9a-f-]{36})/.exec(request.url) || [];
    const output = { kind: 'BashOutput', order: 0, exit_code: 0, stdout: '/tmp' };
    const answer = { id: id || body.conversation_id || 'c', execution_status: 'idle', items: [output] };
    response.end(JSON.stringify(answer));
  });
}).listen(Number(process.env.PORT), process.argv[1]);
`;

async function writeSpecs(folder: string): Promise<string> {
  const file = path.join(folder, 'specs.json');
  const pieces = LIAR.match(/[^]{1,900}/g) ?? [];
  const join = 'eval(process.argv.slice(2).join(""))';
  const specs = [
    { id: 'honest', agent_server: 'slipway' },
    {
      id: 'liar',
      agent_server: 'openhands',
      command: [process.execPath, '-e', join, '{host}', ...pieces],
    },
  ];
  await writeFile(file, JSON.stringify(specs));
  return file;
}

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const { bob } = world;
  const sandbox = await bob.client.post('/api/v1/sandboxes?sandbox_spec_id=liar');
  const id = jsonText(sandbox, 'id') ?? '';
  await bob.client.sandboxIn(id, 'RUNNING');
  const during = Vitals.watch(world);
  await bob.client.started({ sandbox_id: id });
  const failed = await bob.client.sandboxIn(id, 'ERROR');
  await wait(3_000);
  const first = await during.end(300);
  const cause = jsonText(failed, 'status_detail') ?? '';

  await world.restart('SIGKILL');
  const after = Vitals.watch(world);
  await wait(5_000);
  const second = await after.end(300);
  return {
    held: first.held && second.held && cause.startsWith('Its agent server sent more than'),
    seen: `${first.seen}; ERROR: ${cause}; after a restart: ${second.seen}`,
  };
}

export const excessiveAnswers: Attack = {
  name: 'excessive-answers',
  finding: 6,
  timed: true,
  what: "What listens in Bob's sandbox answers the service with 120 MB of empty objects.",
  expected: {
    process: held('the sandbox becomes ERROR with the cause, and nobody else notices'),
    unwrapped: held('the sandbox becomes ERROR with the cause, and nobody else notices'),
  },
  run: async (world) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'slipway-hostile-specs-'));
    try {
      return await world.apart({ environment: { SANDBOX_SPECS_FILE: await writeSpecs(folder) } }, attack);
    } finally {
      await rm(folder, { recursive: true, maxRetries: 10 });
    }
  },
};
