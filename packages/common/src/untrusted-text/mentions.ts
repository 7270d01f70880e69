import { LRUCache } from 'lru-cache';
import { MAX_MARKDOWN, spokenText } from './rendered-text.js';

/** The filters of many automations look at the same text. */
const spoken = new LRUCache<string, string>({ max: 8, memoMethod: spokenText });

/**
 * Whether the author of a comment speaks to a name: `@name` in any case, at a word's beginning, outside of quoted lines, code
 * spans, fenced and indented code, mail and web addresses. Takes time that grows with the length of the text alone.
 * @param order what has to follow, such as `stop`; by default anything may
 */
export function mentions(text: string, name: string, order?: string): boolean {
  const escaped = name.replaceAll(/[^\p{L}\p{N}_-]/gu, String.raw`\$&`);
  const rest = order === undefined ? '' : `[:,]?\\s+${order}(?![\\p{L}\\p{N}_-])`;
  const mention = new RegExp(
    `(?<![\\p{L}\\p{N}_.@/=&#%+$\\\\-])@${escaped}(?![\\p{L}\\p{N}_-]|\\.\\p{L})${rest}`,
    'iu',
  );
  return name !== '' && mention.test(withoutAddresses(spoken.memo(text.slice(0, MAX_MARKDOWN))));
}

function withoutAddresses(text: string): string {
  return text.replaceAll(/\S+/g, (word) => {
    const start = word.search(/:\/\/|www\.|mailto:/i);
    return start < 0 ? word : word.slice(0, start);
  });
}
