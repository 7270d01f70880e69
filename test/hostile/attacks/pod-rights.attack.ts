import { type Attack, held } from '../attack.js';
import { podOfSandbox } from '../support/attacked-cluster.js';

const DRAFT = 'a-draft-in-the-volume-of-alice-31907';
/** Everything that a node puts into a pod, from inside: its account, the API server's address, others' volumes. */
const LOOK = `
ls /var/run/secrets/kubernetes.io 2> /dev/null && echo ACCOUNT
env | grep -q ^KUBERNETES_ && echo ADDRESS
for d in / /etc /usr /opt /opt/slipway; do touch $d/hostile 2> /dev/null && echo "WROTE $d"; done
grep -rs "${DRAFT.split('').toReversed().join('')}" / --exclude-dir=proc --exclude-dir=sys > /dev/null && echo FOUND
kill -9 1 2> /dev/null
true
`;

export const podRights: Attack = {
  name: 'pod-rights',
  finding: 'not tried',
  what: "Bob's tool looks for an account of the cluster, another pod's volume and a file of its image that it can change, and kills the pod's first process.",
  expected: {
    kubernetes: held(
      'no account, no capabilities, a read-only root, limits, its own volume and nothing of the node',
    ),
  },
  run: async ({ alice, bob, instanceId }) => {
    await alice.sh(`echo ${DRAFT} | rev > draft.txt`);
    const { output } = await bob.sh(LOOK, 60);
    const spec = (await podOfSandbox(instanceId, bob.sandboxId))?.spec;
    const context = spec?.containers[0]?.securityContext;
    const volumes = spec?.volumes ?? [];
    const wrong = [
      spec?.automountServiceAccountToken === false ? null : 'it may have an account',
      spec?.hostNetwork === true || spec?.hostPID === true || spec?.hostIPC === true
        ? 'it shares a namespace of the node'
        : null,
      context?.capabilities?.drop?.includes('ALL') ? null : 'it has capabilities',
      context?.readOnlyRootFilesystem === true ? null : 'its root is writable',
      context?.allowPrivilegeEscalation === false ? null : 'it may gain privileges',
      spec?.securityContext?.seccompProfile?.type === 'RuntimeDefault' ? null : 'no profile of system calls',
      spec?.containers[0]?.resources?.limits?.['memory'] ? null : 'it has no limits',
      volumes.some(({ hostPath }) => hostPath !== undefined) ? 'it has a folder of the node' : null,
      output.includes('ACCOUNT') ? 'it has an account of the cluster' : null,
      output.includes('ADDRESS') ? 'its tools are told where the API server is' : null,
      output.includes('WROTE') ? 'it changed files of its image' : null,
      output.includes('FOUND') ? "it read Alice's volume" : null,
      (await bob.isWell()) ? null : 'its pod did not survive a signal to the first process',
    ].filter((one) => one !== null);
    return {
      held: wrong.length === 0,
      seen: wrong.length === 0 ? `as few rights as it needs (node: ${spec?.nodeName})` : wrong.join('; '),
    };
  },
};
