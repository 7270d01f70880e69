import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { AcpEngine } from '../../src/engine/acp/acp.engine.js';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { NEVER_MS } from '../fakes/memory-engine-host.js';
import { inOrder, type Script, ScriptedLlm } from '../fakes/scripted-llm.js';
import { CREDENTIALS, startWithModelAt } from '../support/agent-server-client.js';
import type { PlainOptions } from '../support/listen-assigned.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

/** An agent server whose conversations our agent has, with a scripted model, or one of others. */
export class NativeServer {
  private constructor(
    readonly server: TestAgentServer,
    readonly llm: ScriptedLlm,
  ) {}

  static async start(options: Partial<PlainOptions>): Promise<NativeServer> {
    const server = await startTestAgentServer({
      ...options,
      createEngine: async ({ kind }) =>
        kind === 'acp'
          ? new AcpEngine({ environment: toolEnvironment(process.env), wrapper: [] })
          : new NativeEngine({ mcpSlowAfterMs: NEVER_MS }),
    });
    return new NativeServer(server, await ScriptedLlm.start(inOrder()));
  }

  async begin(script: Script, members: Record<string, unknown> = {}): Promise<string> {
    this.llm.script = script;
    this.llm.requests.length = 0;
    return await this.server.client.start({ ...startWithModelAt(this.llm.url), ...members });
  }

  async talk(id: string, text = 'Go on.'): Promise<void> {
    await this.server.client.talk(id, text);
  }

  /** Gives a conversation a model, as the service does after a restart. */
  async moveTo(id: string, url = this.llm.url, members: Record<string, unknown> = {}): Promise<void> {
    const credentials = { ...CREDENTIALS, llm_base_url: url, ...members };
    await this.server.client.act(id, 'credentials', credentials);
  }

  async close(): Promise<void> {
    await this.server.stop();
    await this.llm.close();
  }
}

export function nativeServer(options: Partial<PlainOptions> = {}): () => NativeServer {
  let native: NativeServer | null = null;
  beforeAll(async () => {
    native = await NativeServer.start(options);
  });
  afterEach(() => {
    if (native !== null) {
      native.llm.refusals.length = 0;
    }
  });
  afterAll(async () => await native?.close());
  return () => {
    if (native === null) {
      throw new Error('the server is not there yet');
    }
    return native;
  };
}
