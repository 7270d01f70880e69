import { randomBytes } from 'node:crypto';
import { jsonNumber, jsonText } from '@slipway/common/json-access.js';
import {
  type ApiAnswer,
  type ApiClient,
  type Json,
  type Started,
  text,
} from '../../system/journeys/support/api-client.js';
import { until } from '../../support/until.js';
import { message, shell } from '../../system/journeys/support/script.js';

/** What a command in a sandbox came to; its output is both streams. */
export interface CommandResult {
  exitCode: number;
  output: string;
}

/** A command that goes on while the attack does other things. */
export interface BackgroundCommand {
  /** What it has printed so far. */
  output(): Promise<string>;
  /** Ends it, and what it has started. */
  stop(): Promise<void>;
}

/** The value of the custom secret `DEPLOY_TOKEN` of a tenant. */
export function customSecretOf(name: string): string {
  return `deploy-token-of-${name.toLowerCase()}-60417`;
}

/** Runs a JavaScript file with the node of the image, or with that of the service, which process sandboxes see. */
const RUN_NODE = `N=$(command -v node || echo '${process.execPath}'); "$N"`;

/** A user with an API key, a sandbox and a conversation in it, whose model is a script. */
export class Tenant {
  private constructor(
    readonly name: string,
    /** Speaks to the service with the tenant's API key. */
    readonly client: ApiClient,
    private current: Started | null,
  ) {}

  static async create(name: string, client: ApiClient, withSandbox: boolean): Promise<Tenant> {
    await client.post('/api/secrets', { name: 'DEPLOY_TOKEN', value: customSecretOf(name) });
    return new Tenant(name, client, withSandbox ? await client.started({}) : null);
  }

  get sandboxId(): string {
    return this.started.sandboxId;
  }

  get conversationId(): string {
    return this.started.id;
  }

  private get started(): Started {
    if (this.current === null) {
      throw new Error(`${this.name} was to have no sandbox`);
    }
    return this.current;
  }

  async sandbox(): Promise<Json> {
    return this.client.sandbox(this.sandboxId);
  }

  /** Key of the sandbox as it runs now. */
  async sessionKey(): Promise<string> {
    return text(await this.sandbox(), 'session_api_key');
  }

  /** Address of a port of the sandbox (`WORKER_1`), with its token, as browsers use it. */
  async portUrl(name: string): Promise<string> {
    const urls = Object(await this.sandbox()).exposed_urls;
    const found = Array.isArray(urls) ? urls.find((one: Json) => jsonText(one, 'name') === name) : null;
    return text(found, 'url');
  }

  /** Runs a command in the sandbox, where its agent's tools run. */
  async sh(command: string, timeoutSeconds = 30): Promise<CommandResult> {
    const answer = await this.client.agentServer(this.sandboxId, 'POST', '/api/bash/execute_bash_command', {
      command,
      timeout: timeoutSeconds,
    });
    const output = `${jsonText(answer, 'stdout') ?? ''}${jsonText(answer, 'stderr') ?? ''}`;
    return { exitCode: jsonNumber(answer, 'exit_code') ?? -1, output };
  }

  /** Starts a command in the sandbox and leaves it running. */
  async inBackground(command: string, timeoutSeconds = 300): Promise<BackgroundCommand> {
    // Commands do not see each other's processes, but each other's files.
    const name = `background-${randomBytes(6).toString('hex')}`;
    const [output, stop, ended] = ['output', 'stop', 'ended'].map((suffix) => `"$HOME"/${name}.${suffix}`);
    await this.client.agentServer(this.sandboxId, 'POST', '/api/bash/start_bash_command', {
      command: [
        `setsid sh -c ${quoted([command])} > ${output} 2>&1 < /dev/null & P=$!`,
        `while kill -0 $P 2> /dev/null && [ ! -e ${stop} ]; do sleep 0.05; done`,
        `kill -KILL -- -$P 2> /dev/null; touch ${ended}`,
      ].join('\n'),
      timeout: timeoutSeconds,
    });
    const read = async () => (await this.sh(`cat ${output}`)).output;
    await until(async () => (await this.sh(`test -e ${output}`)).exitCode === 0);
    return {
      output: read,
      stop: async () => {
        await this.sh(`touch ${stop}; while [ ! -e ${ended} ]; do sleep 0.05; done`);
      },
    };
  }

  /** Runs an ES module in the sandbox; `process.argv` from 2 on are the arguments. */
  async node(source: string, args: string[] = [], timeoutSeconds = 30): Promise<CommandResult> {
    return this.sh(nodeCommand(source, args), timeoutSeconds);
  }

  /**
   * Runs an ES module in the sandbox that prints JSON.
   *
   * @throws Error with what it printed when that is none
   */
  async nodeJson(source: string, args: string[] = [], timeoutSeconds = 30): Promise<unknown> {
    const { exitCode, output } = await this.node(source, args, timeoutSeconds);
    try {
      return JSON.parse(output.trim().split('\n').at(-1) ?? '');
    } catch (error) {
      throw new Error(`the program ended with ${exitCode}: ${output.slice(-500)}`, { cause: error });
    }
  }

  /** Starts an ES module in the sandbox and leaves it running. */
  async nodeInBackground(source: string, args: string[] = []): Promise<BackgroundCommand> {
    return this.inBackground(nodeCommand(source, args));
  }

  /** Runs a Perl program in the sandbox: it can make any system call. */
  async perl(source: string, args: string[] = [], timeoutSeconds = 30): Promise<CommandResult> {
    return this.sh(
      withFile('pl', source, (file) => `perl ${file} ${quoted(args)}`),
      timeoutSeconds,
    );
  }

  /** Has the agent run a command in its terminal, in a conversation of its own; what its observations say. */
  async throughAgent(command: string): Promise<string> {
    const { id } = await this.client.started({ sandbox_id: this.sandboxId, ...message(shell(command)) });
    await this.client.conversationIn(id, 'finished', 'error');
    return JSON.stringify(await this.client.eventsOfKind(id, 'ObservationEvent'));
  }

  /** A request to the service with the tenant's API key, whatever it is answered. */
  async send(
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer> {
    return this.client.send(method, path, body, headers);
  }

  /** A request to the tenant's agent server through the service, whatever it is answered. */
  async agentServer(method: string, path: string, body?: object): Promise<ApiAnswer> {
    const key = await this.sessionKey();
    const address = `/api/v1/sandboxes/${this.sandboxId}/agent-server${path}`;
    return this.send(method, address, body, { 'X-Session-API-Key': key });
  }

  async pause(): Promise<void> {
    await this.client.post(`/api/v1/sandboxes/${this.sandboxId}/pause`);
    await this.client.sandboxIn(this.sandboxId, 'PAUSED');
  }

  async resume(): Promise<void> {
    await this.client.post(`/api/v1/sandboxes/${this.sandboxId}/resume`);
    await this.client.sandboxIn(this.sandboxId, 'RUNNING');
  }

  /** Whether the sandbox runs and does what it is told. */
  async isWell(): Promise<boolean> {
    const sandbox = await this.sandbox();
    if (jsonText(sandbox, 'status') !== 'RUNNING') {
      return false;
    }
    const answer = await this.agentServer('POST', '/api/bash/execute_bash_command', {
      command: 'echo well',
      timeout: 60,
    });
    return answer.status === 200 && jsonText(answer.body, 'stdout')?.trim() === 'well';
  }

  /** Another sandbox with another conversation; the old one is removed. */
  async renew(): Promise<void> {
    await this.send('DELETE', `/api/v1/sandboxes/${this.sandboxId}`);
    this.current = await this.client.started({});
  }
}

function nodeCommand(source: string, args: string[]): string {
  return withFile('mjs', source, (file) => `${RUN_NODE} ${file} ${quoted(args)}`);
}

function withFile(suffix: string, source: string, command: (file: string) => string): string {
  const encoded = Buffer.from(source).toString('base64');
  return `F=$(mktemp -d)/attack.${suffix}; printf %s ${encoded} | base64 -d > "$F"; ${command('"$F"')}`;
}

function quoted(args: string[]): string {
  return args.map((one) => `'${one.replaceAll("'", String.raw`'\''`)}'`).join(' ');
}
