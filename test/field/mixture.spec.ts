import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { AcpEngine } from '../../packages/agent-server/src/engine/acp/acp.engine.js';
import type { AgentEngine, EngineSettings } from '../../packages/agent-server/src/engine/agent-engine.js';
import { NativeEngine } from '../../packages/agent-server/src/engine/native/native.engine.js';
import { toolEnvironment } from '../../packages/agent-server/src/tool-view.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import {
  engineSettings,
  MemoryEngineHost,
  scriptedAgent,
} from '../../packages/agent-server/test/fakes/memory-engine-host.js';
import {
  compatibleRefusal,
  googleRefusal,
  mistralRefusal,
} from '../../packages/agent-server/test/fakes/model-limits.js';
import {
  ODD_ANSWERS,
  ODD_CLAUDES,
  ODD_IMAGES,
  ODD_MEMBERS,
  ODD_MESSAGES,
  ODD_TURNS,
} from '../../packages/agent-server/test/fakes/odd-answers.js';
import { ScriptedAnthropic } from '../../packages/agent-server/test/fakes/scripted-anthropic.js';
import { say } from '../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../../packages/agent-server/test/fakes/scripted-llm.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { until } from '../support/until.js';
import { answersOf, oddTools } from '../../packages/agent-server/test/field/native-agent.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { useTestApp } from '../support/use-test-app.js';

// Whatever came before, the next message is answered: one conversation in each wire format, with odd answers at random.

const RUNS = Number(process.env['FIELD_MIXTURES'] ?? 2);
const SEED = Number(process.env['FIELD_SEED'] ?? 27);
const TIMEOUT_MS = 300_000 + RUNS * 5_000;
const ROUNDS = 5;
const MODELS = ['openai/gpt', 'openai/mistral-large', 'openai/gemini-3'] as const;

/** Chooses in the same way for the same seed (mulberry32). */
class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed;
  }

  below(limit: number): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  one<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }
}

/** Each run by its seed, so that the report of a failure names it. */
async function eachRun(run: (dice: Dice) => Promise<void>): Promise<void> {
  for (let seed = SEED; seed < SEED + RUNS; seed += 1) {
    try {
      await run(new Dice(seed));
    } catch (error) {
      throw new Error(`FIELD_SEED=${seed}`, { cause: error });
    }
  }
}

async function sayOddly(host: MemoryEngineHost, dice: Dice): Promise<void> {
  const images = dice.below(4) === 0 ? [{ type: 'image' as const, image_urls: [dice.one(ODD_IMAGES)] }] : [];
  await host.say([{ type: 'text', text: dice.one(ODD_MESSAGES) }, ...images]);
}

/** Several messages, each answered oddly up to four times before it is answered well; then one that has to be answered. */
async function talk(
  engine: AgentEngine,
  settings: EngineSettings,
  { dice, odd }: { dice: Dice; odd: { left: number } },
): Promise<MemoryEngineHost> {
  const host = new MemoryEngineHost(settings);
  const { signal } = new AbortController();
  for (let round = 0; round < ROUNDS; round += 1) {
    if (settings.llm.baseUrl !== null) {
      host.settings = { ...settings, llm: { ...settings.llm, model: dice.one(MODELS) } };
    }
    odd.left = dice.below(5);
    await sayOddly(host, dice);
    await engine.run(host, signal);
  }
  odd.left = 0;
  await host.say('Are you still there?');
  await engine.run(host, signal);
  await engine.close();
  return host;
}

function expectAlive(host: MemoryEngineHost, answer: string): void {
  const last = host.log.slice(-3).map((event) => JSON.stringify(event).slice(0, 500));
  expect({ status: host.status, last, answer: answersOf(host).at(-1) }).toEqual({
    status: 'finished',
    last,
    answer,
  });
}

const folder = temporaryFolder();
const tools = { odd: oddTools() };
const wait = async (): Promise<void> => undefined;

describe('a conversation survives', () => {
  it(
    'what servers like OpenAI answer',
    async () => {
      await eachRun(async (dice) => {
        const odd = { left: 0 };
        const llm = await ScriptedLlm.start(() => {
          odd.left -= 1;
          return odd.left < 0 ? say('I am.') : dice.one(ODD_ANSWERS);
        });
        const settings = engineSettings(folder(), llm.url, { mcpConfig: tools });
        const host = await talk(new NativeEngine({ wait }), settings, { dice, odd });
        await llm.close();
        const refusals = llm.requests.flatMap(({ model, body }) => [
          compatibleRefusal(body),
          model.startsWith('mistral') ? mistralRefusal(body) : null,
          model.startsWith('gemini') ? googleRefusal(body) : null,
        ]);
        expect([...llm.refusals, ...refusals.filter((refusal) => refusal !== null)]).toEqual([]);
        expectAlive(host, 'I am.');
      });
    },
    TIMEOUT_MS,
  );

  it(
    'what Anthropic answers',
    async () => {
      await eachRun(async (dice) => {
        const odd = { left: 0 };
        const claude = await ScriptedAnthropic.start(() => {
          odd.left -= 1;
          return odd.left < 0 ? { text: 'I am.', usage: { input: 1, output: 1 } } : dice.one(ODD_CLAUDES);
        });
        const llm = { model: 'anthropic/claude', apiKey: 'key', baseUrl: null };
        const settings = engineSettings(folder(), '', { llm, mcpConfig: tools });
        const engine = new NativeEngine({ anthropicUrl: claude.url, wait });
        const host = await talk(engine, settings, { dice, odd });
        await claude.close();
        expect(claude.refusals).toEqual([]);
        expectAlive(host, 'I am.');
      });
    },
    TIMEOUT_MS,
  );

  it(
    'what agents of the Agent Client Protocol do',
    async () => {
      await eachRun(async (dice) => {
        const host = new MemoryEngineHost(engineSettings(folder(), '', { acp: scriptedAgent(folder()) }));
        const engine = new AcpEngine({ environment: toolEnvironment(process.env), wrapper: [] });
        const { signal } = new AbortController();
        for (let round = 0; round < ROUNDS; round += 1) {
          await host.say(dice.one(ODD_TURNS));
          await engine.run(host, signal);
        }
        await host.say('hello');
        await engine.run(host, signal);
        await engine.close();
        expectAlive(host, 'Hello, world.');
      });
    },
    TIMEOUT_MS,
  );
});

describe('the log of a conversation survives', () => {
  const service = useTestApp();

  /** Ids of the events in the service, page by page: large ones end a page before its limit. */
  async function stored(id: string): Promise<unknown[]> {
    const ids: unknown[] = [];
    for (let next: string | null = ''; next !== null;) {
      const address = `${service.url}/api/v1/conversation/${id}/events/search?limit=100${next}`;
      const response: Response = await fetch(address, { headers: service.user.headers });
      const page: unknown = await response.json();
      ids.push(...jsonList(page, 'items').map((item) => jsonText(item, 'id')));
      const nextId = jsonText(page, 'next_page_id');
      next = nextId === null ? null : `&page_id=${nextId}`;
    }
    return ids;
  }

  function reportOddly(agent: FakeConversationServer, id: string, dice: Dice): void {
    for (let count = dice.below(5); count >= 0; count -= 1) {
      agent.append(id, dice.one(ODD_MEMBERS));
    }
    agent.sendFrame(id, () => dice.one([null, 7, 'text', [], { kind: 'x' }, { after: 'x', event: null }]));
    if (dice.below(3) === 0) {
      agent.dropSockets();
    }
    if (dice.below(5) === 0) {
      agent.faults.push(dice.one<'reset' | number>(['reset', 500]));
    }
  }

  it(
    'what the stock agent server reports',
    async () => {
      await eachRun(async (dice) => {
        const agent = await FakeConversationServer.start();
        try {
          agent.linksFrames = dice.below(2) === 0;
          const id = randomUUID();
          agent.open(id);
          const sandbox = await insertRunningSandbox(service, service.user.id, agent);
          await openLog(service, service.user.id, sandbox, id);
          for (let round = 0; round < ROUNDS; round += 1) {
            reportOddly(agent, id, dice);
          }
          const last = agent.append(id);
          await until(async () => (await stored(id)).includes(last));
          expect((await stored(id)).at(-1)).toBe(last);
        } finally {
          await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
          await agent.close();
        }
      });
    },
    TIMEOUT_MS,
  );
});
