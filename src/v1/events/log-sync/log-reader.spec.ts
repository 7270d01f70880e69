import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { FakeConversationServer } from '../../../../test/fakes/fake-conversation-server.js';
import { until } from '../../../../test/support/until.js';
import { LogReader } from './log-reader.js';

const PROGRESS = { eventCount: 1, lastEventId: 'last', bytes: 1, isFull: false, since: new Date(0) };

it('stops only once its reading is over, also the one that a frame from elsewhere in the log began', async () => {
  const agent = await FakeConversationServer.start();
  const id = randomUUID();
  let gate = Promise.resolve();
  let stored = 0;
  let reading = 0;
  const follower = new LogReader({
    conversationId: id,
    sync: {
      progress: async () => PROGRESS,
      storeNext: async () => {
        stored += 1;
        return PROGRESS;
      },
      syncEvents: async () => {
        reading += 1;
        await gate;
        reading -= 1;
        return 'unchanged';
      },
      syncState: async () => true,
    },
    findTarget: async () => ({ address: agent.address, sessionKey: agent.key }),
    onRemoved: () => undefined,
  });
  const tell = (after: string): void => {
    const event = { id: randomUUID(), kind: 'PauseEvent', timestamp: '2026-11-22T12:00:00' };
    agent.sendFrame(id, () => ({ after, event }));
  };
  try {
    follower.requestSync();
    await until(() => agent.watchers === 1 && reading === 0);
    tell('last');
    await until(() => stored === 1);
    const held = Promise.withResolvers<void>();
    gate = held.promise;
    tell('another');
    await until(() => reading === 1);

    const stopped = follower.stop().then(() => 'stopped');

    expect(await Promise.race([stopped, turn('reading')])).toBe('reading');
    held.resolve();
    expect(await stopped).toBe('stopped');
  } finally {
    await agent.close();
  }
});
