import { LRUCache } from 'lru-cache';

/** What an `LRUCache` may be told beside its size. */
type CacheOptions<Key extends {}, Value extends {}> = Omit<
  LRUCache.OptionsBase<Key, Value, unknown>,
  'max' | 'maxSize' | 'maxEntrySize' | 'sizeCalculation'
>;

/**
 * The entries that were used last, up to a number of them. Takes memory for what it holds: `LRUCache` with `max` allocates
 * room for all entries when it is created (3 MB and 15 ms for those of the service).
 */
export class BoundedCache<Key extends {}, Value extends {}> extends LRUCache<Key, Value> {
  /**
   * @param entries how many are kept; the one that was idle longest is forgotten first
   * @param options the library's own (`ttl`, `perf`)
   */
  constructor(entries: number, options: CacheOptions<Key, Value> = {}) {
    super({ ...options, maxSize: entries, sizeCalculation: () => 1 });
  }
}
