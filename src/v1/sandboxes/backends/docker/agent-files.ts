/** Long enough for whoever fills a volume just now, in any replica. */
const OLD_MS = 60 * 60 * 1000;
const MARK = '-ready';

/** A volume with the files of an agent server, or the mark of one. */
export interface AgentFiles {
  name: string;
  /** Id of the image that they are of. */
  image: string;
  /** Epoch milliseconds. */
  createdAt: number;
}

/**
 * Name of the empty volume that says of another one that all files are in it. The engine has nothing else to say that
 * with: it copies into a volume while others may already use it, and one that was killed meanwhile finds the container
 * for which it copied as if all had gone well. So each attempt has a volume of its own, and what is not marked is not used.
 */
export function markOf(name: string): string {
  return `${name}${MARK}`;
}

/** Whether something was made so long ago that nobody is at it any more. */
export function isLeft({ createdAt }: Pick<AgentFiles, 'createdAt'>, now: number): boolean {
  return now - createdAt >= OLD_MS;
}

/** The volume to use of those that have an image's files; null when none is ready. The same one for all who ask. */
export function readyVolume(volumes: readonly AgentFiles[], image: string): string | null {
  const names = new Set(volumes.filter((volume) => volume.image === image).map(({ name }) => name));
  const [first = null] = [...names].filter((name) => names.has(markOf(name))).toSorted();
  return first;
}

/**
 * What nobody needs any more, unless a container still uses it: files of earlier images, and what was left by attempts
 * that were cut off.
 *
 * @param image whose files are wanted; null when the engine has no such image
 */
export function leftAgentFiles(volumes: readonly AgentFiles[], image: string | null, now: number): string[] {
  const ready = image === null ? null : readyVolume(volumes, image);
  const kept = new Set(ready === null ? [] : [ready, markOf(ready)]);
  return volumes
    .filter(({ name, createdAt }) => !kept.has(name) && isLeft({ createdAt }, now))
    .map(({ name }) => name);
}
