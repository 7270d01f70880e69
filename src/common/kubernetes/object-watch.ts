import { isDeepStrictEqual } from 'node:util';
import { setTimeout as delay } from 'node:timers/promises';
import { jsonAt, jsonList, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { ApiServerError, pauseBefore } from './api-server-error.js';
import type { ApiServer } from './api-server.js';

/** Keeps a list of thousands from being in memory as text. */
const PAGE = 200;
/** Repeated lists find what an open watch has missed. */
const RELIST_MS = 60_000;
const WATCH_SECONDS = 300;
/** A line is an object, bounded by the cluster's own limit for one. */
const MAX_LINE = 8 * 1024 * 1024;
const GONE = 410;

interface ObjectWatchOptions<T> {
  path: string;
  labelSelector: string;
  read: (object: unknown) => T | null;
  onChange: (name: string) => void;
}

/** Keeps one kind of a cluster's objects: lists them, watches their changes, and lists them again every minute. */
export class ObjectWatch<T> {
  readonly #objects = new Map<string, T>();
  readonly #stopped = new AbortController();
  #running: Promise<void> | null = null;
  #listed = Promise.withResolvers<void>();
  #failure: ApiServerError | null = null;
  /** Where the watch resumes; null: begin with a list. */
  #version: string | null = null;

  constructor(
    private readonly api: ApiServer,
    private readonly options: ObjectWatchOptions<T>,
  ) {
    // Without a caller, a rejection must not count as unhandled.
    this.#listed.promise.catch(() => undefined);
  }

  get failure(): ApiServerError | null {
    return this.#failure;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  /** @throws ApiServerError when the API server cannot be reached */
  async objects(): Promise<ReadonlyMap<string, T>> {
    if (this.#failure === null) {
      await this.#listed.promise;
    }
    if (this.#failure !== null) {
      throw this.#failure;
    }
    return this.#objects;
  }

  known(name: string): T | null {
    return this.#objects.get(name) ?? null;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        if (this.#version === null) {
          await this.#list(signal);
        }
        await this.#watch(signal);
        attempt = -1;
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        const failure =
          error instanceof ApiServerError ? error : new ApiServerError(String(error), null, null);
        if (failure.status === GONE) {
          // The place of the watch in the history has expired, so list again.
          this.#version = null;
          attempt = 0;
        } else {
          this.#fail(failure);
        }
        await delay(pauseBefore(attempt, failure), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  #fail(failure: ApiServerError): void {
    this.#failure = failure;
    // Callers that wait for the first list get the reason for its absence.
    this.#listed.reject(failure);
    this.#listed = Promise.withResolvers<void>();
    this.#listed.promise.catch(() => undefined);
    this.#version = null;
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { path, labelSelector, read } = this.options;
    const found = new Map<string, T>();
    let next = '';
    do {
      const query = { labelSelector, limit: PAGE, ...(next !== '' && { continue: next }) };
      const page = await this.api.call(path, { query, signal, patienceMs: 0 });
      for (const item of jsonList(page, 'items')) {
        const [name, object] = [jsonText(item, 'metadata', 'name'), read(item)];
        if (name !== null && object !== null) {
          found.set(name, object);
        }
      }
      next = jsonText(page, 'metadata', 'continue') ?? '';
      this.#version = jsonText(page, 'metadata', 'resourceVersion');
    } while (next !== '');
    this.#replace(found);
    this.#failure = null;
    this.#listed.resolve();
  }

  #replace(found: ReadonlyMap<string, T>): void {
    for (const name of this.#objects.keys()) {
      if (!found.has(name)) {
        this.#set(name, null);
      }
    }
    found.forEach((object, name) => this.#set(name, object));
  }

  async #watch(stopped: AbortSignal): Promise<void> {
    const { path, labelSelector } = this.options;
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      labelSelector,
      resourceVersion: this.#version ?? '',
      timeoutSeconds: WATCH_SECONDS,
    };
    const relist = AbortSignal.timeout(RELIST_MS);
    let rest = '';
    const receive = (text: string): void => {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > MAX_LINE) {
        throw new ApiServerError('a line of the watch is too long', null, null);
      }
      lines.forEach((line) => this.#receive(line));
    };
    try {
      await this.api.stream(path, query, receive, AbortSignal.any([stopped, relist]));
    } catch (error) {
      if (!relist.aborted || stopped.aborted) {
        throw error;
      }
      this.#version = null;
    }
  }

  #receive(line: string): void {
    const event = parseJson(line);
    const type = jsonText(event, 'type');
    const object = jsonAt(event, 'object');
    if (type === 'ERROR') {
      const text = jsonText(object, 'message') ?? 'the watch failed';
      throw new ApiServerError(text, jsonNumber(object, 'code'), jsonText(object, 'reason'));
    }
    const [name, version] = [
      jsonText(object, 'metadata', 'name'),
      jsonText(object, 'metadata', 'resourceVersion'),
    ];
    if (type === null || version === null) {
      throw new ApiServerError('the watch sent half an event', null, null);
    }
    this.#version = version;
    if (type !== 'BOOKMARK' && name !== null) {
      this.#set(name, type === 'DELETED' ? null : this.options.read(object));
    }
  }

  #set(name: string, object: T | null): void {
    const before = this.#objects.get(name) ?? null;
    if (object === null) {
      this.#objects.delete(name);
    } else {
      this.#objects.set(name, object);
    }
    if (!isDeepStrictEqual(before, object)) {
      this.options.onChange(name);
    }
  }
}
