import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { FormData, type Response } from 'undici';
import type { SandboxBackend, SandboxLaunch } from '@slipway/sandboxes/sandbox-backend.js';
import { sandboxFetch } from './sandbox-fetch.js';
import { until } from './until.js';

/** Output of a command that ran in a sandbox. */
export interface CommandOutput {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Talks to the agent server of a sandbox. */
export class SandboxClient {
  readonly address: string;
  readonly #sessionKey: string;

  constructor(address: string, sessionKey: string) {
    this.address = address;
    this.#sessionKey = sessionKey;
  }

  /** Whether the agent server answers and has its session key. */
  async isAlive(): Promise<boolean> {
    return (await this.liveness()) === 'assigned';
  }

  /** Whether the agent server has its session key; null when it does not answer. */
  async liveness(): Promise<'assigned' | 'unassigned' | null> {
    try {
      const response = await sandboxFetch(this.address, '/alive');
      const isUnassigned = jsonAt(await response.json(), 'assigned') === false;
      return response.ok ? (isUnassigned ? 'unassigned' : 'assigned') : null;
    } catch {
      return null;
    }
  }

  /** @param body sent as JSON, or as a form; undefined: none */
  async send(method: string, path: string, body?: object): Promise<Response> {
    const key = { 'X-Session-API-Key': this.#sessionKey };
    const json = { ...key, 'Content-Type': 'application/json' };
    return await sandboxFetch(this.address, path, {
      method,
      ...(body === undefined || body instanceof FormData
        ? { headers: key, ...(body && { body }) }
        : { headers: json, body: JSON.stringify(body) }),
    });
  }

  /** @returns the status */
  async upload(file: string, text: string): Promise<number> {
    const form = new FormData();
    form.append('file', new Blob([text]), 'file');
    return (await this.send('POST', `/api/file/upload?path=${encodeURIComponent(file)}`, form)).status;
  }

  /** Returns null if there is no such file. */
  async download(file: string): Promise<string | null> {
    const response = await this.send('GET', `/api/file/download?path=${encodeURIComponent(file)}`);
    return response.ok ? await response.text() : null;
  }

  /**
   * Runs a command as an agent's tool does and waits for its end.
   *
   * @param cwd the workspace, unless it is given
   */
  async run(command: string, cwd?: string): Promise<CommandOutput> {
    const response = await this.send('POST', '/api/bash/execute_bash_command', { command, cwd, timeout: 60 });
    const body: unknown = await response.json();
    const exitCode = jsonAt(body, 'exit_code');
    if (typeof exitCode !== 'number') {
      throw new Error(`the command was not run (${response.status}): ${JSON.stringify(body)}`);
    }
    const text = (name: string) => jsonText(body, name) ?? '';
    return { exitCode, stdout: text('stdout'), stderr: text('stderr') };
  }
}

/**
 * Waits until the agent server of a sandbox answers.
 *
 * @throws Error with the last lines of its log when it ends before that
 */
export async function sandboxAnswers(backend: SandboxBackend, launch: SandboxLaunch): Promise<SandboxClient> {
  let client: SandboxClient | null = null;
  await until(async () => {
    const { state, address, exit } = await backend.inspect(launch.id);
    if (state !== 'running') {
      const tail = await backend.logTail(launch.id);
      throw new Error(`the sandbox is ${state} (${JSON.stringify(exit)}):\n${tail}`);
    }
    client = address === null ? null : new SandboxClient(address, launch.sessionKey);
    return client !== null && (await client.isAlive());
  });
  if (client === null) {
    throw new Error('the sandbox has no address');
  }
  return client;
}
