import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { ascending } from '@slipway/common/compare.js';
import { findProgram } from '../../../packages/sandboxes/src/process/platform.js';
import type { ServiceProcess } from '../../support/service-process.js';
import { until } from '../../support/until.js';
import { type ApiClient, idsOf, type Started, text } from './support/api-client.js';
import { Gates } from './support/gates.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onLongWork, shell } from './support/script.js';

const TIMEOUT_MS = 300_000;
jest.setTimeout(TIMEOUT_MS);

const STATUSES = [
  'WORKING',
  'WAITING_FOR_SANDBOX',
  'PREPARING_REPOSITORY',
  'RUNNING_SETUP_SCRIPT',
  'SETTING_UP_GIT_HOOKS',
  'STARTING_CONVERSATION',
];
const REPOSITORY = {
  '.openhands/setup.sh': 'echo begun >> "$HOME/begun.txt"; sleep 0.1; echo done >> "$HOME/done.txt"\n',
};
const STEPS = 20;
/** Programs that a sandbox's network needs, and what is written down when one of them begins. */
const NETWORK_PROGRAMS = [
  ['slirp4netns', 'network.json'],
  ['ip', 'program.json'],
] as const;

describe('the service, killed', () => {
  let world: JourneyWorld;
  let service: ServiceProcess;
  let user: ApiClient;
  let gates: Gates;
  /** A program in it waits while there is a file `PROGRAM.hold`. */
  let programs: string;
  /** None where sandboxes share the machine's network. */
  let holdable: readonly (readonly [string, string])[];

  beforeAll(async () => {
    world = await JourneyWorld.open();
    programs = path.join(path.dirname(world.dataDir), 'programs');
    await mkdir(programs);
    const names = ['bwrap', ...NETWORK_PROGRAMS.map(([name]) => name)];
    const found = await Promise.all(names.map((name) => findProgram(name, process.env['PATH'])));
    holdable = found.includes(null) ? [] : NETWORK_PROGRAMS;
    for (const [name] of holdable) {
      const script = `#!/bin/sh
while [ -e ${programs}/${name}.hold ]; do sleep 0.01; done
exec ${found[names.indexOf(name)]} "$@"
`;
      await writeFile(path.join(programs, name), script, { mode: 0o755 });
    }
    gates = await Gates.install(world.databaseUrl);
    await restart();
    user = await world.createUser();
    await world.giveToken(user);
    await world.git.commit('octo/app', 'main', REPOSITORY);
  });

  afterAll(async () => {
    await gates.close();
    await world.close();
  });

  const restart = async () => {
    const url = new URL(world.databaseUrl);
    // What a gate holds waits until the last of them has come, on a slow machine for longer than the service would.
    url.searchParams.set('statement_timeout', String(TIMEOUT_MS));
    url.searchParams.set('query_timeout', String(TIMEOUT_MS));
    service = await world.start({
      DATABASE_POOL_SIZE: '20',
      DATABASE_URL: url.href,
      PATH: `${programs}:${process.env['PATH']}`,
    });
  };
  const start = async (title: string): Promise<string> =>
    user.start({ title, selected_repository: 'octo/app', ...message(shell('echo hello')) });

  /** A start whose sandbox runs and waits for the program to connect its network. */
  const startHeld = async (program: string, record: string): Promise<string> => {
    await writeFile(path.join(programs, `${program}.hold`), '');
    const task = await start(program);
    await until(async () => {
      const id = jsonText(await user.startTask(task), 'sandbox_id') ?? '';
      return existsSync(path.join(world.dataDir, 'sandboxes', id, record));
    });
    return task;
  };

  /** The conversation's state may be known a moment before the last event of its log, which tells of it, is stored. */
  const finished = async (id: string): Promise<void> => {
    await user.conversationIn(id, 'finished');
    await user.eventOf(
      id,
      (event) => jsonText(event, 'key') === 'execution_status' && jsonText(event, 'value') === 'finished',
    );
  };
  /** What a start leaves behind that was done once, however often it was taken up. */
  const expectOnce = async ({ id, sandboxId }: Started): Promise<void> => {
    await finished(id);
    const info = await user.agentServer(sandboxId, 'GET', '/api/conversations/search');
    expect(jsonList(info, 'items')).toHaveLength(1);
    const { output } = await user.run(sandboxId, 'cat ~/done.txt && ls app/.openhands');
    expect(output).toBe('done\nsetup.sh\n');
    expect(await logOf(id, sandboxId)).toEqual(idsOf(await user.events(id)));
  };
  /** The agent server's own log, by the ids of its events. */
  const logOf = async (id: string, sandboxId: string): Promise<string[]> => {
    const found: string[] = [];
    let page: string | null = null;
    do {
      const query: string = page === null ? '' : `&page_id=${encodeURIComponent(page)}`;
      const path = `/api/conversations/${id}/events/search?limit=100${query}`;
      const answer = await user.agentServer(sandboxId, 'GET', path);
      found.push(...idsOf(jsonList(answer, 'items')));
      page = jsonText(answer, 'next_page_id');
    } while (page !== null);
    return found;
  };
  const expectNoMoreThan = async (sandboxIds: string[]): Promise<void> => {
    await until(async () => (await world.count('sandboxes')) === sandboxIds.length);
    expect(await world.sandboxFolders()).toEqual(sandboxIds.toSorted(ascending));
    // What ends between the two looks belongs to no sandbox for a moment.
    await until(() => {
      const all = world.sandboxProcesses();
      const known = new Set(sandboxIds.flatMap((id) => world.sandboxProcesses(id)));
      return all.every((pid) => known.has(pid));
    });
  };
  const removeAll = async (starts: Started[]): Promise<void> => {
    await Promise.all(starts.map(({ id }) => user.remove(`/api/v1/app-conversations/${id}`)));
    await until(async () => (await world.sandboxFolders()).length === 0);
    expect(world.sandboxProcesses()).toEqual([]);
  };

  it('finishes what it was at: starts in every status, a pause, a resume, a removal, an agent at work', async () => {
    const goOn = onLongWork(STEPS);
    const [pausing, resuming, removing, working] = await Promise.all([
      user.started({}),
      user.started({}),
      user.started({}),
      user.started(message('work on')),
    ]);
    await user.post(`/api/v1/sandboxes/${resuming.sandboxId}/pause`);
    await user.sandboxIn(resuming.sandboxId, 'PAUSED');
    await until(async () => (await user.eventsOfKind(working.id, 'ObservationEvent')).length === 3);

    await gates.shut(`sandbox:${pausing.sandboxId}:PAUSING`);
    await gates.shut(`sandbox:${resuming.sandboxId}:STARTING`);
    await gates.shut(`sandbox:${removing.sandboxId}:DELETING`);
    for (const status of STATUSES) {
      await gates.shut(`start:${status}:${status}`);
    }
    await user.post(`/api/v1/sandboxes/${pausing.sandboxId}/pause`);
    await user.post(`/api/v1/sandboxes/${resuming.sandboxId}/resume`);
    await user.remove(`/api/v1/app-conversations/${removing.id}`);
    const tasks = await Promise.all(STATUSES.map((status) => start(status)));
    await gates.untilWaiting(STATUSES.length + 3);
    const statuses = await Promise.all(tasks.map(async (id) => text(await user.startTask(id), 'status')));
    expect(statuses).toEqual(STATUSES);
    for (const [program, record] of holdable) {
      tasks.push(await startHeld(program, record));
    }

    await world.kill(service);
    await Promise.all(holdable.map(([name]) => rm(path.join(programs, `${name}.hold`))));
    await gates.openForSurvivors();
    // The agent comes to its end while no client looks.
    goOn();
    await restart();

    const starts = await Promise.all(tasks.map((id) => user.ready(id)));
    await Promise.all(starts.map(expectOnce));
    await user.sandboxIn(pausing.sandboxId, 'PAUSED');
    await user.sandboxIn(resuming.sandboxId, 'RUNNING');
    await user.sandboxIn(removing.sandboxId, 'MISSING');
    await until(() => world.sandboxProcesses(pausing.sandboxId).length === 0);
    await finished(working.id);
    expect(await user.eventsOfKind(working.id, 'ObservationEvent')).toHaveLength(STEPS + 1);
    expect(idsOf(await user.events(working.id))).toEqual(await logOf(working.id, working.sandboxId));
    const left = [...starts, pausing, resuming, working];
    await expectNoMoreThan(left.map(({ sandboxId }) => sandboxId));
    await removeAll(left);
  });
});
