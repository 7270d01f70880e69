import { canonicalPath } from './target.js';

/** Some servers take what follows for no part of the path, which would then end in something else; and `*` stands for no push. */
const OTHERWISE_READ = /[#;]|%(?:23|3b|3f)|git-receive-pack/i;

/**
 * Whether a path with its query is one of a pattern's, in which `*` stands for one character or more, slashes included. A pattern
 * with a query wants the same one; without, any.
 */
export function matchesPattern(pattern: string, pathAndQuery: string): boolean {
  const path = canonicalPath(pathAndQuery);
  const [wanted = '', wantedQuery = null] = pattern.split('?', 2);
  const query = pathAndQuery.split('?').slice(1).join('?');
  if (path === null || OTHERWISE_READ.test(path) || (wantedQuery !== null && wantedQuery !== query)) {
    return false;
  }
  // Escapes as they are compared; a part may begin in the middle of a segment.
  const parts = wanted.replaceAll(/%[0-9a-f]{2}/gi, (escape) => escape.toUpperCase()).split('*');
  const [first = '', ...middle] = parts;
  const last = middle.pop();
  if (last === undefined) {
    return path === first;
  }
  if (!path.startsWith(first)) {
    return false;
  }
  let position = first.length;
  for (const part of middle) {
    const found = path.indexOf(part, position + 1);
    if (found < 0) {
      return false;
    }
    position = found + part.length;
  }
  return path.length - last.length > position && path.endsWith(last);
}
