import { jsonAt, jsonText } from '../../src/common/json-access.js';
import type { SandboxBackend, SandboxLaunch } from '../../src/v1/sandboxes/backends/sandbox-backend.js';
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

  /** Whether the agent server answers. */
  async isAlive(): Promise<boolean> {
    try {
      return (await sandboxFetch(this.address, '/alive')).ok;
    } catch {
      return false;
    }
  }

  /** Runs a command as an agent's tool does and waits for its end. */
  async run(command: string): Promise<CommandOutput> {
    const response = await sandboxFetch(this.address, '/api/bash/execute_bash_command', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Session-API-Key': this.#sessionKey },
      body: JSON.stringify({ command, timeout: 60 }),
    });
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
