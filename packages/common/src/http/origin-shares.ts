import { type Release, SharedLimit } from '../shared-limit.js';
import { UpstreamError } from './upstream-error.js';

/** A quarter of the connections to an origin. */
const MAX_OF_HOLDER = 32;
/** Leaves room for another piece of work. */
const MAX_OF_WORK = 24;

export interface RequestOwner {
  holder: string;
  work: object;
}

/** Each user's share of an origin's connections. Beyond it a request waits for others of its work, or is refused. */
export class OriginShares {
  private readonly origins = new Map<string, Origin>();

  /** @throws UpstreamError `share` when the request is refused */
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

/** All users together have no limit here: they wait for a connection. */
class Origin {
  private readonly places = new SharedLimit(Infinity, MAX_OF_HOLDER);
  private readonly works = new Map<object, number>();
  private readonly waiting: { owner: RequestOwner; resolve: (release: Release) => void }[] = [];

  get isUnused(): boolean {
    return this.places.inUse === 0;
  }

  /** Returns null when no place is free and no request of the same work will free one. */
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
