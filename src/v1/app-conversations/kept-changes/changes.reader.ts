import path from 'node:path';
import { Injectable } from '@nestjs/common';
import pLimit from 'p-limit';
import type { GitDiff } from '@slipway/agent-protocol/git.js';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { cleanText } from '@slipway/common/well-formed-text.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import { AgentServerError, AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';
import type { ResponseBounds } from '@slipway/agent-client/bounded-json.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
import { shellQuote } from '../start/repository-checkout.js';
import { FileLists } from './file-lists.js';
import type { KeptCopy, KeptFile } from './kept-changes.repository.js';

const MIB = 1024 * 1024;
const MAX_FILES = 200;
/** Bytes of all files together, as JSON. */
const MAX_BYTES = 2 * MIB;
/** Linux allows no longer paths. */
const MAX_PATH = 4096;
const STATUSES = ['MOVED', 'ADDED', 'DELETED', 'UPDATED'] as const;
const LIST_BOUNDS = { bytes: 2 * MIB, values: 60_000 };
/** Larger diffs would not be kept. */
const DIFF_BOUNDS = { bytes: MAX_BYTES, values: 100 };
/** Bytes of all diffs that are read for one copy, with those that are not kept. */
const MAX_READ = 16 * MIB;
const ORDER_SECONDS = 4;
const MAX_ORDERED = 5_000;
/** Diffs of one conversation at a time: git in the sandbox works for each. */
const MAX_DIFFS = 4;

/** Reads what an agent changed and which files there are, within bounds. What it reads is hostile. */
@Injectable()
export class ChangesReader {
  constructor(
    private readonly http: AgentServerHttp,
    private readonly commands: AgentServerCommands,
    private readonly lists: FileLists,
  ) {}

  /** Below an absolute folder. @throws AgentServerError, or the signal's reason */
  async read(target: RunningSandbox, folder: string, signal: AbortSignal): Promise<KeptCopy> {
    const [files, paths] = await Promise.all([
      this.files(target, folder, signal),
      this.unlessUntold(signal, () => this.lists.below(target, folder, signal)),
    ]);
    return { files, paths };
  }

  private async files(target: RunningSandbox, folder: string, signal: AbortSignal): Promise<KeptFile[]> {
    const list = await this.http.json(target, '/api/git/changes', {
      query: { path: folder },
      bounds: LIST_BOUNDS,
      mayExceed: true,
      signal,
    });
    const changes = toChanges(list);
    const newest = (
      changes.length < 2 ? changes : await this.newestFirst(target, folder, changes, signal)
    ).slice(0, MAX_FILES);
    const room = { bytes: MAX_BYTES };
    const bounds = { ...DIFF_BOUNDS, room: { bytes: MAX_READ } };
    const diffs = pLimit(MAX_DIFFS);
    const files = await Promise.all(
      newest.map((file) =>
        diffs(async () => {
          if (bounds.room.bytes < 0) {
            return file;
          }
          const diff = await this.diff(target, path.posix.join(folder, file.path), { bounds, signal });
          const bytes = Buffer.byteLength(JSON.stringify({ ...file, diff }));
          if (diff === null || bytes > room.bytes) {
            return file;
          }
          room.bytes -= bytes;
          return { ...file, diff };
        }),
      ),
    );
    return files.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  private async diff(
    target: RunningSandbox,
    file: string,
    limits: { bounds: ResponseBounds; signal: AbortSignal },
  ): Promise<GitDiff | null> {
    const call = { query: { path: file }, mayExceed: true, ...limits };
    const told = await this.unlessUntold(limits.signal, () => this.http.json(target, '/api/git/diff', call));
    const [original, modified] = ['original', 'modified'].map((side) => textOrNull(jsonAt(told, side)));
    return told === null ? null : { original: original ?? null, modified: modified ?? null };
  }

  /** Null: too large, not told, or the time is up; the rest is kept all the same. */
  private async unlessUntold<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T | null> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof AgentServerError || signal.aborted) {
        return null;
      }
      throw error;
    }
  }

  /** Sorts by the files' times, with deleted files at the end. */
  private async newestFirst(
    target: RunningSandbox,
    folder: string,
    changes: readonly KeptFile[],
    signal: AbortSignal,
  ): Promise<readonly KeptFile[]> {
    const find = `find . -name .git -prune -o -name node_modules -prune -o -type f -printf '%T@ %P\\n' 2>/dev/null`;
    const { stdout } = await this.commands.run(target, {
      command: `cd -- ${shellQuote(folder)} 2>/dev/null || exit 0; ${find} | sort -rn | head -n ${MAX_ORDERED} | cut -d' ' -f2- | head -c ${MIB}`,
      cwd: null,
      timeoutSeconds: ORDER_SECONDS,
      keepCharacters: MIB,
      signal,
    });
    const places = new Map(stdout.split('\n').map((name, place) => [name, place]));
    const placeOf = ({ path: name }: KeptFile): number => places.get(name) ?? Infinity;
    return changes.toSorted((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1));
  }
}

function toChanges(list: unknown): KeptFile[] {
  return (Array.isArray(list) ? list : []).flatMap((entry: unknown) => {
    const name = jsonText(entry, 'path');
    const status = STATUSES.find((known) => known === jsonText(entry, 'status'));
    const isFile = name !== null && name.length <= MAX_PATH && !/^$|^\/|(^|\/)\.\.?(\/|$)/.test(name);
    return !isFile || status === undefined ? [] : [{ status, path: cleanText(name) }];
  });
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? cleanText(value) : null;
}
