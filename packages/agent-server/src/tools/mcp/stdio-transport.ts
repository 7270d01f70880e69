import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { LineSplitter, OutputWindow } from '../../clipped-text.js';
import { readToEnd, type RunCommandOptions, type StartedProcess, startProcess } from '../../process-tree.js';
import { terminalText } from '../terminal-screen.js';
import { repairedMessages } from './server-answers.js';

const MAX_LINE_BYTES = 16 * 1024 * 1024;
const MAX_ERROR_TEXT = 2_000;

type Program = Pick<RunCommandOptions, 'command' | 'cwd' | 'env'>;

/** MCP with a child process, one JSON message per line. Unlike the SDK's, closing kills everything that it started. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #program: Program;
  readonly #errorText = new OutputWindow(MAX_ERROR_TEXT);
  #process: StartedProcess | null = null;
  #end: string | null = null;

  constructor(program: Program) {
    this.#program = program;
  }

  /** @throws Error when the program cannot be started */
  async start(): Promise<void> {
    this.#process = await startProcess(this.#program, ['pipe', 'pipe', 'pipe']);
    const { child, stdin, stdout, stderr } = this.#process;
    stderr.on('data', (chunk: Buffer) => this.#errorText.push(chunk));
    stdin.on('error', (error) => this.onerror?.(error));
    const lines = new LineSplitter(MAX_LINE_BYTES);
    stdout.on('data', (chunk: Buffer) => {
      const complete = lines.push(chunk);
      if (complete === null) {
        this.#end = 'it wrote a line that is too long';
        stdout.destroy();
        void this.close();
        return;
      }
      complete.forEach((line) => this.#receive(line));
    });
    child.once('exit', (code, killedBy) => {
      this.#end ??= killedBy === null ? `it ended with exit code ${code}` : `it was ended by ${killedBy}`;
      // The last output of a process is worth the most.
      void readToEnd([stdout, stderr]).then(() => this.onclose?.());
    });
  }

  /** Why nothing comes from the process any more; null while it runs. */
  get endReason(): string | null {
    return this.#end;
  }

  get errorText(): string | null {
    const text = terminalText(this.#errorText.text()).replaceAll('\0', '').toWellFormed().trim();
    return text === '' ? null : text;
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin;
    if (!stdin?.writable) {
      throw new Error('the tool server has ended');
    }
    await new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  async close(): Promise<void> {
    await this.#process?.kill();
  }

  /** Programs write more than messages to standard output; other lines are skipped. */
  #receive(line: string): void {
    repairedMessages(line.trim()).forEach((message) => this.onmessage?.(message));
  }
}
