/** Branches, tags and remote branches by their full names, and the objects that they name. */
export type Refs = ReadonlyMap<string, string>;

/** Lines of `<object id> <full name>`, as `git for-each-ref` writes them; what is none is left out. */
export function parseRefs(text: string): Refs {
  const lines = text
    .split('\n')
    .map((line) => /^([0-9a-f]{40}|[0-9a-f]{64}) (refs\/[^\s\p{Cc}]+)$/u.exec(line));
  return new Map(lines.flatMap((match) => (match?.[1] && match[2] ? [[match[2], match[1]]] : [])));
}
