import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { fails, refuses, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { until } from '../../../../test/support/until.js';
import { codesOf, nativeAgent } from './native-agent.js';

const agent = nativeAgent();

// RooCodeInc/Roo-Code#2118, vercel/ai#18627, dimetron/pi-go#177: the time to wait stands only in the body.
describe('a provider that names when to try again', () => {
  const google = {
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      details: [{ '@type': 'RetryInfo', retryDelay: '45.5s' }],
    },
  };
  it.each([
    [refuses(429, [google]), 45_500],
    [refuses(503, { error: { message: 'Overloaded, retry after 20 seconds' } }), 20_000],
    [fails(529, 'overloaded', { 'retry-after-ms': '1500' }), 1_500],
  ])('is asked again then: %j', async (refusal, pause) => {
    const host = await agent.run(inOrder(refusal, say('done')));
    expect(host.status).toBe('finished');
    expect(agent.pauses).toEqual([pause]);
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      { source: 'environment', code: 'LlmRetried', detail: expect.stringContaining(`in ${pause / 1000} s`) },
    ]);
  });
});

describe('a provider that stays busy', () => {
  it.each([
    ['says nothing', fails(429, 'slow')],
    ['names short pauses', fails(429, 'slow', { 'retry-after': '1' })],
    ['fails', fails(502, 'bad gateway')],
  ])('is asked at least five times more, and for more than a minute: %s', async (_, refusal) => {
    const host = await agent.run(inOrder(refusal));
    expect(host.status).toBe('error');
    expect(agent.pauses.length).toBeGreaterThanOrEqual(5);
    const total = agent.pauses.reduce((sum, pause) => sum + pause, 0);
    expect(total).toBeGreaterThanOrEqual(60_000);
    expect(total).toBeLessThanOrEqual(100_000);
    expect(codesOf(host)).toEqual([
      ...agent.pauses.map(() => 'LlmRetried'),
      expect.stringMatching(/^Llm(Rate|Una)/),
    ]);
  });

  it('is not asked again when the account is empty', async () => {
    const host = await agent.run(
      inOrder(refuses(429, { error: { code: 'insufficient_quota', message: 'pay' } })),
    );
    expect(codesOf(host)).toEqual(['LlmQuotaExceeded']);
    expect(agent.llm.requests).toHaveLength(1);
  });

  it('is not waited for once the user pauses', async () => {
    const engine = new NativeEngine({
      wait: async (milliseconds, signal) => {
        await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
      },
    });
    agent.llm.script = inOrder(fails(429, 'slow', { 'retry-after': '120' }));
    const host = new MemoryEngineHost(engineSettings(agent.folder, agent.llm.url));
    await host.say('Please do it.');
    const ended = engine.run(host, new AbortController().signal);
    await until(() => codesOf(host).includes('LlmRetried'));
    host.pause = true;
    await ended;
    expect(host.status).toBe('paused');
    agent.llm.script = inOrder(say('done'));
    host.pause = false;
    await engine.run(host, new AbortController().signal);
    expect(host.status).toBe('finished');
    await engine.close();
  });
});
