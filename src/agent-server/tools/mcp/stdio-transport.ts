import type { JSONRPCMessage, MCPTransport } from '@ai-sdk/mcp';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { LineSplitter } from '../../line-splitter.js';
import { killTree, MARKER_VARIABLE } from '../../process-tree.js';

/** Largest message in either direction. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

export interface StdioTransportOptions {
  command: string;
  args: string[];
  cwd: string;
  /** The whole environment: nothing is inherited. */
  env: Record<string, string>;
}

/**
 * MCP with a child process, one JSON message per line. Closing kills the process and everything that it started, which
 * the SDK's own transport does not guarantee.
 */
export class StdioTransport implements MCPTransport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #options: StdioTransportOptions;
  readonly #marker = randomUUID();
  #child: ChildProcess | null = null;

  constructor(options: StdioTransportOptions) {
    this.#options = options;
  }

  /** @throws Error when the program cannot be started */
  async start(): Promise<void> {
    const { command, args, cwd, env } = this.#options;
    const child = spawn(command, args, {
      cwd,
      env: { ...env, [MARKER_VARIABLE]: this.#marker },
      // Standard error may contain secrets, and nobody here reads it.
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    });
    this.#child = child;
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.once('exit', () => this.onclose?.());
    child.stdin?.on('error', (error) => this.onerror?.(error));
    if (child.stdout !== null) {
      const lines = new LineSplitter(MAX_LINE_BYTES);
      child.stdout.on('data', (chunk: Buffer) => {
        const complete = lines.push(chunk);
        if (complete === null) {
          child.stdout?.destroy();
          this.onerror?.(new Error('the tool server wrote a line that is too long'));
          void this.close();
          return;
        }
        complete.forEach((line) => this.#receive(line));
      });
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin?.writable) {
      throw new Error('the tool server has ended');
    }
    await new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    if (this.#child?.pid !== undefined) {
      await killTree(this.#child.pid, this.#marker);
    }
  }

  #receive(line: string): void {
    if (line.trim() === '') {
      return;
    }
    try {
      const message: JSONRPCMessage = JSON.parse(line);
      this.onmessage?.(message);
    } catch {
      this.onerror?.(new Error('the tool server wrote a line that is not a message'));
    }
  }
}
