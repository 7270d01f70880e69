const INHERITED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY|XDG_[A-Z_]+|SLIPWAY_SANDBOX)$/i;

/** Names of further variables that are for tools: ports that they may use. */
const NAMED_IN = 'SLIPWAY_TOOL_VARIABLES';

/**
 * Variables that a child process gets of ours: by name only what programs need, nothing that we were told in secret.
 * `SLIPWAY_SANDBOX` is the sandbox's name, by which its processes are found when it ends.
 */
export function toolEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const named = new Set((own[NAMED_IN] ?? '').split(','));
  const inherited = Object.entries(own).flatMap(([name, value]) =>
    value !== undefined && (INHERITED.test(name) || named.has(name)) ? [[name, value] as const] : [],
  );
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...Object.fromEntries(inherited),
    // Nobody is there to answer a prompt, or to leave a pager.
    GIT_TERMINAL_PROMPT: '0',
    GIT_PAGER: 'cat',
    PAGER: 'cat',
  };
}
