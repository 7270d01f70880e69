import type { CreateTerminalRequest } from '@agentclientprotocol/sdk';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import { readToEnd, startProcess } from '../../process-tree.js';
import { inFolder, type ToolView, VIEW_START } from '../../tool-view.js';
import type { EngineHost } from '../agent-engine.js';

const MAX_TERMINALS = 32;
const MAX_OUTPUT_BYTES = 1024 * 1024;

interface ExitStatus {
  exitCode: number | null;
  signal: string | null;
}

interface Terminal {
  output: OutputTail;
  exit: ExitStatus | null;
  /** Never rejects. */
  exited: Promise<ExitStatus>;
  kill: () => Promise<void>;
}

/** Commands that an agent has us run, in the view of tools; the conversation's end closes all terminals. */
export class AcpTerminals {
  readonly #view: ToolView;
  readonly #host: EngineHost;
  readonly #touch: () => void;
  readonly #terminals = new Map<string, Terminal>();

  /** @param touch called when the agent reads from a terminal */
  constructor(view: ToolView, host: EngineHost, touch: () => void) {
    this.#view = view;
    this.#host = host;
    this.#touch = touch;
  }

  /** @throws Error with a message for the agent */
  async create({ command, args, cwd, env, outputByteLimit }: CreateTerminalRequest): Promise<string> {
    if (this.#terminals.size >= MAX_TERMINALS) {
      throw new Error(`there are ${MAX_TERMINALS} terminals, the most allowed: release one first`);
    }
    const id = `terminal-${randomUUID()}`;
    const output = new OutputTail(Math.min(outputByteLimit ?? MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES));
    const line = args?.length ? [command, ...args] : ['bash', '-c', command];
    const variables = (env ?? []).map(({ name, value }) => [name, value]);
    const { stdout, stderr, exited, kill } = await startProcess(
      {
        command: inFolder(this.#view, cwd ?? this.#host.settings.workingDir, line),
        cwd: VIEW_START,
        env: { ...this.#host.toolEnvironment(), ...Object.fromEntries(variables) },
      },
      ['ignore', 'pipe', 'pipe'],
    );
    [stdout, stderr].forEach((stream) => stream.on('data', (chunk: Buffer) => output.push(chunk)));
    const terminal: Terminal = {
      output,
      exit: null,
      kill,
      exited: exited.then(
        async (code) => {
          // Processes that it left behind would keep its output open.
          await kill();
          await readToEnd([stdout, stderr]);
          terminal.exit = toExitStatus(code);
          return terminal.exit;
        },
        () => ({ exitCode: null, signal: 'SIGKILL' }),
      ),
    };
    this.#terminals.set(id, terminal);
    return id;
  }

  /** @throws Error with a message for the agent */
  output(id: string): { output: string; truncated: boolean; exitStatus?: ExitStatus } {
    this.#touch();
    const { output, exit } = this.#get(id);
    return { output: output.text(), truncated: output.isCut, ...(exit !== null && { exitStatus: exit }) };
  }

  async wait(id: string): Promise<ExitStatus> {
    const exit = await this.#get(id).exited;
    this.#touch();
    return exit;
  }

  async kill(id: string): Promise<void> {
    await this.#get(id).kill();
  }

  async release(id: string): Promise<void> {
    const { kill } = this.#get(id);
    this.#terminals.delete(id);
    await kill();
  }

  async close(): Promise<void> {
    const open = [...this.#terminals.values()];
    this.#terminals.clear();
    await Promise.all(open.map(async ({ kill }) => await kill()));
  }

  #get(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (terminal === undefined) {
      throw new Error('there is no such terminal');
    }
    return terminal;
  }
}

class OutputTail {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #size = 0;
  isCut = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    // Cut only at twice the limit: cutting with each chunk would copy everything each time.
    if (this.#size > 2 * this.#limit) {
      this.#cut();
    }
  }

  text(): string {
    if (this.#size > this.#limit) {
      this.#cut();
    }
    // A character that was cut in two is left out.
    return Buffer.concat(this.#chunks)
      .toString('utf8')
      .replace(/^\uFFFD+/, '');
  }

  #cut(): void {
    const all = Buffer.concat(this.#chunks);
    const kept = Buffer.from(all.subarray(all.length - this.#limit));
    this.#chunks = [kept];
    this.#size = kept.length;
    this.isCut = true;
  }
}

function toExitStatus(code: number): ExitStatus {
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return code > 128 && signal !== undefined ? { exitCode: null, signal } : { exitCode: code, signal: null };
}
