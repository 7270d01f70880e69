import {
  PUBLIC_GIT_SERVER_NAMES,
  type PublicGitServerName,
} from '@slipway/git-providers/public-git-servers.js';

/** `github:owner/name`, or `github:owner/*` for all of an owner; GitLab's have groups of any depth. */
export interface ReadablePattern {
  provider: PublicGitServerName;
  /** Without `/*`. */
  path: string;
  /** All below it. */
  isWide: boolean;
}

export const MAX_READABLE = 50;
export const MAX_READABLE_LENGTH = 300;

const PATTERN = /^([a-z]+):((?!\.)[\w.-]+(?:\/(?!\.)[\w.-]+)*)(\/\*)?$/;

/** Returns null for what is no pattern. */
export function parseReadable(text: string): ReadablePattern | null {
  const [, name, path, wide] = text.length <= MAX_READABLE_LENGTH ? (PATTERN.exec(text) ?? []) : [];
  const provider = PUBLIC_GIT_SERVER_NAMES.find((each) => each === name);
  const parts = path?.split('/').length ?? 0;
  const isWide = wide !== undefined;
  const isPossible = provider === 'gitlab' ? parts >= (isWide ? 1 : 2) : parts === (isWide ? 1 : 2);
  return provider === undefined || path === undefined || !isPossible ? null : { provider, path, isWide };
}

/** Whether all of a pattern is within one of a list; case counts for none of the hosts. */
export function isReadableWithin(pattern: ReadablePattern, list: readonly ReadablePattern[]): boolean {
  const path = pattern.path.toLowerCase();
  return list.some((each) => {
    const outer = each.path.toLowerCase();
    const isBelow = path.startsWith(`${outer}/`) || (pattern.isWide && path === outer);
    return each.provider === pattern.provider && (each.isWide ? isBelow : !pattern.isWide && path === outer);
  });
}

/** A sentence for a list of which one is no pattern, or beyond the operator's list (null: there is none); null: all are fine. */
export function readableProblem(
  list: readonly string[],
  ceiling: readonly ReadablePattern[] | null,
): string | null {
  const parsed = list.map(parseReadable);
  const wrong = list.find((_, index) => parsed[index] === null);
  if (wrong !== undefined) {
    return 'Expected repositories as github:owner/name, github:owner/* or gitlab:group/*.';
  }
  const isBeyond = parsed.some(
    (each) => each !== null && ceiling !== null && !isReadableWithin(each, ceiling),
  );
  return isBeyond
    ? 'Expected repositories that the operator lets sandboxes read (SANDBOX_REPOSITORIES_READ).'
    : null;
}
