import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { FakeEngine } from '../../test/fakes/fake-engine.js';
import { startRequest } from '../../test/support/agent-server-client.js';
import { jsonText } from '@slipway/common/json-access.js';
import { until } from '../../../../test/support/until.js';
import type { EngineHost } from '../engine/agent-engine.js';
import { EventLog } from '../event-log.js';
import { newRecord } from './conversation-record.js';
import { ConversationRun, RunSlots } from './conversation-run.js';
import { ConversationState } from './conversation-state.js';
import { KeptOriginals, RecordFile } from './conversation-files.js';
import { NO_CREDENTIALS } from './credentials.js';
import type { FoundSkills } from '../skills/skill.js';
import { temporaryFolder } from '../../../../test/support/temporary-folder.js';

/** Saves only once its gate opens. */
class GatedFile extends RecordFile {
  gate: Promise<void> = Promise.resolve();

  override async save(): Promise<void> {
    await this.gate;
  }
}

class CondensingEngine extends FakeEngine {
  override async condense(host: EngineHost, signal: AbortSignal): Promise<boolean> {
    await once(signal, 'abort');
    await host.setStatus('paused');
    return false;
  }
}

describe('a run', () => {
  const folder = temporaryFolder();
  let slots: RunSlots;
  let log: EventLog<AgentEvent>;

  beforeEach(async () => {
    slots = new RunSlots(1);
    log = await EventLog.open(folder('events.jsonl'));
  });

  afterEach(async () => {
    await log.close();
  });

  const createRun = async (loadSkills = async (): Promise<FoundSkills> => ({ skills: [], problems: [] })) => {
    const recordFile = new GatedFile('');
    const state = new ConversationState({
      record: newRecord('c0ffee', folder(), startSchema.parse(startRequest())),
      recordFile,
      events: log,
      originals: await KeptOriginals.open(folder()),
      credentials: NO_CREDENTIALS,
      baseEnvironment: {},
      serverSecrets: [],
      ownSecret: () => null,
      onChange: () => undefined,
      loadSkills,
    });
    const working = Promise.withResolvers<string>();
    const engines = { failures: 0 };
    const createEngine = async () => {
      if (engines.failures-- > 0) {
        throw new Error('too many open files');
      }
      working.resolve('worked');
      return new CondensingEngine();
    };
    const run = new ConversationRun(state, createEngine, { slots, pauseGraceMs: 0 });
    return { state, recordFile, run, engines, working: working.promise };
  };

  // What a sandbox lacks at one time, memory or processes, it has again at another.
  it('starts its engine once more after that has failed', async () => {
    const { run, engines, working } = await createRun();
    engines.failures = 1;
    await expect(run.ask('Why?')).rejects.toThrow('too many open files');
    await run.ask('Why?');
    expect(await working).toBe('worked');
  });

  it('is not resumed for a condensation that the end of the server interrupts', async () => {
    const { state, run } = await createRun();
    await state.setStatus('finished');
    const condensing = run.condense();
    await until(() => state.record.status === 'running');
    await run.stop(0);
    expect(await condensing).toBe(false);
    expect(state.record).toMatchObject({ status: 'finished', wasRunning: false });
  });

  it('tells how it ended although its record cannot be written, as on a full disk', async () => {
    const { recordFile, run } = await createRun();
    recordFile.gate = Promise.reject(new Error('ENOSPC: no space left on device'));
    recordFile.gate.catch(() => undefined);
    await run.start();
    await until(() => !run.isActive);
    const told = log.entries.map((event) => jsonText(event, 'value'));
    expect(told.findLast((status) => status !== null)).toBe('error');
  });

  it('reads its skills once more after that has failed', async () => {
    let reads = 0;
    const { state } = await createRun(async () => {
      reads += 1;
      return reads === 1 ? Promise.reject(new Error('spawn EAGAIN')) : { skills: [], problems: [] };
    });
    await expect(state.openSkills()).rejects.toThrow('spawn EAGAIN');
    await Promise.all([state.openSkills(), state.openSkills()]);
    expect(reads).toBe(2);
  });

  it('gets no slot if it is told to stop while it is queued, however long the record takes to write', async () => {
    const { signal } = new AbortController();
    const release = await slots.acquire(signal);
    const { state, recordFile, run, working } = await createRun();
    await run.start();
    const written = Promise.withResolvers<void>();
    recordFile.gate = written.promise;
    const stopped = run.stop(0);
    release?.();
    const free = slots.acquire(signal).then(() => 'free');

    expect(await Promise.race([working, free])).toBe('free');
    written.resolve();
    await stopped;
    expect(state.record).toMatchObject({ status: 'paused', wasRunning: true });
  });
});
