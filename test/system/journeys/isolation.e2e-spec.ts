import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { readPostmasterPid } from '../../../src/database/embedded-postgres/process-identity.js';
import { type ApiClient, eventually, type Started, text } from './support/api-client.js';
import { commandLines } from './support/command-lines.js';
import { JourneyWorld, LLM_KEY } from './support/journey-world.js';
import { message, shell } from './support/script.js';

jest.setTimeout(180_000);

const HAS_BUBBLEWRAP =
  spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', '--proc', '/proc', 'true']).status === 0;

/** What a terminal of an agent and a command of a client can see of everything around. */
type Look = (command: string) => Promise<string>;

const isolation = HAS_BUBBLEWRAP ? 'bwrap' : 'none';

describe(`sandboxes, ${isolation}`, () => {
  let world: JourneyWorld;
  let user: ApiClient;
  let own: Started;
  let neighbour: Started;
  let looks: Record<'terminal' | 'command', Look>;

  beforeAll(async () => {
    // Its own database, with its files and its socket in the data folder.
    world = await JourneyWorld.open({ embedded: true });
    await world.start({ SANDBOX_ISOLATION: isolation });
    user = await world.createUser();
    [own, neighbour] = await Promise.all([user.started({}), user.started({})]);
    await user.run(neighbour.sandboxId, 'echo private > private.txt');
    looks = {
      command: async (command) => (await user.run(own.sandboxId, command)).output,
      terminal: async (command) => {
        const { id } = await user.started({ sandbox_id: own.sandboxId, ...message(shell(command)) });
        await user.conversationIn(id, 'finished', 'error');
        return JSON.stringify(await user.eventsOfKind(id, 'ObservationEvent'));
      },
    };
  });

  afterAll(async () => {
    await world.close();
  });

  const lines = (...commands: string[]) => commands.map((one) => `(${one}) 2>/dev/null`).join('; ');

  it.each(['terminal', 'command'] as const)('show a %s no key in any environment', async (place) => {
    const key = text(await user.sandbox(own.sandboxId), 'session_api_key');
    // In another form, since what is known to be secret is masked in what is shown.
    const seen = await looks[place](`(env; cat /proc/self/environ) | tr '\\0' '\\n' | rev`);
    expect(seen).toContain(reversed('HOME='));
    for (const secret of [LLM_KEY, key, world.adminKey, 'postgres', 'DATABASE_URL', 'ENCRYPTION_KEYS']) {
      expect(seen).not.toContain(reversed(secret));
    }
  });

  const whereSeparated = isolation === 'bwrap' ? describe : describe.skip;
  whereSeparated('with a wall around them', () => {
    it.each(['terminal', 'command'] as const)(
      'show a %s nothing of the service, the agent server and the neighbours',
      async (place) => {
        const socket = (await readPostmasterPid(`${world.dataDir}/postgres`))?.socketDirectory ?? '';
        const files = [
          `${world.dataDir}/api-key`,
          `${world.dataDir}/encryption-keys`,
          `${world.dataDir}/sandboxes/${neighbour.sandboxId}/box/workspace/private.txt`,
          `${world.dataDir}/sandboxes/${own.sandboxId}/program.json`,
        ];
        files.slice(0, 3).forEach((file) => expect(readFileSync(file, 'utf8')).not.toBe(''));
        expect(readdirSync(socket).some((name) => name.startsWith('.s.PGSQL'))).toBe(true);
        // Apart, since an event shows the command as well.
        const tests = [...files, `${socket}/.s.PGSQL.*`, '/etc/passwd'].map(
          (file) => `ls ${file} && echo FO""UND ${file}`,
        );
        const found = await looks[place](lines(...tests));
        expect(found.match(/FOUND [^ "\\\n]+/g)).toEqual(['FOUND /etc/passwd']);

        const key = text(await user.sandbox(own.sandboxId), 'session_api_key');
        const processes = await looks[place](
          `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | rev`,
        );
        expect(processes).toContain(reversed('HOME='));
        for (const secret of [LLM_KEY, key, world.adminKey, 'postgres', 'agent-server/main.js']) {
          expect(processes).not.toContain(reversed(secret));
        }
      },
    );
  });

  it('end with all that was started in them, by a pause and by a removal', async () => {
    const alive = (seconds: string) =>
      commandLines().filter((line) => line.includes(`sleep ${seconds}`)).length;
    const other = `${randomInt(100_000, 999_999)}.5`;
    const leave = (seconds: string) =>
      // Where nothing but its name tells whose it is, it has to keep its name.
      `setsid ${isolation === 'bwrap' ? 'env -i ' : ''}sleep ${seconds} > /dev/null 2>&1 & echo left`;
    const seconds = `${randomInt(100_000, 999_999)}.25`;
    // A command has its processes for as long as it runs, a terminal until the conversation ends.
    await user.agentServer(own.sandboxId, 'POST', '/api/bash/start_bash_command', {
      command: `${leave(seconds)}; sleep 1000`,
      timeout: 600,
    });
    await user.started({ sandbox_id: neighbour.sandboxId, ...message(shell(leave(other))) });
    await eventually(() => alive(seconds) > 0 && alive(other) > 0);

    await user.post(`/api/v1/sandboxes/${own.sandboxId}/pause`);
    await user.sandboxIn(own.sandboxId, 'PAUSED');
    await eventually(() => alive(seconds) === 0);
    expect(alive(other)).toBeGreaterThan(0);
    await user.remove(`/api/v1/sandboxes/${neighbour.sandboxId}`);
    await eventually(() => alive(other) === 0);
    await eventually(async () => (await world.sandboxFolders()).join() === own.sandboxId);
  });
});

function reversed(value: string): string {
  return Array.from(value).toReversed().join('');
}
