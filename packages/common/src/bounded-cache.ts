import { LRUCache } from 'lru-cache';

type CacheOptions<Key extends {}, Value extends {}> = Omit<
  LRUCache.OptionsBase<Key, Value, unknown>,
  'max' | 'maxSize' | 'maxEntrySize' | 'sizeCalculation'
>;

/** An LRU cache that takes memory for what it holds; `LRUCache` with `max` allocates 3 MB for ours at once. */
export class BoundedCache<Key extends {}, Value extends {}> extends LRUCache<Key, Value> {
  constructor(entries: number, options: CacheOptions<Key, Value> = {}) {
    super({ ...options, maxSize: entries, sizeCalculation: () => 1 });
  }
}
