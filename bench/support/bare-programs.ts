import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '../../test/support/service-process.js';
import { freePort, isAlive, untilTrue } from './fixtures.js';

const ENTRY = fileURLToPath(new URL('../../dist/bundle/agent-server/main.js', import.meta.url));
const AGENT_PORT = 8000;
const run = promisify(execFile);

/** An agent server that is started without the service: what the service's sandboxes are compared with. */
export interface BareProgram {
  /** Returns when `/alive` responds. */
  start(): Promise<void>;
  /** Asks it to end, and returns when it has. */
  stop(): Promise<void>;
  /** Called after `stop`, with the same files. Returns when `/alive` responds. */
  restart(): Promise<void>;
  remove(): Promise<void>;
}

/** The agent server as a plain child process: no row, no isolation, no user of its own. */
export class BareAgentServer implements BareProgram {
  private readonly parent: string;
  private folder = '';
  private child: ChildProcess | null = null;

  /** @param parent folder in which it creates its own */
  constructor(parent: string) {
    this.parent = parent;
  }

  async start(): Promise<void> {
    this.folder = await mkdtemp(path.join(this.parent, 'bare-'));
    await this.restart();
  }

  async restart(): Promise<void> {
    const port = await freePort();
    const args = ['--port', String(port), '--workspace', path.join(this.folder, 'workspace')];
    const child = spawn(process.execPath, [ENTRY, ...args, '--secrets-stdin'], {
      cwd: this.folder,
      env: inheritedEnvironment(),
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.child = child;
    child.stdin?.end('{"session_api_key":"key-of-the-benchmark"}\n');
    await untilTrue(async () => {
      if (child.exitCode !== null) {
        throw new Error('the agent server ended before it responded');
      }
      return await isAlive(`http://127.0.0.1:${port}`);
    }, 'a response of the agent server');
  }

  async stop(): Promise<void> {
    if (this.child && this.child.exitCode === null) {
      const ended = once(this.child, 'exit');
      this.child.kill('SIGTERM');
      await ended;
    }
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** `docker run` of the agent server's image with a published port and no other option. */
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
    await this.runUntilAlive(['run', '-i', '--name', this.name, '-p', publish, this.image]);
  }

  async stop(): Promise<void> {
    await run('docker', ['stop', this.name]);
    await this.waitForExit();
  }

  async restart(): Promise<void> {
    await this.runUntilAlive(['start', '-a', '-i', this.name]);
  }

  async remove(): Promise<void> {
    await run('docker', ['rm', '-f', '-v', this.name]);
    await this.waitForExit();
  }

  private async runUntilAlive(command: string[]): Promise<void> {
    const docker = spawn('docker', command, { stdio: ['pipe', 'ignore', 'ignore'] });
    this.attached = docker;
    docker.stdin?.end('{"session_api_key":"key-of-the-benchmark"}\n');
    await untilTrue(() => {
      if (docker.exitCode !== null) {
        throw new Error('the container ended before it responded');
      }
      return isAlive(`http://127.0.0.1:${this.port}`);
    }, 'a response of the container');
  }

  private async waitForExit(): Promise<void> {
    if (this.attached && this.attached.exitCode === null) {
      await once(this.attached, 'exit');
    }
  }
}
