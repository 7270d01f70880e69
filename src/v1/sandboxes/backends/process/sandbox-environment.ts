import { portVariables } from '../port-variables.js';
import { proxyVariables } from '../proxy-variables.js';
import type { SandboxLaunch } from '../sandbox-backend.js';
import type { SandboxPaths } from './sandbox-paths.js';

/** By this variable the processes of a sandbox are known even when they left its group and their parents are gone. */
const MARKER_VARIABLE = 'SLIPWAY_SANDBOX';

/** How that variable begins in every process of a sandbox, as `NAME=value`. */
export function sandboxMarker(instanceId: string, id: string): string {
  return `${MARKER_VARIABLE}=${instanceId}/${id}/`;
}

/** The whole variable, in processes of one start of a sandbox. */
export function programMarker(instanceId: string, id: string, run: string): string {
  return `${sandboxMarker(instanceId, id)}${run}`;
}

const INHERITED =
  /^(PATH|TZ|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE)$/i;

export interface EnvironmentInput {
  /** The service's own variables. */
  own: Readonly<Record<string, string | undefined>>;
  launch: SandboxLaunch;
  paths: SandboxPaths;
  /** Folder for temporary files as the program sees it. */
  tmp: string;
  /** The variable that marks the processes of this start, as `NAME=value`. */
  marker: string;
  /** Of programs that are told their port; null: it chooses one itself. */
  port: number | null;
  /** Ports for what is started inside, by name. */
  ports: Readonly<Record<string, number>>;
  /** Where all of them listen. */
  host: string;
}

/**
 * The whole environment of a sandbox's program: of the service's own variables only those by name that every program
 * needs. Our agent server is told its key elsewhere; other programs know only variables, so there it stands among
 * them, where their tools may read it.
 */
export function sandboxEnvironment(input: EnvironmentInput): Record<string, string> {
  const { own, launch, paths, tmp, marker, port, ports, host } = input;
  const inherited = Object.entries(own).flatMap(([name, value]) =>
    value !== undefined && INHERITED.test(name) ? [[name, value] as const] : [],
  );
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...Object.fromEntries(inherited),
    ...proxyVariables(own, launch, true),
    HOME: paths.home,
    TMPDIR: tmp,
    ...(port === null ? {} : protocolVariables(launch, paths, port)),
    ...launch.env,
    ...portVariables(ports, host),
    [MARKER_VARIABLE]: marker.slice(MARKER_VARIABLE.length + 1),
  };
}

/** What the stock agent server reads. */
function protocolVariables(launch: SandboxLaunch, paths: SandboxPaths, port: number): Record<string, string> {
  return {
    PORT: String(port),
    OH_SESSION_API_KEYS_0: launch.sessionKey,
    OH_CONVERSATIONS_PATH: paths.conversations,
    OH_BASH_EVENTS_DIR: paths.bashEvents,
    OH_WORKSPACE_PATH: paths.workspace,
    ...(launch.callbackUrl === null ? {} : { OH_WEBHOOKS_0_BASE_URL: launch.callbackUrl }),
  };
}
