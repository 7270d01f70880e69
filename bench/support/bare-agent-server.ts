import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { inheritedEnvironment } from '../../test/support/service-process.js';
import type { BareProgram } from './bare-program.js';
import { isAlive } from './is-alive.js';
import { untilTrue } from './until-true.js';

const ENTRY = fileURLToPath(new URL('../../dist/agent-server/main.js', import.meta.url));

/** The agent server as a plain child: no row, no isolation, no user of its own. */
export class BareAgentServer implements BareProgram {
  private readonly parent: string;
  private folder = '';
  private child: ChildProcess | null = null;

  /** @param parent folder that its own is made in */
  constructor(parent: string) {
    this.parent = parent;
  }

  async start(): Promise<void> {
    this.folder = await mkdtemp(path.join(this.parent, 'bare-'));
    await this.restart();
  }

  async restart(): Promise<void> {
    const portFile = path.join(this.folder, 'port');
    await rm(portFile, { force: true });
    const args = ['--port', '0', '--port-file', portFile, '--workspace', path.join(this.folder, 'workspace')];
    const child = spawn(process.execPath, [ENTRY, ...args, '--secrets-stdin'], {
      cwd: this.folder,
      env: inheritedEnvironment(),
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.child = child;
    child.stdin?.end('{"session_api_key":"key-of-the-benchmark"}\n');
    await untilTrue(async () => {
      if (child.exitCode !== null) {
        throw new Error('the agent server ended before it answered');
      }
      const port = existsSync(portFile) ? (await readFile(portFile, 'utf8')).trim() : '';
      return port !== '' && (await isAlive(`http://127.0.0.1:${port}`));
    }, 'an answer of the agent server');
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
