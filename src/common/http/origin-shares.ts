import { type Release, SharedLimit } from '../shared-limit.js';
import { UpstreamError } from './upstream-error.js';

/** Requests of one holder that an origin gets at a time: a quarter of its connections. */
const MAX_OF_HOLDER = 32;
/** Of these, requests of one piece of work: there is room for another. */
const MAX_OF_WORK = 24;

/** Whose a request is. */
export interface RequestOwner {
  /** Who has the share. */
  holder: string;
  /** What the request is part of. */
  work: object;
}

/**
 * The share that each user has of the connections to every origin: requests that a server does not answer take none from
 * others. A request beyond it is refused, unless it is part of work with requests under way; then it waits for one of the
 * user's to end.
 */
export class OriginShares {
  private readonly origins = new Map<string, Origin>();

  /**
   * Runs a request in the share of its owner.
   *
   * @param signal tells that nobody waits for the request any more
   * @throws UpstreamError `share` when it is refused
   */
  async run<T>(
    origin: string,
    owner: RequestOwner,
    signal: AbortSignal,
    request: () => Promise<T>,
  ): Promise<T> {
    const shares = this.origins.get(origin) ?? new Origin();
    this.origins.set(origin, shares);
    const place = shares.take(owner);
    if (place === null) {
      throw new UpstreamError('share', origin);
    }
    const release = await place;
    try {
      signal.throwIfAborted();
      return await request();
    } finally {
      release();
      if (shares.isUnused) {
        this.origins.delete(origin);
      }
    }
  }
}

/** Everybody together may have as many as there are: they wait for a connection. */
class Origin {
  private readonly places = new SharedLimit(Infinity, MAX_OF_HOLDER);
  private readonly works = new Map<object, number>();
  private readonly waiting: { owner: RequestOwner; resolve: (release: Release) => void }[] = [];

  get isUnused(): boolean {
    return this.places.inUse === 0;
  }

  /** @returns null when there is no place, and nothing of the same work that would make one */
  take(owner: RequestOwner): Release | Promise<Release> | null {
    const place = this.takeFree(owner);
    if (place !== null || !this.works.has(owner.work)) {
      return place;
    }
    const { promise, resolve } = Promise.withResolvers<Release>();
    this.waiting.push({ owner, resolve });
    return promise;
  }

  private takeFree({ holder, work }: RequestOwner): Release | null {
    const place = this.ofWork(work) < MAX_OF_WORK ? this.places.take(holder) : 'share';
    if (typeof place !== 'function') {
      return null;
    }
    this.works.set(work, this.ofWork(work) + 1);
    return () => {
      place();
      const left = this.ofWork(work) - 1;
      if (left === 0) {
        this.works.delete(work);
      } else {
        this.works.set(work, left);
      }
      this.handOn(holder);
    };
  }

  /** Gives a place of the holder that became free to whatever of theirs has waited longest for one. */
  private handOn(holder: string): void {
    const index = this.waiting.findIndex(
      ({ owner }) => owner.holder === holder && this.ofWork(owner.work) < MAX_OF_WORK,
    );
    const next = this.waiting[index];
    const place = next && this.takeFree(next.owner);
    if (next && place) {
      this.waiting.splice(index, 1);
      next.resolve(place);
    }
  }

  private ofWork(work: object): number {
    return this.works.get(work) ?? 0;
  }
}
