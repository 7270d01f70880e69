import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EngineSettings } from '../../src/engine/agent-engine.js';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { inOrder, type Script, ScriptedLlm } from '../fakes/scripted-llm.js';

/** Our agent with a scripted model behind real HTTP, in a folder of its own. Pauses before retries are only noted. */
export class NativeAgent {
  /** Milliseconds. */
  readonly pauses: number[] = [];
  readonly folder: string;
  readonly llm: ScriptedLlm;

  /** Of the latest conversation. */
  private engine = new NativeEngine();

  private constructor(folder: string, llm: ScriptedLlm) {
    this.folder = folder;
    this.llm = llm;
  }

  static async start(): Promise<NativeAgent> {
    const folder = await mkdtemp(join(tmpdir(), 'field-'));
    return new NativeAgent(folder, await ScriptedLlm.start(inOrder()));
  }

  /** A new conversation with one message, run to its end. */
  async run(
    script: Script,
    { url = this.llm.url, ...changes }: Partial<EngineSettings> & { url?: string } = {},
  ): Promise<MemoryEngineHost> {
    this.llm.script = script;
    this.llm.requests.length = 0;
    this.pauses.length = 0;
    await this.engine.close();
    this.engine = new NativeEngine({
      wait: async (milliseconds) => {
        this.pauses.push(milliseconds);
      },
    });
    const host = new MemoryEngineHost(engineSettings(this.folder, url, changes));
    await host.say('Please do it.');
    await this.goOn(host);
    return host;
  }

  /** Another run of the same conversation. */
  async goOn(host: MemoryEngineHost): Promise<void> {
    await this.engine.run(host, new AbortController().signal);
  }

  /** A question beside the run. */
  async ask(host: MemoryEngineHost, question: string): Promise<string> {
    return await this.engine.ask(host, question, new AbortController().signal);
  }

  /** Ends what the latest conversation holds open. */
  async forget(): Promise<void> {
    await this.engine.close();
  }

  async close(): Promise<void> {
    await this.engine.close();
    await this.llm.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** The codes of what was told, in their order. */
export function codesOf(host: MemoryEngineHost): string[] {
  return host.ofKind('ConversationErrorEvent').map(({ code }) => code);
}

/** The texts of the agent's messages. */
export function answersOf(host: MemoryEngineHost): string[] {
  return host
    .ofKind('MessageEvent')
    .filter(({ source }) => source === 'agent')
    .map(({ llm_message }) =>
      llm_message.content.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    );
}
