import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FakeEngine } from '../../../test/fakes/fake-engine.js';
import { startRequest } from '../../../test/support/agent-server-client.js';
import { EventLog, isAgentEvent } from '../event-log.js';
import { newRecord, RecordFile } from './conversation-record.js';
import { ConversationRun, RunPlaces } from './conversation-run.js';
import { ConversationState } from './conversation-state.js';
import { NO_CREDENTIALS } from './credentials.js';
import { startSchema } from './schemas.js';

/** Writes when it is let. */
class GatedFile extends RecordFile {
  gate: Promise<void> = Promise.resolve();

  override async save(): Promise<void> {
    await this.gate;
  }
}

describe('a run', () => {
  let folder: string;
  let places: RunPlaces;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'run-'));
    places = new RunPlaces(1);
  });

  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  const make = async () => {
    const recordFile = new GatedFile('');
    const log = await EventLog.open(path.join(folder, 'events.jsonl'), isAgentEvent);
    const state = new ConversationState({
      record: newRecord('c0ffee', folder, startSchema.parse(startRequest())),
      recordFile,
      events: log,
      credentials: NO_CREDENTIALS,
      baseEnvironment: {},
      serverSecrets: [],
      changed: () => undefined,
    });
    const working = Promise.withResolvers<string>();
    const createEngine = async () => {
      working.resolve('worked');
      return new FakeEngine();
    };
    const run = new ConversationRun(state, createEngine, places);
    return { state, recordFile, run, working: working.promise };
  };

  it('that waits for its place gets none any more once it shall stop, however long that takes to write', async () => {
    const { signal } = new AbortController();
    const giveBack = await places.take(signal);
    const { state, recordFile, run, working } = await make();
    await run.start();
    const written = Promise.withResolvers<void>();
    recordFile.gate = written.promise;
    const stopped = run.stop(0);
    giveBack?.();
    const free = places.take(signal).then(() => 'free');

    expect(await Promise.race([working, free])).toBe('free');
    written.resolve();
    await stopped;
    expect(state.record).toMatchObject({ status: 'paused', wasRunning: true });
  });
});

const never = new AbortController().signal;

it('lets so many in, the others in the order they came', async () => {
  const places = new RunPlaces(2);
  const order: string[] = [];
  const [first] = await Promise.all([places.take(never), places.take(never)]);
  const enter = async (name: string) => {
    const giveBack = await places.take(never);
    order.push(name);
    return giveBack;
  };
  const third = enter('third');
  const fourth = enter('fourth');
  expect(order).toEqual([]);
  first?.();
  // Comes after the place was given back, but before whoever waited longer has heard of it.
  const fifth = enter('fifth');
  (await third)?.();
  (await fourth)?.();
  await fifth;
  expect(order).toEqual(['third', 'fourth', 'fifth']);
});

it('forgets those who leave the queue', async () => {
  const places = new RunPlaces(1);
  const giveBack = await places.take(never);
  const leaving = new AbortController();
  const left = places.take(leaving.signal);
  const next = places.take(never);
  leaving.abort();
  expect(await left).toBeNull();
  giveBack?.();
  expect(await next).not.toBeNull();
  expect(await places.take(AbortSignal.abort())).toBeNull();
});
