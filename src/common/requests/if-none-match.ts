/**
 * Whether an `If-None-Match` header names this entity tag (RFC 9110 section 13.1.2; weak comparison). What else the
 * request says of caches does not matter: the tag was computed for this very answer.
 */
export function ifNoneMatch(header: string | undefined, etag: string): boolean {
  if (header === undefined) {
    return false;
  }
  const tags: string[] = header.match(/"[^"]*"/g) ?? [];
  return header.trim() === '*' || tags.includes(etag);
}
