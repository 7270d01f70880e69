import { afterAll, beforeAll, expect } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { EngineSettings } from '../../src/engine/agent-engine.js';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { engineSettings, MemoryEngineHost, NEVER_MS } from '../fakes/memory-engine-host.js';
import { type AnthropicTurn, ScriptedAnthropic } from '../fakes/scripted-anthropic.js';
import { inOrder, type Script, ScriptedLlm } from '../fakes/scripted-llm.js';

const MCP_SERVERS = 'packages/agent-server/test/fakes/mcp-servers';

/** A tool server whose schemas model APIs refuse, or with a number one that has so many usual tools. */
export function oddTools(...args: string[]) {
  return { command: process.execPath, args: [resolve(MCP_SERVERS, 'odd-tools-server.mjs'), ...args] };
}

export function scriptedProgram(behaviour: string, env: Record<string, string> = {}) {
  const args = [resolve(MCP_SERVERS, 'scripted-stdio-server.mjs')];
  return { command: process.execPath, args, env: { BEHAVIOUR: behaviour, ...env } };
}

/** Our agent with a scripted model behind real HTTP, in a folder of its own. Pauses before retries are only noted. */
export class NativeAgent {
  /** Milliseconds. */
  readonly pauses: number[] = [];
  folder = '';
  /** When a run begins without a tool server that is still starting. */
  slowAfterMs = NEVER_MS;
  private model: ScriptedLlm | null = null;
  /** Of the latest conversation. */
  engine = new NativeEngine();

  get llm(): ScriptedLlm {
    if (this.model === null) {
      throw new Error('the model is not there yet');
    }
    return this.model;
  }

  async start(): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'field-'));
    this.model = await ScriptedLlm.start(inOrder());
  }

  /** A new conversation with one message, run to its end. */
  async run(
    script: Script,
    { url = this.llm.url, ...changes }: Partial<EngineSettings> & { url?: string } = {},
  ): Promise<MemoryEngineHost> {
    this.llm.script = script;
    this.llm.requests.length = 0;
    this.llm.refusals.length = 0;
    return await this.begin(engineSettings(this.folder, url, changes));
  }

  /** The same with Anthropic's own API; the last answer is given for ever. */
  async runAtAnthropic(
    answers: readonly AnthropicTurn[],
    { llm, ...changes }: Partial<Omit<EngineSettings, 'llm'>> & { llm?: Partial<EngineSettings['llm']> } = {},
    more: string[] = [],
  ): Promise<{ host: MemoryEngineHost; claude: ScriptedAnthropic }> {
    const usage = { input: 1, output: 1 };
    const claude = await ScriptedAnthropic.start(answers.map((answer) => ({ usage, ...answer })));
    const model = { model: 'anthropic/claude-sonnet-4-5', apiKey: 'k', baseUrl: null, ...llm };
    const settings = engineSettings(this.folder, '', { ...changes, llm: model });
    const host = await this.begin(settings, claude.url);
    for (const text of more) {
      await host.say(text);
      await this.goOn(host);
    }
    await this.engine.close();
    await claude.close();
    return { host, claude };
  }

  /** Another run of the same conversation, with another message if one is given. */
  async goOn(host: MemoryEngineHost, text?: string): Promise<void> {
    if (text !== undefined) {
      await host.say(text);
    }
    await this.engine.run(host, new AbortController().signal);
  }

  async ask(host: MemoryEngineHost, question: string): Promise<string> {
    return await this.engine.ask(host, question, new AbortController().signal);
  }

  /** Ends what the latest conversation holds open. */
  async forget(): Promise<void> {
    await this.engine.close();
  }

  async close(): Promise<void> {
    await this.engine.close();
    await this.model?.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  private async begin(settings: EngineSettings, anthropicUrl?: string): Promise<MemoryEngineHost> {
    this.pauses.length = 0;
    await this.engine.close();
    this.engine = new NativeEngine({
      ...(anthropicUrl !== undefined && { anthropicUrl }),
      mcpSlowAfterMs: this.slowAfterMs,
      wait: async (milliseconds) => {
        this.pauses.push(milliseconds);
      },
    });
    const host = new MemoryEngineHost(settings);
    await host.say('Please do it.');
    await this.goOn(host);
    return host;
  }
}

export function nativeAgent(): NativeAgent {
  const agent = new NativeAgent();
  beforeAll(async () => await agent.start());
  afterAll(async () => await agent.close());
  return agent;
}

/** A message of a user with images alone, or with words before them. */
export async function showImages(host: MemoryEngineHost, image_urls: string[], text?: string): Promise<void> {
  const words = text === undefined ? [] : [{ type: 'text' as const, text }];
  await host.say([...words, { type: 'image', image_urls }]);
}

/** The codes of what was told, in their order. */
export function codesOf(host: MemoryEngineHost): string[] {
  return host.ofKind('ConversationErrorEvent').map(({ code }) => code);
}

/** That this alone was told, and how the run ended. */
export function expectTold(
  host: MemoryEngineHost,
  code: string,
  detail: string | RegExp = '',
  status: MemoryEngineHost['status'] = 'error',
): void {
  const text: unknown =
    typeof detail === 'string' ? expect.stringContaining(detail) : expect.stringMatching(detail);
  expect([host.status, host.ofKind('ConversationErrorEvent')]).toMatchObject([
    status,
    [{ code, detail: text }],
  ]);
}

/** That the work was done, and nothing had to be told. */
export function expectDone(host: MemoryEngineHost): void {
  expect([host.status, codesOf(host)]).toEqual(['finished', []]);
}

export function detailsOf(host: MemoryEngineHost): string[] {
  return host.ofKind('ConversationErrorEvent').map(({ detail }) => detail);
}

/** What tools have returned, or why they failed. */
export function resultsOf(host: MemoryEngineHost): unknown[] {
  return host.log.flatMap((entry): unknown[] =>
    entry.kind === 'ObservationEvent'
      ? [entry.observation.content]
      : entry.kind === 'AgentErrorEvent'
        ? [entry.error]
        : [],
  );
}

export function answersOf(host: MemoryEngineHost): string[] {
  return host
    .ofKind('MessageEvent')
    .filter(({ source }) => source === 'agent')
    .map(({ llm_message }) =>
      llm_message.content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    );
}
