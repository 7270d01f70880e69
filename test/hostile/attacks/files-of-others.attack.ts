import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type Attack, held, notPromised } from '../attack.js';

/** Where machines have files of others; the last is beside the checkout of the service. */
const PLACES = [
  '/',
  '/etc',
  '/home',
  '/media',
  '/mnt',
  '/opt',
  '/srv',
  '/var',
  '/var/lib',
  path.resolve('..'),
];
const KEY = 'a-key-that-everybody-of-this-machine-can-read-77210';
/** Of most machines, and of no program in a sandbox; an image has its own. */
const COMMON = ['/etc/fstab', '/etc/hostname', '/etc/crontab', '/etc/adduser.conf', '/etc/gitconfig'];

export const filesOfOthers: Attack = {
  name: 'files-of-others',
  finding: 7,
  what: 'Bob reads files of this machine that every user of it can read: keys in /etc, homes, other checkouts.',
  expected: {
    process: held('a sandbox sees nothing but the system, and what it was given'),
    unwrapped: notPromised("the machine's own permissions decide"),
    docker: held('the root folder is that of an image'),
  },
  run: async ({ backend, bob }) => {
    const created = (await Promise.all(PLACES.map(createKey))).flat();
    if (created.length === 0) {
      throw new Error(`no file could be created in ${PLACES.join(', ')}`);
    }
    try {
      const names = [...created.map(({ file }) => file), ...created.map(({ folder }) => folder)];
      if (backend !== 'docker') {
        names.push(...COMMON);
      }
      const { output } = await bob.sh(
        names
          .map((name) => `for f in '${name}' '/proc/1/root${name}'; do test -e "$f" && echo "SEEN $f"; done`)
          .join('\n'),
      );
      const seen = [...output.matchAll(/^SEEN (.+)$/gm)].map(([, name = '']) => name);
      const words = await bob.sh(`grep -rlsF ${KEY} / --include=key --exclude-dir=proc --exclude-dir=dev`);
      const found = words.output.split('\n').filter(Boolean);
      return {
        held: seen.length === 0 && found.length === 0,
        seen: `${names.length} files and folders in two ways each: ${seen.length} are there; a search finds ${found.length} keys`,
      };
    } finally {
      await Promise.all(
        created.map(async ({ folder }) => await rm(folder, { recursive: true, maxRetries: 10 })),
      );
    }
  },
};

/** Nothing where the user of this program may not create files. */
async function createKey(place: string): Promise<{ folder: string; file: string }[]> {
  const folder = await mkdtemp(path.join(place, 'of-others-')).catch(() => null);
  if (folder === null) {
    return [];
  }
  await chmod(folder, 0o755);
  const file = path.join(folder, 'key');
  await writeFile(file, KEY, { mode: 0o644 });
  return [{ folder, file }];
}
