import { createHash } from 'node:crypto';
import { type Stats, statSync } from 'node:fs';
import { chown, lstat, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { unlessCode } from '@slipway/common/errors/error-message.js';
import { EmbeddedPostgresError, type UnixUser } from './programs.js';

const NOBODY: UnixUser = { name: 'nobody', uid: 65_534, gid: 65_534 };
/** PostgreSQL and its clients name the socket after the port, even where nothing listens on TCP. */
export const SOCKET_PORT = 5432;
/** `sockaddr_un.sun_path` without its final zero: 107 on Linux (unix(7)), 103 on macOS. */
const MAX_SOCKET_PATH_BYTES: Partial<Record<NodeJS.Platform, number>> = { darwin: 103 };

/** Null: our own user. Else the cluster's owner, `postgres` or `nobody`, as PostgreSQL refuses to run as root. */
export function chooseUser(
  processUid: number,
  owner: Pick<UnixUser, 'uid' | 'gid'> | null,
  accounts: UnixUser[],
): UnixUser | null {
  if (processUid !== 0) {
    return null;
  }
  if (owner !== null && owner.uid !== 0) {
    const account = accounts.find(({ uid }) => uid === owner.uid);
    return { name: account?.name ?? `uid ${owner.uid}`, uid: owner.uid, gid: owner.gid };
  }
  const named = (wanted: string): UnixUser | undefined =>
    accounts.find(({ name, uid }) => name === wanted && uid !== 0);
  return named('postgres') ?? named('nobody') ?? NOBODY;
}

export async function readAccounts(): Promise<UnixUser[]> {
  return parsePasswd((await unlessCode('ENOENT', readFile('/etc/passwd', 'utf8'))) ?? '');
}

/** Reads `/etc/passwd` (passwd(5)). */
export function parsePasswd(text: string): UnixUser[] {
  return text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid && /^\d+$/.test(uid) && /^\d+$/.test(gid)
      ? [{ name, uid: Number(uid), gid: Number(gid) }]
      : [];
  });
}

/** Whether the user can pass through to a path and has the wanted permission on it, by mode bits only. */
export function canReach(user: UnixUser, realPath: string, wanted = 1): boolean {
  return pathComponents(realPath).every((component) => {
    const found = statSync(component, { throwIfNoEntry: false });
    return found !== undefined && isPermitted(user, found, component === realPath ? wanted : 1);
  });
}

export function pathComponents(absolute: string): string[] {
  const parent = path.dirname(absolute);
  return parent === absolute ? [absolute] : [...pathComponents(parent), absolute];
}

export function isPermitted(
  user: UnixUser,
  { mode, uid, gid }: Pick<Stats, 'mode' | 'uid' | 'gid'>,
  wanted: number,
): boolean {
  const shift = user.uid === uid ? 6 : user.gid === gid ? 3 : 0;
  return ((mode >> shift) & wanted) === wanted;
}

/** The cluster is private already; where its path is too long, a temporary folder is named after it. */
export function socketDirectoryFor(cluster: string, temporary: string, platform: NodeJS.Platform): string {
  const limit = MAX_SOCKET_PATH_BYTES[platform] ?? 107;
  const name = `slipway-${createHash('sha256').update(cluster).digest('hex').slice(0, 16)}`;
  const fits = (folder: string): boolean =>
    Buffer.byteLength(path.join(folder, `.s.PGSQL.${SOCKET_PORT}`)) <= limit;
  return [cluster, path.join(temporary, name)].find(fits) ?? path.join('/tmp', name);
}

/** Creates or checks a socket folder of mode 700. @throws EmbeddedPostgresError when another user owns it */
export async function ensureSocketDirectory(folder: string, user: UnixUser | null): Promise<void> {
  if ((await unlessCode('EEXIST', mkdir(folder, { mode: 0o700 }))) !== null) {
    if (user !== null) {
      await chown(folder, user.uid, user.gid);
    }
    return;
  }
  const found = await lstat(folder);
  const owner = user?.uid ?? process.getuid?.();
  if (!found.isDirectory() || found.uid !== owner || (found.mode & 0o077) !== 0) {
    throw new EmbeddedPostgresError(`${folder} is not a private folder of the database's user: remove it`);
  }
}
