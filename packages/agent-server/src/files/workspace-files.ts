import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { type Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { bytesUpTo, OutputWindow } from '../clipped-text.js';
import { resolvePath, scriptInView, type ToolView } from '../tool-view.js';
import { startProcess } from '../process-tree.js';
import { FILE_SCRIPT } from './file-script.js';

/** Time limit of an operation without content; streams may take as long as their other end. */
const TIMEOUT_MS = 30_000;
const MAX_HEADER_BYTES = 16_384;
const MAX_ENTRIES = 1_000;
/** Linux limits names to 255 bytes; entries are two levels deep. */
const MAX_LIST_BYTES = (MAX_ENTRIES + 1) * 520;
const MAX_DIAGNOSIS = 1_000;
const ENDED_EARLY = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE']);
const NO_SPACE = /no space left on device|disk quota exceeded/i;

const TEMPORARY = '.upload-';
/** What a new content is called, beside the file that it replaces, until it is complete: a pattern of git's. */
export const TEMPORARY_NAMES = `${TEMPORARY}????????-????-????-????-????????????`;

const FAILURES = {
  outside: 'is not inside the workspace',
  missing: 'does not exist',
  folder: 'is a folder',
  special: 'is not a file',
  blocked: 'cannot be used: part of its path is not a folder',
  links: 'cannot be used: it has too many links',
  denied: 'cannot be used: permission denied',
  large: 'is too large',
  changed: 'was changed by somebody else meanwhile',
  unwritable: 'cannot be written',
  noSpace: 'cannot be written: no space is left',
  incomplete: 'was not received completely',
} as const;

export type FileFailure = keyof typeof FAILURES;

/** A file of the workspace cannot be used; the message names it. */
export class WorkspaceFileError extends Error {
  constructor(
    readonly failure: FileFailure,
    readonly file: string,
    readonly size = 0,
  ) {
    super(`${file} ${FAILURES[failure]}`);
    this.name = 'WorkspaceFileError';
  }
}

/** Handles failures: null in place of one of these, or of any where none is named. @throws every other error */
export function nullIf(...failures: readonly FileFailure[]): (error: unknown) => null {
  return (error) => {
    if (error instanceof WorkspaceFileError && (failures.length === 0 || failures.includes(error.failure))) {
      return null;
    }
    throw error;
  };
}

interface OpenFile {
  /** The path with its links resolved. */
  path: string;
  /** Bytes, when it was opened. */
  size: number;
  /** Exactly `size` bytes; throws when the file became shorter. */
  content: AsyncIterable<Uint8Array>;
}

/** What is at a path: a text to read, or the names in a folder, two levels deep and without hidden ones. */
type ViewedPath =
  | { kind: 'file'; path: string; content: Buffer }
  | { kind: 'folder'; path: string; names: string[]; isCut: boolean };

/**
 * Files below some folders. Each operation runs where tools run, so no link leads it to what tools could not reach.
 * Its output is untrusted and bounded. Every method throws WorkspaceFileError.
 */
export class WorkspaceFiles {
  readonly #view: ToolView;
  readonly #roots: readonly string[];

  /** @param roots absolute folders; a path outside all of them is refused */
  constructor(view: ToolView, roots: readonly string[]) {
    this.#view = view;
    this.#roots = roots;
  }

  /** The path without links, as far as it exists. */
  async resolve(file: string): Promise<string> {
    return await this.#run({ name: 'resolve', file }, async (reply) => reply.path);
  }

  /** The nearest folder above a path, or at it, that exists. */
  async enclosingFolder(file: string): Promise<string> {
    return await this.#run({ name: 'enclosing', file }, async (reply) => reply.path);
  }

  async view(file: string, maxBytes: number): Promise<ViewedPath> {
    const operation = { name: 'view', file, limit: maxBytes } as const;
    return await this.#run(operation, async ({ kind, path: real, size, body }) => {
      if (kind === 'file') {
        return { kind, path: real, content: await bytesUpTo(exactly(body, size, file), size) };
      }
      const names = (await bytesUpTo(body, MAX_LIST_BYTES)).toString('utf8').split('\0').slice(0, -1);
      const isCut = names.length > MAX_ENTRIES;
      return { kind: 'folder', path: real, names: names.slice(0, MAX_ENTRIES), isCut };
    });
  }

  /** Refuses a file larger than `maxBytes`. `rest` is the path below `file`, a text for `printf %b`. */
  async read(file: string, maxBytes: number, rest = ''): Promise<Buffer> {
    return await this.#run({ name: 'read', file, rest, limit: maxBytes }, async ({ size, body }) =>
      bytesUpTo(exactly(body, size, file), size),
    );
  }

  async open<T>(file: string, work: (opened: OpenFile) => Promise<T>): Promise<T> {
    return await this.#run({ name: 'read', file, isStream: true }, async ({ path: real, size, body }) =>
      work({ path: real, size, content: exactly(body, size, file) }),
    );
  }

  /**
   * Replaces a file, creates the folders above it and returns the path without links. The old file stays until the
   * new one is complete, and when the content throws; one with several names keeps its content in common.
   * @throws also whatever the content throws
   */
  async write(file: string, content: AsyncIterable<Uint8Array>): Promise<{ path: string; links: number }> {
    const operation = { name: 'write', file, isStream: true, content } as const;
    return await this.#run(operation, async ({ path, size: links }) => ({ path, links }));
  }

  async remove(file: string): Promise<void> {
    await this.#run({ name: 'remove', file }, async () => undefined);
  }

  async #run<T>(operation: Operation, use: (reply: Reply) => Promise<T>): Promise<T> {
    const { name, file, rest = '', limit = Number.MAX_SAFE_INTEGER, content = null } = operation;
    const absolute = resolvePath(this.#view.aliases ?? [], '/', file);
    // One entry more than is shown tells that there are more.
    const limits = [String(limit), String(MAX_ENTRIES + 1)];
    const args = [name, absolute, rest, ...limits, `${TEMPORARY}${randomUUID()}`, ...this.#roots];
    const { child, stdout, stderr, exited, kill } = await startProcess(
      scriptInView(this.#view, FILE_SCRIPT, args),
      content === null ? ['ignore', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe', 'pipe'],
    );
    // Once the process has started, an error means only that it could not be signalled.
    exited.catch(() => undefined);
    const timer = operation.isStream ? undefined : setTimeout(() => void kill(), TIMEOUT_MS);
    const diagnosis = new OutputWindow(MAX_DIAGNOSIS);
    stderr.on('data', (chunk: Buffer) => diagnosis.push(chunk));
    const sent = content === null ? null : send(content, child.stdio);
    // A failed send is thrown below, unless there is an earlier failure.
    sent?.catch(() => undefined);
    try {
      const reply = await readReply(stdout, file);
      const failure = failureOf(reply, diagnosis.text());
      if (failure !== null) {
        // The sender may have failed itself: then its own error is thrown.
        await sent;
        throw new WorkspaceFileError(failure, file, reply.size);
      }
      return await use(reply);
    } finally {
      clearTimeout(timer);
      await kill();
      await exited;
    }
  }
}

interface Operation {
  name: 'resolve' | 'enclosing' | 'view' | 'read' | 'write' | 'remove';
  file: string;
  rest?: string;
  limit?: number;
  /** What to write; without it there is no standard input. */
  content?: AsyncIterable<Uint8Array>;
  isStream?: boolean;
}

interface Reply {
  kind: string;
  size: number;
  path: string;
  body: AsyncIterable<Uint8Array>;
}

async function readReply(stdout: Readable, file: string): Promise<Reply> {
  const chunks = stdout.iterator({ destroyOnReturn: false });
  let header = Buffer.alloc(0);
  while (header.length <= MAX_HEADER_BYTES) {
    const { value, done }: IteratorResult<Buffer> = await chunks.next();
    if (done) {
      break;
    }
    header = Buffer.concat([header, value]);
    const [fields] = FIELDS.exec(header.toString('latin1')) ?? [];
    if (fields !== undefined) {
      const [kind = '', size, real = ''] = header.subarray(0, fields.length).toString('utf8').split('\0');
      const bytes = Number(size);
      if (real.startsWith('/') || kind === 'error') {
        return {
          kind,
          size: Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : 0,
          path: real,
          body: joined(header.subarray(fields.length), chunks),
        };
      }
      break;
    }
  }
  throw new WorkspaceFileError('changed', file);
}

/** Three fields, each with a zero byte behind it. */
const FIELDS = /^(?:[^\0]*\0){3}/;

async function* joined(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  if (first.length > 0) {
    yield first;
  }
  yield* rest;
}

/** Yields exactly `size` bytes: a log may grow while it is read, and another file may be truncated. */
async function* exactly(
  content: AsyncIterable<Uint8Array>,
  size: number,
  file: string,
): AsyncIterable<Uint8Array> {
  let left = size;
  if (left > 0) {
    for await (const chunk of content) {
      yield chunk.length > left ? chunk.subarray(0, left) : chunk;
      left -= Math.min(chunk.length, left);
      if (left === 0) {
        return;
      }
    }
    throw new WorkspaceFileError('changed', file);
  }
}

function failureOf({ kind, path: reason }: Reply, diagnosis: string): FileFailure | null {
  if (kind !== 'error') {
    return null;
  }
  if (NO_SPACE.test(diagnosis)) {
    return 'noSpace';
  }
  return isFailure(reason) ? reason : 'changed';
}

function isFailure(text: string): text is FileFailure {
  return Object.hasOwn(FAILURES, text);
}

/** Sends a content to the script's standard input, and then confirms on descriptor 3 that it is complete. */
async function send(content: AsyncIterable<Uint8Array>, stdio: ChildProcess['stdio']): Promise<void> {
  const [input, , , verdict] = stdio;
  if (!(input instanceof Writable) || !(verdict instanceof Writable)) {
    throw new TypeError('the script has no standard input');
  }
  // A script that refuses the file stops reading, and reports why.
  verdict.on('error', () => undefined);
  try {
    await pipeline(content, input);
    verdict.end('keep\n');
  } catch (error) {
    verdict.end();
    if (!ENDED_EARLY.has(errorCode(error) ?? '')) {
      throw error;
    }
  }
}
