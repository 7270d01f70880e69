/** A UUID with its dashes; no id in an address of ours is longer. */
const LONGEST_ID = 36;

/**
 * The path of a request as it may be logged: without its query, and without parts too long for an id of ours. A key or
 * token that somebody puts into an address by mistake is such a part.
 */
export function loggedPath(address: string): string {
  const [path = ''] = address.split('?', 1);
  return path
    .split('/')
    .map((part) => (part.length > LONGEST_ID ? `(${part.length} characters)` : part))
    .join('/');
}
