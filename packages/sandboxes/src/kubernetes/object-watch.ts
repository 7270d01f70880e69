import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { ApiServerError, pauseBefore, type ApiServer } from './api-server.js';

/** Keeps a list of thousands from being in memory as text. */
const PAGE = 200;
/** Repeated lists find what an open watch has missed. */
const RELIST_MS = 60_000;
/** What ends sooner is begun again later each time, however it ended: some gateways end each watch within seconds. */
const LASTING_MS = 15_000;

interface ObjectWatchOptions<T> {
  path: string;
  labelSelector: string;
  read: (object: unknown) => T | null;
  onChange: (name: string) => void;
}

/**
 * Keeps one kind of a cluster's objects: lists them, watches their changes, and lists them again every minute and after
 * each failure. The informer of the official client misses changes then (docs/adr/0058).
 */
export class ObjectWatch<T> {
  private readonly byName = new Map<string, T>();
  private readonly stopped = new AbortController();
  private readonly tried = Promise.withResolvers<void>();
  private running: Promise<void> | null = null;
  private failure: ApiServerError | null = null;

  constructor(
    private readonly api: ApiServer,
    private readonly options: ObjectWatchOptions<T>,
  ) {}

  start(): void {
    this.running ??= this.run(this.stopped.signal);
  }

  async stop(): Promise<void> {
    this.stopped.abort();
    await this.running;
  }

  /** @throws ApiServerError when they could not be listed the last time */
  async objects(): Promise<ReadonlyMap<string, T>> {
    await this.tried.promise;
    if (this.failure !== null) {
      throw this.failure;
    }
    return this.byName;
  }

  known(name: string): T | null {
    return this.byName.get(name) ?? null;
  }

  private async run(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      const begunAt = performance.now();
      let failure: ApiServerError | null = null;
      let isListed = false;
      try {
        const version = await this.list(signal);
        isListed = true;
        await this.follow(version, signal);
      } catch (error) {
        failure = error instanceof ApiServerError ? error : new ApiServerError(String(error), null, null);
        // Watches break off while the API server is well; the next list says whether it is.
        this.failure = isListed ? null : failure;
      }
      this.tried.resolve();
      attempt = performance.now() - begunAt > LASTING_MS ? 0 : attempt;
      await delay(pauseBefore(attempt, failure), undefined, { signal }).catch(() => undefined);
    }
  }

  /** Returns the version that the watch begins with. */
  private async list(signal: AbortSignal): Promise<string> {
    const { path, labelSelector, read } = this.options;
    const found = new Map<string, T>();
    let version = '';
    let next: string | null = null;
    do {
      const query = { labelSelector, limit: PAGE, ...(next !== null && { continue: next }) };
      const page = await this.api.call(path, { query, signal, patienceMs: 0 });
      for (const item of jsonList(page, 'items')) {
        const [name, object] = [jsonText(item, 'metadata', 'name'), read(item)];
        if (name !== null && object !== null) {
          found.set(name, object);
        }
      }
      next = jsonText(page, 'metadata', 'continue');
      version = jsonText(page, 'metadata', 'resourceVersion') ?? '';
    } while (next !== null);
    for (const name of this.byName.keys()) {
      if (!found.has(name)) {
        this.set(name, null);
      }
    }
    found.forEach((object, name) => this.set(name, object));
    this.failure = null;
    this.tried.resolve();
    return version;
  }

  private async follow(resourceVersion: string, stopped: AbortSignal): Promise<void> {
    const { path, labelSelector } = this.options;
    const query = { watch: true, allowWatchBookmarks: true, labelSelector, resourceVersion };
    const relist = AbortSignal.timeout(RELIST_MS);
    try {
      for await (const event of this.api.stream(path, query, AbortSignal.any([stopped, relist]))) {
        this.receive(event);
      }
    } catch (error) {
      if (!relist.aborted) {
        throw error;
      }
    }
  }

  private receive(event: unknown): void {
    const [type, object] = [jsonText(event, 'type'), jsonAt(event, 'object')];
    if (type === 'ERROR') {
      const text = jsonText(object, 'message') ?? 'the watch failed';
      throw new ApiServerError(text, jsonNumber(object, 'code'), jsonText(object, 'reason'));
    }
    const name = jsonText(object, 'metadata', 'name');
    if (jsonText(object, 'metadata', 'resourceVersion') === null) {
      throw new ApiServerError('the watch sent half an event', null, null);
    }
    if (type !== 'BOOKMARK' && name !== null) {
      this.set(name, type === 'DELETED' ? null : this.options.read(object));
    }
  }

  private set(name: string, object: T | null): void {
    const before = this.known(name);
    if (object === null) {
      this.byName.delete(name);
    } else {
      this.byName.set(name, object);
    }
    if (!isDeepStrictEqual(before, object)) {
      this.options.onChange(name);
    }
  }
}
