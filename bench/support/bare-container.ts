import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { promisify } from 'node:util';
import type { BareProgram } from './bare-program.js';
import { freePort } from './free-port.js';
import { isAlive } from './is-alive.js';
import { untilTrue } from './until-true.js';

const run = promisify(execFile);
const AGENT_PORT = 8000;

/** `docker run` of the agent server's image, with nothing asked for but a port. */
export class BareContainer implements BareProgram {
  private readonly name = `slipway-bench-${randomUUID()}`;
  private readonly image: string;
  private port = 0;
  private attached: ChildProcess | null = null;

  constructor(image: string) {
    this.image = image;
  }

  async start(): Promise<void> {
    this.port = await freePort();
    const publish = `127.0.0.1:${this.port}:${AGENT_PORT}`;
    await this.answering(['run', '-i', '--name', this.name, '-p', publish, this.image]);
  }

  async stop(): Promise<void> {
    await run('docker', ['stop', this.name]);
    await this.detached();
  }

  async restart(): Promise<void> {
    await this.answering(['start', '-a', '-i', this.name]);
  }

  async remove(): Promise<void> {
    await run('docker', ['rm', '-f', '-v', this.name]);
    await this.detached();
  }

  private async answering(command: string[]): Promise<void> {
    const docker = spawn('docker', command, { stdio: ['pipe', 'ignore', 'ignore'] });
    this.attached = docker;
    docker.stdin?.end('{"session_api_key":"key-of-the-benchmark"}\n');
    await untilTrue(() => {
      if (docker.exitCode !== null) {
        throw new Error('the container ended before it answered');
      }
      return isAlive(`http://127.0.0.1:${this.port}`);
    }, 'an answer of the container');
  }

  private async detached(): Promise<void> {
    if (this.attached && this.attached.exitCode === null) {
      await once(this.attached, 'exit');
    }
  }
}
