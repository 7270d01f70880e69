const INHERITED_VARIABLES =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY|XDG_[A-Z_]+|SLIPWAY_SANDBOX)$/i;

/** Lists the names of further variables for tools, such as the ports that they may use. */
const EXTRA_VARIABLES = 'SLIPWAY_TOOL_VARIABLES';

// Lists the variables that were set when the container was started. All others are the image's own, such as
// `JAVA_HOME`, and tools get them. Without this list, the image's variables are unknown.
const SERVICE_VARIABLES = 'SLIPWAY_SERVICE_VARIABLES';
/** Variables that tools never get: those of the agent server itself, and those that may be secret. */
const WITHHELD_VARIABLES = /^(NODE_|LD_|OH_|SLIPWAY_)|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i;
/** Variables that a container engine or a cluster adds. */
const ENGINE_VARIABLES = /^(HOSTNAME$|KUBERNETES_)/;

/**
 * The variables that child processes inherit: an allowlist of what programs need, and those of the container's
 * image, never a secret. `SLIPWAY_SANDBOX` names the sandbox, so that its processes are found when it ends.
 */
export function toolEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const named = new Set((own[EXTRA_VARIABLES] ?? '').split(','));
  const isOfImage = imageVariables(own);
  const inherited = Object.entries(own).flatMap(([name, value]) =>
    value !== undefined && (INHERITED_VARIABLES.test(name) || named.has(name) || isOfImage(name))
      ? [[name, value] as const]
      : [],
  );
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...Object.fromEntries(inherited),
    // No user can answer a prompt or quit a pager.
    GIT_TERMINAL_PROMPT: '0',
    GIT_PAGER: 'cat',
    PAGER: 'cat',
  };
}

function imageVariables(own: NodeJS.ProcessEnv): (name: string) => boolean {
  const list = own[SERVICE_VARIABLES];
  if (list === undefined) {
    return () => false;
  }
  const service = new Set(list.split(','));
  return (name) => !service.has(name) && !WITHHELD_VARIABLES.test(name) && !ENGINE_VARIABLES.test(name);
}
