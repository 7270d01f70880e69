import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { AgentEngine, EngineSettings } from '../src/engine/agent-engine.js';
import { openAcpCalls, openCalls } from '../src/engine/agent-events.js';
import type { MemoryEngineHost } from './fakes/memory-engine-host.js';
import { until } from '../../../test/support/until.js';

/** What an engine's agent does with a message of each kind. */
export interface EngineHarness {
  /** Another one over the same log, as after a restart. */
  createEngine: () => AgentEngine;
  createHost: (changes: Partial<EngineSettings>) => MemoryEngineHost;
  /** Messages: answer with words, call a tool that says `ran` and then answer, call a tool that does not end, call tools without end. */
  messages: Record<'answer' | 'call' | 'hang' | 'endless', string>;
  close: () => Promise<void>;
}

/** What every engine does, whichever agent it runs. */
export function describeAgentEngine(name: string, start: () => Promise<EngineHarness>): void {
  const never = new AbortController().signal;

  describe(`${name} as an agent engine`, () => {
    let harness: EngineHarness;
    let engine: AgentEngine;

    beforeEach(async () => {
      harness = await start();
      engine = harness.createEngine();
    });

    afterEach(async () => {
      await engine.close();
      await harness.close();
    });

    async function run(
      kind: keyof EngineHarness['messages'],
      changes: Partial<EngineSettings> = {},
    ): Promise<MemoryEngineHost> {
      const host = harness.createHost(changes);
      await host.say(harness.messages[kind]);
      await engine.run(host, never);
      return host;
    }

    const results = (host: MemoryEngineHost): string =>
      JSON.stringify([...host.ofKind('ObservationEvent'), ...host.ofKind('ACPToolCallEvent')]);

    function expectNothingOpen(host: MemoryEngineHost): void {
      expect([...openCalls(host.log), ...openAcpCalls(host.log)]).toEqual([]);
    }

    it('answers, and finishes', async () => {
      const host = await run('answer');
      expect(host.status).toBe('finished');
      expect(host.log.at(-1)).toMatchObject({ kind: 'MessageEvent', source: 'agent' });
      expect(host.ofKind('SystemPromptEvent')).toHaveLength(1);
    });

    it('calls tools at once where nothing is to be confirmed, and closes every call', async () => {
      const host = await run('call');
      expect(host.statuses).toEqual(['finished']);
      expectNothingOpen(host);
    });

    it('waits for the user, and goes on when the call is accepted', async () => {
      const host = await run('call', { confirmationPolicy: 'always' });
      expect(host.status).toBe('waiting_for_confirmation');
      expect([...openCalls(host.log), ...openAcpCalls(host.log)]).toHaveLength(1);
      expect(results(host)).not.toMatch(/\bran\b/);
      await engine.confirm(host, null, never);
      expect(host.status).toBe('finished');
      expect(results(host)).toMatch(/\bran\b/);
      expectNothingOpen(host);
    });

    it('is idle when the call is refused, and says why it was', async () => {
      const host = await run('call', { confirmationPolicy: 'always' });
      await engine.confirm(host, 'not that one', never);
      expect(host.status).toBe('idle');
      expectNothingOpen(host);
      expect(JSON.stringify(host.log)).toContain('not that one');
    });

    it('pauses when it is aborted, leaves no call open, and goes on with the next message', async () => {
      const host = harness.createHost({});
      const aborter = new AbortController();
      await host.say(harness.messages.hang);
      const running = engine.run(host, aborter.signal);
      await until(() => openCalls(host.log).length + openAcpCalls(host.log).length > 0);
      aborter.abort();
      await running;
      expect(host.status).toBe('paused');
      expectNothingOpen(host);
      await host.say(harness.messages.answer);
      await engine.run(host, never);
      expect(host.status).toBe('finished');
    });

    it('stops at the limit of steps', async () => {
      const host = await run('endless', { maxIterations: 3, stuckDetection: false });
      expect(host.status).toBe('error');
      expect(host.ofKind('ConversationErrorEvent').map(({ code }) => code)).toEqual(['MaxIterationsReached']);
      expect(host.totals().iterations).toBeGreaterThanOrEqual(3);
      expectNothingOpen(host);
    });

    it('goes on with a log that another engine has begun', async () => {
      const host = await run('answer');
      await engine.close();
      engine = harness.createEngine();
      await host.say(harness.messages.call);
      await engine.run(host, never);
      expect(host.status).toBe('finished');
      expect(host.ofKind('ConversationErrorEvent')).toEqual([]);
      expectNothingOpen(host);
    });

    it('prepares what can be started, again and again', async () => {
      const host = harness.createHost({});
      await engine.prepare(host);
      await engine.prepare(host);
      expect(host.statuses).toEqual([]);
    });
  });
}
