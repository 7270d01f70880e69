const INHERITED_VARIABLES =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY|XDG_[A-Z_]+|SLIPWAY_SANDBOX)$/i;

/** Lists the names of further variables for tools, such as the ports that they may use. */
const EXTRA_VARIABLES = 'SLIPWAY_TOOL_VARIABLES';

/**
 * The variables that child processes inherit from the agent server: an allowlist of what programs need, never a secret.
 * `SLIPWAY_SANDBOX` is the sandbox's name, by which its processes are found when it ends.
 */
export function toolEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const named = new Set((own[EXTRA_VARIABLES] ?? '').split(','));
  const inherited = Object.entries(own).flatMap(([name, value]) =>
    value !== undefined && (INHERITED_VARIABLES.test(name) || named.has(name))
      ? [[name, value] as const]
      : [],
  );
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...Object.fromEntries(inherited),
    // Nobody can answer a prompt or quit a pager.
    GIT_TERMINAL_PROMPT: '0',
    GIT_PAGER: 'cat',
    PAGER: 'cat',
  };
}
