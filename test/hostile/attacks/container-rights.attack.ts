import { type Attack, held } from '../attack.js';
import { inspectContainer } from '../support/backends.js';

const DRAFT = 'a-draft-in-the-volume-of-alice-20846';
/** Everything that the engine puts into a container, from inside. */
const LOOK = `
cat /proc/self/mountinfo | cut -d ' ' -f 4,5
for d in / /etc /usr /opt /opt/slipway; do touch $d/hostile 2> /dev/null && echo "WROTE $d"; done
grep -rs "${DRAFT.split('').toReversed().join('')}" / --exclude-dir=proc --exclude-dir=sys > /dev/null && echo FOUND
true
`;

export const containerRights: Attack = {
  name: 'container-rights',
  finding: 'not tried',
  what: "Bob's tool looks for another container's volume, the engine's socket, and a file of its image that it can change.",
  expected: {
    docker: held('no capabilities, a read-only root, limits, its own volume and nothing else of the engine'),
  },
  run: async ({ alice, bob, instanceId }) => {
    await alice.sh(`echo ${DRAFT} | rev > draft.txt`);
    const { output } = await bob.sh(LOOK, 60);
    const {
      HostConfig: config,
      Mounts: mounts,
      AppArmorProfile: profile,
    } = await inspectContainer(instanceId, bob.sandboxId);
    const wrong = [
      config.Privileged ? 'it is privileged' : null,
      config.CapDrop?.includes('ALL') && (config.CapAdd ?? []).length === 0 ? null : 'it has capabilities',
      config.ReadonlyRootfs === true ? null : 'its root is writable',
      config.SecurityOpt?.some((option: string) => option.startsWith('no-new-privileges'))
        ? null
        : 'it may gain privileges',
      config.SecurityOpt?.some((option: string) => option.includes('unconfined'))
        ? 'a profile is switched off'
        : null,
      (config.PidsLimit ?? 0) > 0 && (config.Memory ?? 0) > 0 && (config.NanoCpus ?? 0) > 0
        ? null
        : 'it has no limits',
      ['host', 'container'].some((mode) =>
        [config.NetworkMode, config.PidMode, config.IpcMode].includes(mode),
      )
        ? 'it shares a namespace'
        : null,
      mounts.some(({ Type: type }) => type === 'bind') ? 'it has a folder of the machine' : null,
      mounts.some(({ Source: source, RW: writable }) => writable && !source.includes(bob.sandboxId))
        ? 'it has a volume of another'
        : null,
      /docker\.sock|containerd\.sock/.test(output) ? "it sees the engine's socket" : null,
      output.includes('WROTE') ? 'it changed files of its image' : null,
      output.includes('FOUND') ? "it read Alice's volume" : null,
    ].filter((one) => one !== null);
    return {
      held: wrong.length === 0,
      seen:
        wrong.length === 0
          ? `as few rights as it needs (profile: ${profile || 'none on this machine'})`
          : wrong.join('; '),
    };
  },
};
