import { randomBytes } from 'node:crypto';
import { existsSync, type StatsFs } from 'node:fs';
import { appendFile, readFile, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { jsonText, jsonList, parseJson } from '@slipway/common/json-access.js';
import type { ConversationRecord } from './conversation-record.js';
import path from 'node:path';
import pLimit from 'p-limit';
import { errorMessage, unlessCode } from '@slipway/common/errors/error-message.js';
import { isPlain, type OriginalPart, type OriginalResponse } from '../engine/agent-engine.js';
import { log } from '../observability.js';
import { HIDDEN, type SecretMasker } from '../secret-masker.js';

const PRIVATE = { mode: 0o600 };

/** The file of a conversation's record. Writes one version at a time and skips those that are replaced meanwhile. */
export class RecordFile {
  readonly #file: string;
  #latest: ConversationRecord | null = null;
  readonly #inOrder = pLimit(1);

  constructor(file: string) {
    this.#file = file;
  }

  async read(): Promise<ConversationRecord> {
    const record: unknown = JSON.parse(await readFile(this.#file, 'utf8'));
    if (!isRecord(record)) {
      throw new Error('the file is not a conversation record');
    }
    return record;
  }

  /** Resolves once this record, or a newer one, is on disk. */
  async save(record: ConversationRecord): Promise<void> {
    this.#latest = record;
    await this.#inOrder(() => this.#writeLatest());
  }

  async #writeLatest(): Promise<void> {
    const record = this.#latest;
    if (record === null) {
      return;
    }
    const temporary = `${this.#file}.new`;
    await writeFile(temporary, JSON.stringify(record), { ...PRIVATE, flush: true });
    await rename(temporary, this.#file);
    if (this.#latest === record) {
      this.#latest = null;
    }
  }
}

/** Only this class writes the file, so the check only has to detect damage. */
function isRecord(value: unknown): value is ConversationRecord {
  return jsonText(value, 'id') !== null && jsonText(value, 'status') !== null;
}

const KEPT_FILE = 'originals.jsonl';
const WAITING_FILE = 'waiting.json';
/** Characters of JSON. The event log bounds the number of responses. */
const MAX_ORIGINAL = 4 * 1024 * 1024;

/**
 * The original responses: in memory as the model wrote them, on disk without secrets. Calls that wait for
 * confirmation must survive a restart unchanged, so a file of their own holds them until they are answered.
 */
export class KeptOriginals {
  readonly all: Map<string, OriginalResponse>;
  readonly #folder: string;
  readonly #concealed: Set<string>;
  #isWaiting: boolean;

  private constructor(folder: string, kept: OriginalResponse[], waiting: OriginalResponse[]) {
    this.#folder = folder;
    this.all = new Map([...kept, ...waiting].map((original) => [original.id, original]));
    this.#concealed = new Set(waiting.map(({ id }) => id));
    this.#isWaiting = waiting.length > 0;
  }

  static async open(folder: string): Promise<KeptOriginals> {
    const lines = (await textOf(path.join(folder, KEPT_FILE))).split('\n').map((line) => parseJson(line));
    const waiting = parseJson(await textOf(path.join(folder, WAITING_FILE)));
    return new KeptOriginals(
      folder,
      lines.filter((line) => isOriginal(line)),
      Array.isArray(waiting) ? waiting.filter((item: unknown) => isOriginal(item)) : [],
    );
  }

  /** Call this before the events of the response are written. */
  async keep(original: OriginalResponse, masker: SecretMasker): Promise<void> {
    const parts = original.parts.map((part) => shownPart(part, masker));
    const isConcealed = JSON.stringify(parts) !== JSON.stringify(original.parts) || parts.some(looksMasked);
    if (isPlain(original) && !isConcealed) {
      return;
    }
    this.all.set(original.id, original);
    if (isConcealed) {
      this.#concealed.add(original.id);
    }
    const stored = { ...original, message: unchangedOr(masker, original.message, {}), parts };
    const line = JSON.stringify(stored);
    if (!isPlain(stored) && line.length <= MAX_ORIGINAL) {
      // The line break in front ends a line that a crash has left unfinished.
      await appendFile(path.join(this.#folder, KEPT_FILE), `\n${line}\n`, PRIVATE);
    }
  }

  async setWaiting(responses: ReadonlySet<string>): Promise<void> {
    const waiting = [...responses].flatMap((id) => (this.#concealed.has(id) ? [this.all.get(id)] : []));
    const file = path.join(this.#folder, WAITING_FILE);
    if (waiting.length > 0) {
      await writeFile(file, JSON.stringify(waiting), PRIVATE);
    } else if (this.#isWaiting) {
      await rm(file, { force: true });
    }
    this.#isWaiting = waiting.length > 0;
  }
}

/** A signature is worthless without the text that it signs. */
function shownPart(part: OriginalPart, masker: SecretMasker): OriginalPart {
  if (part.type === 'call') {
    return {
      ...part,
      arguments: masker.text(part.arguments),
      opaque: unchangedOr(masker, part.opaque, null),
    };
  }
  const text = masker.text(part.text);
  return { ...part, text, opaque: text === part.text ? unchangedOr(masker, part.opaque, null) : null };
}

/** Opaque data cannot be masked: it is whole or left out. */
function unchangedOr<T>(masker: SecretMasker, value: T, otherwise: T): T {
  const json = JSON.stringify(value);
  return masker.text(json) === json ? value : otherwise;
}

/** The model itself may write the mark that masking leaves. */
function looksMasked(part: OriginalPart): boolean {
  return part.type === 'call' && part.arguments.includes(HIDDEN);
}

async function textOf(file: string): Promise<string> {
  return (await unlessCode('ENOENT', readFile(file, 'utf8'))) ?? '';
}

function isOriginal(value: unknown): value is OriginalResponse {
  return (
    jsonText(value, 'id') !== null &&
    jsonText(value, 'origin') !== null &&
    jsonList(value, 'parts').length > 0
  );
}

const RESERVE_FILE = '.reserve';
const RESERVE_BYTES = 2 * 1024 * 1024;
const MIN_FILES = 16;
const LOOK_MS = 5_000;

type DiskSpace = Pick<StatsFs, 'bavail' | 'bsize' | 'files' | 'ffree'>;

/**
 * Room for the files of conversations on a disk that an agent has filled: without it, no message could be logged any
 * more, the one that asks for tidying up included. It is removed when the disk is full, and made when there is room.
 */
export async function keepReserve(folder: string, space?: DiskSpace): Promise<void> {
  const file = path.join(folder, RESERVE_FILE);
  const { bavail, bsize, files, ffree } = space ?? (await statfs(folder));
  // Some file systems do not count files.
  const free = files > 0 && ffree < MIN_FILES ? 0 : bavail * bsize;
  const isHeld = existsSync(file);
  if (isHeld && free < RESERVE_BYTES / 2) {
    await rm(file);
    log('warn', 'released disk reserve', { free_bytes: free });
  } else if (!isHeld && free > 4 * RESERVE_BYTES) {
    await writeFile(file, randomBytes(RESERVE_BYTES), PRIVATE);
  }
}

/** Looks now, if there is something to release, and from then on until the signal aborts. */
export async function watchReserve(folder: string, signal: AbortSignal): Promise<void> {
  const look = async (): Promise<void> =>
    await keepReserve(folder).catch((error: unknown) =>
      log('warn', 'failed to keep disk reserve', { error: errorMessage(error) }),
    );
  if (existsSync(path.join(folder, RESERVE_FILE))) {
    await look();
  }
  const timer = setInterval(() => void look(), LOOK_MS).unref();
  signal.addEventListener('abort', () => clearInterval(timer), { once: true });
}
